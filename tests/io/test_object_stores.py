"""Files and tables on an S3 server on loopback (moto), by names of Hadoop and of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import parquet_variant as pv
from object_store import environment, s3_server
from parquet_variant.io.filesystems import filesystem_of, with_known_scheme


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server("lake") as address:
        yield address


@pytest.fixture
def s3(endpoint, monkeypatch) -> str:
    for name, value in environment(endpoint).items():
        monkeypatch.setenv(name, value)
    return endpoint


@pytest.mark.parametrize(
    ("uri", "known"),
    [
        ("s3a://b/k", "s3://b/k"),
        ("S3N://b/k", "s3://b/k"),
        ("s3://b/k", "s3://b/k"),
        ("gcs://b/k", "gs://b/k"),
        ("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("wasb://c@a.blob.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("hdfs://name:9000/x", "hdfs://name:9000/x"),
    ],
)
def test_hadoops_names_are_known(uri, known):
    assert with_known_scheme(uri) == known


def test_what_no_filesystem_is_called_is_an_error_of_ours(tmp_path):
    for place in (lambda: pv.open("nonsense://b/k").read(), lambda: pv.open("nonsense://b/k").read()):
        with pytest.raises(pv.VariantError, match="nonsense") as raised:
            place()
        assert raised.value.reason == "bad-uri"


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_an_object_that_is_written_again_in_the_same_second_with_the_same_size_has_changed(s3, tmp_path, format):
    store, (source, path) = f"s3://lake/again-{format}", filesystem_of(f"s3://lake/again-{format}/a.ndjson")

    def put(text):
        with source.open_output_stream(path) as stream:
            stream.write(text)

    times = set()
    while len(times) != 1:  # until both writes are in one second
        put(b'{"a": 1}')
        first = pv.ingest(store, tmp_path / "0", format=format, only_new=True, mode="overwrite")
        times = {source.get_file_info(path).mtime}
        again = pv.ingest(store, tmp_path / "0", format=format, only_new=True)
        put(b'{"a": 2}')
        times.add(source.get_file_info(path).mtime)
    assert (first.rows, again.rows, again.skipped, again.changed) == (1, 0, 1, ())
    changed = pv.ingest(store, tmp_path / "0", format=format, only_new=True)
    assert (changed.rows, changed.skipped, changed.changed) == (0, 0, (f"{store}/a.ndjson",))


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_an_ingest_needs_the_address_and_the_keys_alone(s3, usgs_sample, scheme, format):
    dest = f"{scheme}://lake/{format}-{scheme}"
    options = {"format": format, "partition_by": "kind=$.properties.type"}
    for mode in ("error", "append", "overwrite"):
        assert pv.ingest(usgs_sample, dest, mode=mode, **options).rows == 1707
    scan = pv.open(dest).scan
    table = scan({"kind": "kind", "mag": "$.properties.mag:double"}, "kind = 'explosion'").to_arrow()
    assert table.column("kind").to_pylist() == ["explosion"] * 15
    assert len(scan({"mag": "$.properties.mag:double"}).to_arrow()) == 1707


def test_a_url_may_name_the_endpoint(endpoint, usgs_sample, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    dest = f"s3://lake/named?endpoint_override={endpoint.removeprefix('http://')}&scheme=http&region=us-east-1"
    pv.write(dest, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
    assert pv.open(dest).read().to_pylist() == [{"n": 1}]


def test_explored_from_afar(s3):
    rows = pv.parse_json([f'{{"n": {number}, "text": "x"}}' for number in range(100)])
    pv.write("s3://lake/explored.parquet", rows, schema="n bigint")
    pv.write("s3://lake/explored-delta", {"v": rows}, format="delta")
    for place in ("s3://lake/explored.parquet", "s3://lake/explored-delta"):
        page = pv.open(place).explore().to_html()
        assert place in page
        assert '"text"' in page
    with pytest.raises(pv.VariantError, match="s3://lake/nothing does not exist"):
        pv.open("s3://lake/nothing").explore()


NOWHERE = "region=us-east-1&endpoint_override=127.0.0.1:9&scheme=http"


def test_a_store_that_cannot_be_reached_is_an_error_of_ours(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    source = tmp_path / "in.ndjson"
    source.write_text("1\n")
    works = [
        lambda: pv.open(f"s3://lake/x.parquet?{NOWHERE}").read(),
        lambda: pv.ingest(source, f"s3://lake/x?{NOWHERE}", mode="append"),
        lambda: pv.sql(f"SELECT * FROM 's3://lake/x.parquet?{NOWHERE}'").to_pylist(),
    ]
    with ThreadPoolExecutor(len(works)) as threads:  # each tries for six seconds
        for done in [threads.submit(work) for work in works]:
            with pytest.raises(pv.VariantError, match="lake") as raised:
                done.result()
            assert raised.value.reason == "cannot-read"


@pytest.mark.parametrize("name", ["allow_http", "timeout", "user_agent", "proxy_url", "pool_idle_timeout"])
def test_options_of_the_connection_are_passed_with_those_of_the_store(name):
    from parquet_variant.io.object_stores import open_store

    value = {"allow_http": "true", "timeout": "30s", "pool_idle_timeout": "30s"}.get(name, "x")
    assert open_store("s3://bucket/x", {name: value, "aws_region": "us-east-1"}) is not None


def test_a_panic_of_the_store_is_an_error_of_ours(monkeypatch):
    import obstore.store

    from parquet_variant.io.object_stores import open_store

    class Panic(BaseException):
        """What pyo3 raises for a panic."""

        __module__ = "pyo3_runtime"

    def panics(*_, **__):
        raise Panic("expected something")

    monkeypatch.setattr(obstore.store, "from_url", panics)
    with pytest.raises(pv.TableError, match="expected something"):
        open_store("s3://bucket/x", {})


def test_a_panic_of_a_request_is_an_error_of_ours(monkeypatch):
    import obstore

    from parquet_variant.tables.storage import open_storage

    storage = open_storage("memory:///t")
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def panics(*_, **__):
        raise panic("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(obstore, "get", panics)
    with pytest.raises(pv.TableError, match="unwrap"):
        storage.read("x")


@pytest.mark.parametrize("name", ["endpoint", "aws_endpoint", "AWS_ENDPOINT", "AWS_ENDPOINT_URL", "aws_endpoint_url"])
def test_an_endpoint_has_several_names(name):
    from parquet_variant.io.object_stores import open_store

    options = {name: "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    assert open_store("s3://bucket/x", options).config["endpoint"] == "http://127.0.0.1:9"


@pytest.mark.parametrize("value", ["hunter2\n", "hunter2\r", "\0hunter2", None])
def test_values_of_storage_options_are_one_line_of_text(value):
    with pytest.raises(pv.TableError, match="AWS_SECRET_ACCESS_KEY") as raised:
        pv.open("s3://bucket/x", format="delta", storage_options={"AWS_SECRET_ACCESS_KEY": value}).read()
    assert raised.value.reason == "bad-argument"
    assert "hunter2" not in str(raised.value)
