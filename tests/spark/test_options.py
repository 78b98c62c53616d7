"""Options of the data source: read whatever the case of their names, refused with a hint when nobody knows them."""

from __future__ import annotations

import json

import pytest

from parquet_variant.errors import PathError, VariantError
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.spark.datasource.options import ReadOptions, WriteOptions


def test_write_options_reach_the_writer_as_its_arguments():
    options = WriteOptions.of(
        {
            "PATH": "/t",
            "compressionlevel": "7",
            "rowGroupBytes": "1024",
            "sortBy": "$.a:int, $.b:string",
            "writer": "pyarrow",
        }
    )
    assert options.write == {
        "compression_level": 7,
        "row_group_bytes": 1024,
        "sort_by": ["$.a:int", "$.b:string"],
        "writer": "pyarrow",
    }
    assert (options.path, options.schema) == ("/t", None)


def test_a_schema_is_read_as_ddl_or_json():
    schema = ShreddingSchema.from_ddl("a bigint")
    for text in ("a bigint", schema.to_json()):
        assert WriteOptions.of({"path": "/t", "schema": text}).schema == schema
    assert WriteOptions.of({"path": "/t", "layout": "unshredded"}).schema == ShreddingSchema.variant()


def test_projected_paths_may_have_a_type():
    paths = {"mag": ["$.mag", "double"], "place": "$.place"}
    for name in ("columns", "paths"):
        options = ReadOptions.of({"path": "/t", name: json.dumps(paths)})
        assert options.paths == {"mag": ("$.mag", "double"), "place": ("$.place", None)}
        assert options.sources == ("/t",)
        text = "mag = $.mag, $.place, price=$.p:decimal(9,2), day"
        assert ReadOptions.of({"path": "/t", name: text}).paths == {
            "mag": ("$.mag", None), "place": ("$.place", None), "price": ("$.p", "decimal(9,2)"), "day": ("day", None)
        }  # fmt: skip


def test_several_sources_come_as_spark_lists_them():
    assert ReadOptions.of({"paths": '["file:/a", "file:///b", "s3://c/d"]'}).sources == ("/a", "/b", "s3://c/d")


@pytest.mark.parametrize(
    ("read", "options", "message"),
    [
        (WriteOptions, {"path": "/t", "compresion": "zstd"}, "unknown write option 'compresion'"),
        (WriteOptions, {"path": "/t", "rowGroupBytes": "many"}, "option rowGroupBytes is 'many'"),
        (WriteOptions, {"path": "/t", "rowGroupBytes": "-1"}, "give an integer of at least 1"),
        (WriteOptions, {"path": "/t", "compression": "zip"}, "compression is 'zip'"),
        (WriteOptions, {"path": "/t", "writer": "mine"}, "writer is 'mine': use native or pyarrow"),
        (WriteOptions, {"path": "/t", "layout": "round"}, "use final or unshredded"),
        (WriteOptions, {}, "no path"),
        *[
            (WriteOptions, {"path": "/t", "partitionBy": text}, "without duplicates")
            for text in ("", "a,", "a, a", "[]", "[1]")
        ],
        *[(WriteOptions, {"path": "/t", name: "[1]"}, "without duplicates") for name in ("sortBy", "bloomFilters")],
        (ReadOptions, {"path": "/t", "paths": '{"a": 1}'}, "option paths"),
        (ReadOptions, {"path": "/t", "paths": "{"}, r'"mag=\$\.properties\.mag:double, day"'),
        (ReadOptions, {"path": "/t", "partitionBytes": "0"}, "positive"),
        (ReadOptions, {"path": "/t", "partitionBytes": "abc"}, r"'abc': use another value \(an integer\)"),
        (ReadOptions, {"path": "/t", "colums": "{}"}, "unknown read option 'colums': did you mean 'columns'"),
    ],
)
def test_what_cannot_be_read_is_named(read, options, message):
    with pytest.raises(VariantError, match=message) as raised:
        read.of(options)
    assert raised.value.reason == "bad-option"


@pytest.mark.parametrize("name", ["sortBy", "bloomFilters"])
def test_paths_of_the_writer_are_read_before_there_is_a_job(name):
    with pytest.raises(PathError, match="descendants"):
        WriteOptions.of({"path": "/t", name: "$..x"})


def test_names_may_have_the_underscores_of_parameters():
    assert ReadOptions.of({"path": "/t", "merge_schema": "true"}).merge_schema
    assert WriteOptions.of({"path": "/t", "row_group_bytes": "7"}).write == {"row_group_bytes": 7}


def test_an_unknown_zone_is_reported_before_the_job():
    with pytest.raises(VariantError) as raised:
        ReadOptions.of({"path": "/t", "timeZone": "Mars"})
    assert raised.value.reason == "bad-zone"
