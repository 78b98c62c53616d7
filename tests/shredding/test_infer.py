"""Inference end to end: on the shared data, after writing, over time, and on more paths than fit."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.inference.explain import explain, explain_diff, explain_json, slow_paths
from parquet_variant.inference.infer import find_drift, infer
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.spark import SparkPolicy
from parquet_variant.inference.profile import Profile

DATA = ("gharchive.ndjson.zst", "windows_events.ndjson.zst", "cve_v5.ndjson.zst", "usgs_earthquakes.ndjson")


def lines(folder: Path, name: str, count: int) -> list[str]:
    raw = (folder / "data" / name).read_bytes()
    if name.endswith(".zst"):
        zstandard = pytest.importorskip("zstandard")
        raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw)).read()
    return [line for line in raw.decode().split("\n") if line.strip()][:count]


def rows(*values: object) -> pv.VariantArray:
    return pv.parse_json([json.dumps(value) for value in values])


class TestOnData:
    @pytest.mark.parametrize("name", DATA)
    def test_the_order_of_rows_does_not_matter(self, variant_test_data: Path, name: str) -> None:
        array = pv.parse_json(lines(variant_test_data, name, 1500))
        whole = Profile.of_array(array)
        order = np.random.default_rng(11).permutation(len(array))
        parts = [Profile.of_array(array.take(part)) for part in np.array_split(order, 5)]
        merged = parts[3].merge(parts[0]).merge(parts[4].merge(parts[2]).merge(parts[1]))
        assert merged == whole
        assert infer(merged).schema == infer(whole).schema

    @pytest.mark.parametrize("name", DATA)
    def test_predicted_typed_shares_are_those_of_the_file(
        self, variant_test_data: Path, name: str, tmp_path: Path
    ) -> None:
        array = pv.parse_json(lines(variant_test_data, name, 1500))
        profile = Profile.of_array(array)
        result = infer(profile)
        pv.write(tmp_path / "a.parquet", array, schema=result.schema)
        compared = result.compared_with(pv.open(tmp_path).inspect().columns[0].paths)
        known = {path: shares for path, shares in compared.items() if None not in shares}
        assert len(known) > 10
        for path, (predicted, actual) in known.items():
            assert actual == pytest.approx(predicted, abs=1e-9), str(path)

    def test_more_cells_are_typed_than_with_the_rules_of_spark(self, variant_test_data: Path) -> None:
        profile = Profile.of_array(pv.parse_json(lines(variant_test_data, "windows_events.ndjson.zst", 30_000)))
        auto, spark = infer(profile), infer(profile, SparkPolicy())
        task = auto.schema.get("$.Task")
        assert task is not None and task.type is not None
        assert spark.schema.get("$.Task").kind == "variant"
        typed = {
            name: sum(item.typed for item in result.predictions.values())
            for name, result in (("auto", auto), ("spark", spark))
        }
        assert typed["auto"] > typed["spark"]


class TestExplain:
    def test_the_tree_names_every_path_once(self) -> None:
        result = infer(rows(*[{"a": {"b": [1, "x"]}, "c": None}] * 9, {"d": 1, "tab\t": 1}))
        text = explain(result)
        assert len(text.splitlines()) == 1 + len(result.decisions) + len(slow_paths(result))
        assert "[*]  string" in text or "[*]  bigint" in text
        assert "'tab\\t'" in text

    def test_json_and_ddl_are_taken_back(self) -> None:
        result = infer(rows({"a": 1.5, "b": [{"c": True}]}))
        found = json.loads(explain_json(result))
        assert pv.ShreddingSchema.from_json(found["schema"]) == result.schema
        assert pv.ShreddingSchema.from_ddl(found["ddl"]) == result.schema

    def test_a_changed_threshold_shows_a_diff(self) -> None:
        array = rows(*[{"a": 1, "mixed": "x"}] * 15, *[{"a": 1, "mixed": 1, "b": "x"}] * 5)
        before, after = infer(array), infer(array, AutoPolicy(min_row_share=0.5, min_type_share=0.9))
        assert explain_diff(before, before) == ""
        assert explain_diff(before, after).splitlines() == [
            "- $.b: string, 25.0% of rows (in 25.00% of the rows, under 50%)",
            "~ $.mixed: string -> variant (no type has 90%: 75.0% string, 25.0% number)",
        ]


class TestDrift:
    table = pv.ShreddingSchema.from_ddl("id bigint, nested struct<a: string, b: double>, tags array<string>, old date")

    def test_nothing_drifts_where_the_schema_fits(self) -> None:
        array = rows(*[{"id": n, "name": "x"} for n in range(20)])
        report = find_drift(infer(array).schema, Profile.of_array(array))
        assert report.drifts == () and not report.pays
        assert str(report) == "no drift: the schema fits the data"

    def test_hot_shifted_and_dead_paths_are_distinguished(self) -> None:
        values = [{"id": f"id-{n}", "nested": {"a": "x", "b": 1e9 * n, "new": n}, "tags": [n]} for n in range(50)]
        report = find_drift(self.table, Profile.of_array(rows(*values)))
        changes = {str(drift.path): (drift.change, drift.before, drift.after) for drift in report.drifts}
        assert changes["$['id']"] == ("shifted", "bigint", "string")
        assert changes["$['tags'][*]"] == ("shifted", "string", "bigint")
        assert changes["$['nested']['new']"] == ("hot", None, "bigint")
        assert changes["$['old']"] == ("dead", "date", None)
        assert "$['nested']['a']" not in changes

    def test_only_what_pays_is_merged(self) -> None:
        values = [{"id": n, "text": "a long text that is worth a column of its own"} for n in range(50)]
        profile = Profile.of_array(rows(*values))
        report = find_drift(pv.ShreddingSchema.from_ddl("id decimal(20,2), old date"), profile)
        # A decimal holds the integers as well: no reason to write the column again.
        assert report.merged.to_ddl() == "id decimal(20,2), old date, text string"
        assert report.pays and report.saved_share > 0.5
        assert not find_drift(pv.ShreddingSchema.from_ddl("id bigint"), profile, min_saving=0.99).pays
        dropped = find_drift(pv.ShreddingSchema.from_ddl("id bigint, old date"), profile, drop_dead=True)
        assert dropped.merged.to_ddl() == "id bigint, text string"

    def test_an_object_that_became_an_array(self) -> None:
        values = [{"nested": [{"a": "x"}, {"a": "y"}]} for _ in range(10)]
        report = find_drift(pv.ShreddingSchema.from_ddl("nested struct<a: string>"), Profile.of_array(rows(*values)))
        assert report.merged.to_ddl() == "nested array<struct<a: string>>"

    def test_no_rows(self) -> None:
        report = find_drift(self.table, Profile())
        assert report.merged == self.table and not report.pays


class TestManyPaths:
    def test_more_than_a_million_paths_are_bounded(self) -> None:
        """1.2 million distinct paths in 12 batches; in a process of its own, so that its peak of memory is known."""
        script = """
import resource, sys
import numpy as np
from parquet_variant.kernels.shredding.json_batch import parse_text
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.infer import find_drift, infer

def profile(text):
    data = np.frombuffer(text.encode(), np.uint8)
    return Profile.of_tape(parse_text(data, np.array([0]), np.array([len(data)])).tape)

merged = profile('{"hot": {"x": 1}, "map": {"a": 1}}')
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for batch in range(12):
    keys = ",".join(f'"key-{batch}-{n}":{n}' for n in range(100_000))
    merged = merged.merge(profile('{"hot": {"x": 1}, "map": {%s}}' % keys))
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
ddl = infer(merged).schema.to_ddl()
print(len(merged), merged.path_count, merged.overflow_values, merged.get("$.hot.x").count, grown, ddl)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        kept, paths, overflow, hot, grown, ddl = done.stdout.split(maxsplit=5)
        assert int(kept) < 1000
        assert 1_080_000 < int(paths) < 1_320_000
        assert int(overflow) > 1_190_000
        assert int(hot) == 13
        assert int(grown) < 700  # megabytes, the batch's own tape among them
        assert ddl.strip() == "hot struct<x: bigint>, map variant"


def test_the_public_function_takes_arrays_and_profiles() -> None:
    array = rows({"a": 1}, {"a": "x"}, {"a": 2})
    assert pv.infer_shredding_schema(array).to_ddl() == "a bigint"
    assert pv.infer_shredding_schema(Profile.of_array(array), AutoPolicy(min_type_share=0.9)).to_ddl() == "a variant"
    shredded = pv.shred_variant(array, "a bigint")
    assert pv.infer_shredding_schema(shredded, "spark").to_ddl() == "a variant"
    assert pv.infer_shredding_schema(pv.VariantArray(pa.array([], array.storage.type))).kind == "variant"


def test_objects_with_tens_of_thousands_of_keys_cost_little_more_than_their_columns():
    import sys

    def calls(keys):
        rows = [json.dumps({f"k{key}_{row}": key for key in range(keys)}) for row in range(2)]
        profile = Profile.of_array(pv.parse_json(rows))
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event == "call"

        sys.setprofile(counted)
        try:
            result = infer(profile)
        finally:
            sys.setprofile(None)
        return count, result

    few, _ = calls(2_000)
    many, result = calls(32_000)
    assert many < 1.5 * few  # the number of calls of Python functions does not depend on the number of keys
    assert len(list(result.schema.leaves())) == result.policy.max_columns
    assert "only the 1,200 in most rows are considered" in result.decision("$.no_such_key").reason


def test_considered_fields_are_those_in_most_rows_and_of_these_the_largest():
    rows = [{**{f"r{row}_{key}": 1 for key in range(1000)}, "common": 1} for row in range(3)]
    rows[0] |= {f"z{key}": "a long text" * 9 for key in range(20)}
    profile = Profile.of_array(pv.parse_json([json.dumps(row) for row in rows]))
    fields = profile.root.largest_fields(15, by_rows=True)
    names = [field.segment for field in fields]
    assert len(names) == 15
    assert names[0] == "common"
    assert all(name.startswith("z") for name in names[1:])
    assert names == sorted(names)
    assert profile.root.field("z7").count == 1
    assert profile.root.field("z77") is None
