"""What a REPL shows of the objects that operations give back: one sentence each, however large they are."""

import pytest

import parquet_variant as pv

NAMES = [f"a_column_with_a_long_name_{number}" for number in range(200)]
SELECTED = {name: (f"$.{name}", "bigint") for name in NAMES}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    wide = pv.from_python([dict.fromkeys(NAMES, number) for number in range(3)])
    folder = tmp_path_factory.mktemp("reprs")
    for number in range(2):
        pv.parquet.write(f"{folder}/files/{number}.parquet", wide, schema="infer")
        pv.delta.write(f"{folder}/table", wide, mode="append")
    return folder


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: pv.parquet.read(f"{folder}/files"),
        lambda folder: pv.parquet.scan(f"{folder}/files", SELECTED, where=f"{NAMES[0]} > 1"),
        lambda folder: pv.parquet.scan(f"{folder}/files", SELECTED).explain(),
        lambda folder: pv.parquet.validate(f"{folder}/files"),
        lambda folder: pv.parquet.inspect(f"{folder}/files"),
        lambda folder: pv.parquet.optimize(f"{folder}/files", dry_run=True),
        lambda folder: pv.delta.scan(f"{folder}/table", SELECTED),
        lambda folder: pv.delta.scan(f"{folder}/table", SELECTED).explain(),
        lambda folder: pv.delta.plan(f"{folder}/table", schema=", ".join(f"{name} bigint" for name in NAMES)),
        lambda folder: pv.delta.optimize(f"{folder}/table", dry_run=True),
        lambda folder: pv.delta.snapshot(f"{folder}/table"),
    ],
)
def test_a_result_is_one_sentence(table, make):
    text = repr(make(table))
    assert len(text) < 500 and "\n" not in text, text


def test_what_the_sentences_say(table):
    scan = pv.parquet.scan(f"{table}/files", SELECTED, where=f"{NAMES[0]} > 1")
    assert repr(scan).endswith(f"{NAMES[4]} and 195 more, filtered over 2 files>")
    assert repr(scan.explain()).startswith("<ScanReport 2 of 2 files, 6 of 6 rows, ")
    assert repr(pv.parquet.validate(f"{table}/files")).startswith("<ValidationReport 2 files, 6 rows: valid; notes on ")
    assert "nothing to do" in repr(pv.delta.optimize(f"{table}/table", dry_run=True))
    done = pv.parquet.OptimizeResult(2, 1, 300, 200)
    assert repr(done) == "<OptimizeResult 2 files of 300 bytes became 1 file of 200 bytes>"


def test_rows_are_shown_by_their_beginnings(table):
    shown = repr(pv.parquet.read(f"{table}/files"))
    assert shown.count("…") == 4  # of three rows, and of the rows


def test_an_array_with_malformed_bytes_can_be_shown():
    array = pv.VariantArray.from_variants([pv.Variant(b"\x01\x00\x00", b"\x0d")])
    assert "malformed" in repr(array) and "malformed" in array._repr_html_()
