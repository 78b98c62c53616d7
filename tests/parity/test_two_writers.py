"""Files of our page writer and of pyarrow's are one to every reader: pyarrow, DuckDB, Spark, and ours."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from random_tables import PRIMITIVES, tables

CODECS = ["zstd", "snappy", "gzip", "lz4", "none"]
WRITERS = ("native", "pyarrow")
# What Spark refuses, whoever wrote it.
UNKNOWN_TO_SPARK = [
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    pa.uuid(),
]
KINDS = tuple(kind for kind in PRIMITIVES if kind not in UNKNOWN_TO_SPARK)
# Spark refuses decimals of more places after the point than their width has digits; integers are shredded as decimals.
OTHERS = {"time", "uuid", "timestamp_nanos", "timestamp_ntz_nanos", "decimal4", "decimal8", "decimal16"}
TYPES = {kind for kind in pv.VariantType if kind not in OTHERS}
# The files of an example are read by one Spark job; the first example is the smallest that there is.
FEW = settings(max_examples=2, phases=[Phase.generate])


@st.composite
def variants_to_write(draw):
    """Rows, what is shredded of them, and how they are written."""
    rows = draw(
        st.lists(st.none() | testing.variants(max_leaves=8, layouts=False, types=TYPES), min_size=1, max_size=12)
    )
    schema = draw(testing.shredding_schemas(rows))
    options = {"compression": draw(st.sampled_from(CODECS)), "row_group_bytes": draw(st.sampled_from([100, 1 << 20]))}
    return rows, schema, options


@st.composite
def tables_to_write(draw):
    """A table, and how its pages are made."""
    return draw(tables(KINDS)), {
        "compression": draw(st.sampled_from(CODECS)),
        "page_bytes": draw(st.sampled_from([1, 60, 1 << 20])),
        "use_dictionary": draw(st.booleans()),
    }


def by_duckdb(path):
    """The rows as JSON, or what DuckDB says of a value that it does not know."""
    try:
        return duckdb.sql(f"SELECT v::JSON::VARCHAR FROM '{path}'").fetchall()
    except duckdb.NotImplementedException as error:
        return str(error)


def by_spark(spark, frames):
    """The rows of many frames of one column of text, frame by frame, in one job."""
    numbered = [
        frame.selectExpr(f"{n} AS n", "monotonically_increasing_id() AS i", "x") for n, frame in enumerate(frames)
    ]
    while len(numbered) > 1:  # as a tree: Spark walks a chain of unions once for each of them
        pairs = [numbered[at : at + 2] for at in range(0, len(numbered), 2)]
        numbered = [pair[0].union(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    answers = [[] for _ in frames]
    for number, _, text in sorted(map(tuple, numbered[0].collect()), key=lambda row: row[:2]):
        answers[number].append(text)
    return answers


@FEW
@given(cases=st.lists(variants_to_write(), min_size=8, max_size=8))
def test_variants(spark, cases, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("variants")
    frames = []
    for number, (rows, schema, options) in enumerate(cases):
        paths = [folder / f"{number}-{writer}.parquet" for writer in WRITERS]
        for path, writer in zip(paths, WRITERS, strict=True):
            pv.write(path, pv.VariantArray.from_variants(rows), schema=schema, writer=writer, **options)
            assert list(pv.open(path).read()) == rows
            assert pv.open(path).validate().ok
        mine, other = (pq.read_table(path) for path in paths)
        assert mine.equals(other)
        # Of the newest versions. SQL of DuckDB reads what it cannot return to Arrow.
        notes = [note for note in pv.open(paths[0]).validate().engines if "to Arrow" not in note.why]
        refused = {note.engine.split()[0] for note in notes if note.engine.endswith((" 2.0", " 4.3"))}
        if "duckdb" not in refused:
            mine, other = map(by_duckdb, paths)
            assert mine == other
        if "spark" not in refused:
            frames += [
                spark.read.schema("v variant").parquet(str(path)).selectExpr("to_json(v) AS x") for path in paths
            ]
    assert frames
    answers = by_spark(spark, frames)
    assert answers[::2] == answers[1::2]


@FEW
@given(cases=st.lists(tables_to_write(), min_size=8, max_size=8))
def test_tables_of_every_type(spark, cases, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("tables")
    frames = []
    for number, (table, options) in enumerate(cases):
        mine, other = folder / f"{number}-native.parquet", folder / f"{number}-pyarrow.parquet"
        pq.write_table(table, other, store_decimal_as_integer=True, store_schema=False)
        with mine.open("wb") as sink:
            writer = PageFileWriter(sink, table.schema, **options)
            writer.write_batch(table)
            writer.close({})
        assert str(pq.read_table(mine).to_pylist()) == str(pq.read_table(other).to_pylist())
        frames += [spark.read.parquet(str(path)).selectExpr("to_json(struct(*)) AS x") for path in (mine, other)]
    answers = by_spark(spark, frames)
    assert answers[::2] == answers[1::2]
    assert [len(rows) for rows in answers[::2]] == [len(table) for table, _ in cases]
