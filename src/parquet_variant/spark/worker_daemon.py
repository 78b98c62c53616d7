"""PySpark's daemon, from which Python workers are forked, without tracebacks of broken pipes from the first moment.

`local_session` sets ``spark.python.daemon.module`` to this module. Without it, workers are quiet as soon as an object
of this package arrives in them (see `worker_end`).
"""

from __future__ import annotations

from pyspark import daemon

from parquet_variant.spark.worker_end import keep_quiet

if __name__ == "__main__":
    keep_quiet()
    daemon.manager()
