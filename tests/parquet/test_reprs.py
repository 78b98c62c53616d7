"""What a REPL shows of the objects that operations give back: one sentence each, however large they are."""

import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.operations.rewrite import OptimizeResult

NAMES = [f"a_column_with_a_long_name_{number}" for number in range(200)]
SELECTED = {name: (f"$.{name}", "bigint") for name in NAMES}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    wide = pv.from_python([dict.fromkeys(NAMES, number) for number in range(3)])
    folder = tmp_path_factory.mktemp("reprs")
    for number in range(2):
        pv.write(f"{folder}/files/{number}.parquet", wide, schema="infer")
        pv.write(f"{folder}/table", wide, format="delta", mode="append")
    return folder


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: pv.open(f"{folder}/files").read(),
        lambda folder: pv.open(f"{folder}/files").scan(SELECTED, where=f"{NAMES[0]} > 1"),
        lambda folder: pv.open(f"{folder}/files").scan(SELECTED).explain(),
        lambda folder: pv.open(f"{folder}/files").validate(),
        lambda folder: pv.open(f"{folder}/files").inspect(),
        lambda folder: pv.open(f"{folder}/files").optimize(dry_run=True),
        lambda folder: pv.open(f"{folder}/table").scan(SELECTED),
        lambda folder: pv.open(f"{folder}/table").scan(SELECTED).explain(),
        lambda folder: pv.open(f"{folder}/table").plan(schema=", ".join(f"{name} bigint" for name in NAMES)),
        lambda folder: pv.open(f"{folder}/table").optimize(dry_run=True),
        lambda folder: pv.open(f"{folder}/table").snapshot,
    ],
)
def test_a_result_is_one_sentence(table, make):
    text = repr(make(table))
    assert len(text) < 500 and "\n" not in text, text


def test_what_the_sentences_say(table):
    scan = pv.open(f"{table}/files").scan(SELECTED, where=f"{NAMES[0]} > 1")
    assert repr(scan).endswith(f"{NAMES[4]} and 195 more, filtered over 2 files>")
    assert repr(scan.explain()).startswith("<ScanReport 2 of 2 files, 6 of 6 rows, ")
    assert repr(pv.open(f"{table}/files").validate()).startswith("<ValidationReport 2 files, 6 rows: valid; notes on ")
    assert "nothing to do" in repr(pv.open(f"{table}/table").optimize(dry_run=True))
    done = OptimizeResult(2, 1, 300, 200)
    assert repr(done) == "<OptimizeResult 2 files (300 bytes) became 1 file (200 bytes)>"


def test_rows_are_shown_by_their_beginnings(table):
    shown = repr(pv.open(f"{table}/files").read())
    assert shown.count("…") == 4  # of three rows, and of the rows


def test_an_array_with_malformed_bytes_can_be_shown():
    array = pv.VariantArray.from_variants([pv.Variant(b"\x01\x00\x00", b"\x0d")])
    assert "malformed" in repr(array) and "malformed" in array._repr_html_()
