"""Options with numbers that no machine word holds, and edits of nothing."""

import contextlib
import datetime as dt

import pyarrow as pa
import pytest

import parquet_variant as pv

ARRAY = pv.parse_json(['{"a": [1]}', None])


@pytest.mark.parametrize(
    "call",
    [
        lambda: pv.validate(ARRAY, max_depth=2**63),
        lambda: pv.variant_array_append(ARRAY, "$.a", 1, max_size=2**63),
        lambda: pv.variant_insert(ARRAY, "$.b", 1, max_size=2**63),
        lambda: pv.variant_set(ARRAY, "$.a", 1, max_size=2**70),
        lambda: pv.write("a.parquet", ARRAY, compression_level=2**40),
    ],
)
def test_a_number_of_more_than_64_bits_is_a_bad_option(call):
    with pytest.raises(pv.VariantError) as caught:
        call()
    assert caught.value.reason == "bad-option"


def test_row_groups_may_be_as_large_as_one_likes(tmp_path):
    pv.write(tmp_path / "a.parquet", ARRAY, row_group_bytes=2**70)
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == ARRAY.to_pylist()


def test_to_delete_nothing_changes_nothing():
    shredded = pv.shred_variant(ARRAY, "a array<bigint>")
    for array in ARRAY, shredded:
        assert pv.variant_delete(array, None).to_pylist() == ARRAY.to_pylist()
        assert pv.variant_delete(array, errors="null").to_pylist() == ARRAY.to_pylist()
    assert pv.variant_delete(ARRAY[0], None) == ARRAY[0]


@pytest.mark.parametrize("name", ["\ud800", None, 1, b"a"])
def test_names_that_no_column_can_have_are_refused(name, tmp_path):
    pv.write(tmp_path / "a.parquet", ARRAY)
    for call in (
        lambda: pv.write(tmp_path / "b.parquet", {name: ARRAY}),
        lambda: pv.write(tmp_path / "t", {name: ARRAY}, format="delta"),
        lambda: pv.open(tmp_path / "a.parquet").scan({name: "$.a:bigint"}),
    ):
        with pytest.raises(pv.VariantError) as caught:
            call()
        assert caught.value.reason == "bad-name"
    assert [item.name for item in tmp_path.iterdir()] == ["a.parquet"]


def test_files_are_not_sorted_by_nested_columns(tmp_path):
    with pytest.raises(pv.VariantFileError, match="nested") as caught:
        pv.write(tmp_path / "a.parquet", {"v": ARRAY, "l": pa.array([[1], [2]])}, sort_by=["l"])
    assert caught.value.reason == "bad-option"


@pytest.mark.parametrize("zone", [None, 1, "", "\ud800", "Nope/Zone"])
def test_an_unknown_zone_is_refused(zone, tmp_path):
    with pytest.raises(pv.VariantError) as caught:
        pv.variant_get(ARRAY, "$.a", "timestamp", zone=zone)
    assert caught.value.reason == "bad-zone"


def test_more_threads_than_an_engine_can_start_are_not_started(tmp_path):
    pv.write(tmp_path / "a.parquet", ARRAY)
    for threads in (2**31, 2**70):
        assert pv.open(tmp_path / "a.parquet").read(threads=threads) == ARRAY


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan"), float("inf"), "1"])
def test_sizes_of_files_of_tables_are_positive_numbers(size, tmp_path):
    with pytest.raises(pv.VariantError) as caught:
        pv.write(tmp_path / "t", {"v": ARRAY}, format="delta", file_bytes=size)
    assert caught.value.reason == "bad-option"
    assert not (tmp_path / "t").exists()


def test_files_of_tables_may_be_as_large_as_one_likes(tmp_path):
    pv.write(tmp_path / "t", {"v": ARRAY}, format="delta", file_bytes=2**70)
    assert pv.open(tmp_path / "t").read() == ARRAY


@pytest.mark.parametrize("time", [dt.datetime(1, 1, 1), 1.5, b"", "yesterday", dt.datetime.max])
def test_times_of_versions_are_times(time, tmp_path):
    pv.write(tmp_path / "t", {"v": ARRAY}, format="delta")
    with contextlib.suppress(pv.TableError):
        assert pv.open(tmp_path / "t", at=time).read() == ARRAY


def test_tables_in_stores_that_do_not_answer_are_an_error_of_ours(monkeypatch):
    pytest.importorskip("obstore")
    options = {"endpoint": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b", "region": "x"}
    retries = {"retry_config": {"max_retries": 0}}
    with pytest.raises(pv.TableError) as caught:
        pv.open("s3://bucket/t", storage_options=options | retries).read()
    assert caught.value.reason == "cannot-read"
