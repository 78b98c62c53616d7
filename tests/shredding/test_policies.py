"""Policies: what each chooses, and that it says why."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import PathError, SchemaError, VariantError
from parquet_variant.inference.columns import best_column, typed_count, typed_share
from parquet_variant.inference.infer import POLICIES, infer, policy_named
from parquet_variant.inference.policies.auto import AutoPolicy, MapRules, map_reason
from parquet_variant.inference.policies.decision import InferenceResult, schema_of_leaves
from parquet_variant.inference.policies.explicit import ExplicitPolicy, HintsPolicy, WorkloadPolicy
from parquet_variant.inference.policies.spark import SparkPolicy
from parquet_variant.inference.profile import Profile
from parquet_variant.types.path import VariantPath


def rows(*values: object) -> pv.VariantArray:
    return pv.parse_json([json.dumps(value) for value in values])


def ddl(values: pv.VariantArray, policy: object = None) -> str:
    return infer(values, policy).schema.to_ddl()


def reason(result: InferenceResult, path: str) -> str:
    decision = result.decision(path)
    assert decision is not None and str(decision.path) == str(VariantPath.parse(path))
    return decision.reason


class TestColumnType:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["1", "300"], "bigint"),
            (["1.5", "20"], "decimal(3,1)"),
            (["1.25", "99999999999999999999"], "decimal(22,2)"),
            (["99999999999999999999"], "decimal(20,0)"),
            (["-9223372036854775808", "0.5"], "decimal(20,1)"),
            (["0.001"], "decimal(4,3)"),
            (["1e300", "2e10", "1"], "double"),
            (['"2024-01-01"', '"2024-01-02T00:00:00Z"'], "string"),
            (['"1"', '"2"'], "string"),
            (["true", "false", "null"], "boolean"),
        ],
    )
    def test_the_type_holds_the_data_exactly(self, texts: list[str], expected: str) -> None:
        array = pv.parse_json(texts)
        assert ddl(array) == expected
        assert pv.shred_variant(array, expected).to_unshredded().to_pylist() == array.to_pylist()

    def test_a_few_wide_decimals_do_not_widen_the_column(self) -> None:
        texts = ["12.25"] * 500 + ["0." + "1" * 30]
        column = best_column(Profile.of_array(pv.parse_json(texts)).root)
        assert column.name == "decimal(18,16)" or column.arrow.precision <= 18
        assert column.typed == 500 and list(column.other_types.values()) == [1]

    def test_a_few_decimals_do_not_widen_long_ids(self) -> None:
        texts = [str(9_000_000_000_000_000_000 + n) for n in range(500)] + ["0.5"]
        column = best_column(Profile.of_array(pv.parse_json(texts)).root)
        assert (column.name, column.typed, column.other_types) == ("bigint", 500, {"number beyond bigint": 1})

    def test_decimals_over_38_digits_leave_the_least_behind(self) -> None:
        texts = ["1" * 30 + ".5"] * 5 + ["0." + "1" * 30] * 3
        column = best_column(Profile.of_array(pv.parse_json(texts)).root)
        assert column.typed == 5 and column.arrow.precision <= 38

    def test_what_is_said_to_be_held_is_held(self) -> None:
        generator = random.Random(3)
        for _ in range(40):
            texts = [
                generator.choice(
                    [
                        str(generator.randint(-(10 ** generator.randint(1, 18)), 10**9)),
                        f"{generator.randint(0, 10**6)}.{generator.randint(0, 10**5)}",
                        '"s"',
                        "null",
                        "1.5e9",
                    ]
                )
                for _ in range(30)
            ]
            array = pv.parse_json(texts)
            root = Profile.of_array(array).root
            for name in ("bigint", "int", "smallint", "decimal(9,2)", "decimal(38,10)", "string", "double"):
                shredded = pv.shred_variant(array, name)
                typed = len(array) - shredded.storage.field("typed_value").null_count
                held = typed_count(root, pv.ShreddingSchema.from_ddl(name))
                assert held == typed if name in ("string", "double") else held <= typed
            chosen = infer(array).schema
            if chosen.type is not None:
                shredded = pv.shred_variant(array, chosen)
                typed = len(array) - shredded.storage.field("typed_value").null_count
                assert typed_share(root, chosen) * (len(array) - texts.count("null")) <= typed + 1e-6


class TestAuto:
    def test_majority_type_with_the_rest_in_the_residual(self) -> None:
        result = infer(rows(*[{"Task": n} for n in range(72)], *[{"Task": "x"}] * 28))
        assert result.schema.to_ddl() == "Task bigint"
        assert result.decision("$.Task").typed_share == 0.72
        assert reason(result, "$.Task") == "72.0% number, 28.0% string"

    def test_no_majority_is_a_column_without_a_type(self) -> None:
        result = infer(rows(*[{"a": v, "b": 1} for v in (1, "x", True, [1], {"k": 1})]))
        assert result.schema.to_ddl() == "a variant, b bigint"
        assert reason(result, "$.a").startswith("no type has 30%: ")

    def test_rare_paths_stay_in_the_residual(self) -> None:
        result = infer(rows(*[{"a": 1}] * 19, {"a": 1, "rare": 1}))
        assert result.schema.to_ddl() == "a bigint"
        assert reason(result, "$.rare") == "in 5.00% of the rows, under 15%"

    def test_the_most_frequent_of_rare_paths_have_columns(self) -> None:
        kinds = [{"kind": f"k{n}", **{f"only_{n}_{m}": m for m in range(3)}} for n in range(10)]
        assert len(list(infer(rows(*kinds * 3)).schema.leaves())) == 31
        assert ddl(rows(*kinds * 3), AutoPolicy(least_columns=0)) == "kind string"

    def test_sql_nulls_do_not_make_a_path_rare(self) -> None:
        array = pv.parse_json(['{"a": 1}', *[None] * 99])
        assert ddl(array) == "a bigint"

    def test_nulls_do_not_count_against_a_type(self) -> None:
        result = infer(rows(*[{"a": None, "b": None}] * 9, {"a": 1, "b": None}))
        assert result.schema.to_ddl() == "a bigint"
        assert reason(result, "$.b") == "only Variant nulls"

    def test_arrays_of_objects_are_shredded(self) -> None:
        array = rows(*[{"tags": [{"k": "a", "v": 1}, {"k": "b"}], "empty": []}] * 3)
        result = infer(array)
        assert result.schema.to_ddl() == "empty variant, tags array<struct<k: string, v: bigint>>"
        assert reason(result, "$.empty") == "only empty arrays"

    def test_object_and_array_conflict_keeps_the_majority(self) -> None:
        support = [{"version_added": "1"}] * 8 + [[{"version_added": "1"}, {"version_added": "2"}]] * 2
        result = infer(rows(*[{"support": item} for item in support]))
        assert result.schema.to_ddl() == "support struct<version_added: string>"
        assert reason(result, "$.support") == "80.0% object, 20.0% array"

    def test_maps_are_residual_but_for_their_common_keys(self) -> None:
        documents = [
            {
                "name": f"p{n}",
                "versions": {f"{n % 7}.{n}.{k}": {"main": "x", "size": k, "dist": {"sha": "y"}} for k in range(5)},
                "time": {"created": "2020", **{f"{n % 7}.{n}.{k}": "2021" for k in range(5)}},
            }
            for n in range(60)
        ]
        result = infer(rows(*documents))
        assert result.schema.to_ddl() == "name string, time struct<created: string>, versions variant"
        assert reason(result, "$.versions") == "a map: 300 keys, 1.7% of them in an object, 100% alike"

    def test_a_union_of_event_types_is_not_a_map(self) -> None:
        # Many rare keys, but of all kinds.
        events = [
            {"type": n % 40, f"text{n % 40}": "x", f"count{n % 40}": n, f"nested{n % 40}": {f"own{n % 40}": True}}
            for n in range(400)
        ]
        root = Profile.of_array(rows(*events)).root
        assert root.key_count == 121 and map_reason(root, MapRules()) is None

    def test_a_single_document_with_thousands_of_keys_is_a_map(self) -> None:
        result = infer(rows({"by_id": {f"id{n}": {"n": n} for n in range(2000)}}))
        assert result.schema.to_ddl() == "by_id variant"

    def test_the_budget_keeps_what_most_rows_have(self) -> None:
        wide = [{f"k{n}": n for n in range(50)} | ({"often": 1} if row % 2 else {}) for row in range(10)]
        result = infer(rows(*wide), AutoPolicy(max_columns=50))
        assert len(list(result.schema.leaves())) == 50
        assert result.schema.get("$.often") is None
        assert reason(result, "$.often") == "over the budget of 50 columns: other paths are in more rows or save more"

    def test_names_that_differ_only_in_case(self) -> None:
        array = rows({"id": 1, "ID": 2, "Id": 3}, {"ID": 4, "o": {"k": 1, "K": 2}})
        result = infer(array)
        assert result.schema.to_ddl() == "ID bigint, o struct<K: bigint>"
        assert reason(result, "$.id") == "differs from 'ID' only in case, which not every reader can tell apart"
        assert pv.shred_variant(array, result.schema).to_pylist() == array.to_pylist()

    def test_depth_is_limited(self) -> None:
        nested: object = 1
        for _ in range(80):
            nested = {"d": nested}
        assert infer(rows(nested)).schema.depth <= 52

    def test_scalars_and_empty_input(self) -> None:
        assert ddl(rows(1, 2)) == "bigint"
        assert ddl(rows({}, {})) == "variant"
        assert infer(Profile()).schema.kind == "variant" and infer(Profile()).decisions == ()
        assert ddl(pv.parse_json([None, None])) == "variant"

    def test_every_path_outside_has_a_reason(self) -> None:
        result = infer(rows(*[{"a": 1, "b": [], "c": {"d": None}}] * 20, {"x": 1, "y": {"z": 1}}))
        assert {str(d.path) for d in result.decisions} >= {"$['a']", "$['b']", "$['c']", "$['x']", "$['y']"}
        assert all(decision.reason for decision in result.decisions)


class TestSpark:
    def test_one_other_type_makes_a_column_without_a_type(self) -> None:
        result = infer(rows(*[{"a": 1, "b": "x"}] * 99, {"a": "no", "b": None}), "spark")
        assert result.schema.to_ddl() == "a variant, b string"
        assert reason(result, "$.a") == "types differ"

    def test_numbers_are_bigint_or_decimals_of_18_or_38_digits(self) -> None:
        array = pv.parse_json(['{"i": 1, "d": 1.5, "w": 12345678901234567.125, "m": 1}', '{"i": 2, "d": 2.25}'])
        assert ddl(array, "spark") == "d decimal(18,2), i bigint, m bigint, w decimal(38,3)"

    def test_only_the_first_rows_count(self) -> None:
        array = rows(*[{"a": 1}] * 10, *[{"b": 1}] * 10)
        assert ddl(array, SparkPolicy(rows=10)) == "a bigint"
        assert ddl(array, SparkPolicy()) == "a bigint, b bigint"
        assert ddl(array, SparkPolicy(sample_bytes=1)) == "a bigint"

    def test_the_width_counts_all_columns(self) -> None:
        result = infer(rows({f"k{n:03}": n for n in range(400)}), "spark")
        columns = sum(1 + (node.type is not None) for _, node in result.schema.walk())
        assert columns <= 300 < columns + 2
        assert reason(result, "$.k399") == "over the width of 300 columns"

    def test_the_choice_is_that_of_spark(self, spark: object, tmp_path: object) -> None:
        texts = [
            json.dumps({"id": n, "s": "x", "mixed": n if n % 50 else "y", "o": {"p": n / 8}, "l": [{"q": n}], "e": []})
            for n in range(200)
        ]
        frame = spark.createDataFrame([(text,) for text in texts], "j string").coalesce(1)
        path = f"{tmp_path}/spark"
        names = ("spark.sql.variant.writeShredding.enabled", "spark.sql.variant.inferShreddingSchema")
        before = {name: spark.conf.get(name, None) for name in names}
        try:
            for name in names:
                spark.conf.set(name, "true")
            frame.selectExpr("parse_json(j) AS v").write.parquet(path)
        finally:
            for name, value in before.items():
                spark.conf.unset(name) if value is None else spark.conf.set(name, value)
        found = pv.open(path).inspect().columns[0].paths
        ours = infer(pv.parse_json(texts), "spark").schema
        assert {item.path for item in found} == {str(place) for place, _ in ours.walk()}
        untyped = {str(place) for place, node in ours.walk() if node.kind == "variant"}
        assert {item.path for item in found if set(item.types) == {"variant"}} == untyped


class TestExplicit:
    @pytest.mark.parametrize(
        "spelling",
        [
            "a bigint",
            '{"object": {"a": "bigint"}}',
            pa.schema([("a", pa.int64())]),
            pv.ShreddingSchema.from_ddl("a bigint"),
        ],
    )
    def test_every_spelling_is_read(self, spelling: object) -> None:
        assert ddl(rows({"a": "not a number"}), ExplicitPolicy(spelling)) == "a bigint"

    def test_it_says_what_the_schema_does_to_the_data(self) -> None:
        result = infer(rows({"a": 1, "b": {"c": 1}}, {"a": "x"}), ExplicitPolicy("a bigint, z date"))
        assert result.decision("$.a").typed_share == 0.5
        assert reason(result, "$.z") == "given, but not in the data"
        assert reason(result, "$.b") == "not given"

    def test_a_bad_schema_is_refused(self) -> None:
        with pytest.raises(SchemaError):
            infer(rows(1), ExplicitPolicy("a nonsense"))


class TestHints:
    def test_types_skips_and_frequency(self) -> None:
        array = rows(*[{"a": 1, "b": {"c": 2, "secret": "x"}, "tmp_1": 3, "l": [{"q": 1}]}] * 3, {"b": {"c": 4}})
        policy = HintsPolicy({"$.a": "decimal(9,2)"}, 2, skip=["$.b.secret"], skip_regexp=["^tmp_"])
        result = infer(array, policy)
        assert result.schema.to_ddl() == "a decimal(9,2), b struct<c: bigint>, l array<struct<q: bigint>>"
        assert reason(result, "$.a") == "hint"
        assert reason(result, "$.b.c") == "number 1 by frequency"
        assert reason(result, "$.b.secret") == "SKIP $['b']['secret']"
        assert reason(result, "$.tmp_1") == "SKIP REGEXP '^tmp_'"

    def test_a_skipped_path_is_kept_as_a_value(self) -> None:
        array = rows({"a": 1, "b": 2})
        schema = infer(array, HintsPolicy(skip=["$.b"])).schema
        assert pv.shred_variant(array, schema).to_pylist() == [{"a": 1, "b": 2}]

    def test_max_columns(self) -> None:
        result = infer(rows({"a": 1, "b": 2}, {"a": 1}), HintsPolicy(max_columns=1))
        assert result.schema.to_ddl() == "a bigint"
        assert reason(result, "$.b") == "number 2 by frequency, over max_columns=1"

    def test_bad_hints_are_refused(self) -> None:
        with pytest.raises(VariantError, match="invalid regular expression"):
            HintsPolicy(skip_regexp=["("])
        with pytest.raises(PathError):
            HintsPolicy(skip=["b"])
        with pytest.raises(SchemaError):
            HintsPolicy({"$.a": "nonsense"})


class TestWorkload:
    def test_queried_paths_come_first(self) -> None:
        array = rows(*[{"often": 1, "rare": None} for _ in range(99)], {"often": 1, "rare": {"deep": [1, 2]}})
        queries = ["SELECT variant_get(v, '$.rare.deep[0]', 'int') FROM t", "SELECT 'cost: $5', '$bad' FROM t"]
        result = infer(array, WorkloadPolicy.of_queries(queries, max_columns=1))
        assert result.schema.to_ddl() == "rare struct<deep: array<bigint>>"
        assert reason(result, "$.rare.deep[*]") == "queried, weight 1"
        assert reason(result, "$.often") == "chosen by auto, over the budget of 1 columns"
        roomy = infer(array, WorkloadPolicy.of_queries(queries, max_columns=9)).schema
        assert roomy.to_ddl() == "often bigint, rare struct<deep: array<bigint>>"

    def test_weights_decide_the_order(self) -> None:
        array = rows({"a": 1, "b": 2, "c": 3})
        assert ddl(array, WorkloadPolicy({"$.b": 1, "$.c": 5}, 1, fallback=None)) == "c bigint"

    def test_a_path_to_an_object_takes_its_leaves(self) -> None:
        array = rows({"o": {"x": 1, "y": "s"}, "z": 1})
        assert ddl(array, WorkloadPolicy({"$.o": 1}, fallback=None)) == "o struct<x: bigint, y: string>"

    def test_an_earlier_schema_keeps_its_paths(self) -> None:
        array = rows(*[{"a": 1}] * 99, {"a": 1, "b": "x"})
        earlier = pv.ShreddingSchema.from_ddl("b string, gone date")
        assert ddl(array, WorkloadPolicy.of_schema(earlier)) == "a bigint, b string"


class TestNames:
    def test_all_policies_have_their_name(self) -> None:
        given = {
            "explicit": ExplicitPolicy("a int"),
            "workload": WorkloadPolicy({"$.a": 1}),
        }
        for name in POLICIES:
            policy = given.get(name) or policy_named(name)
            assert policy.name == name
            assert isinstance(infer(rows({"a": 1}), policy), InferenceResult)
            assert hash(policy) == hash(policy)

    def test_unknown_and_incomplete_names_are_refused(self) -> None:
        for name in ("nonsense", "explicit", "workload"):
            with pytest.raises(VariantError) as caught:
                infer(rows(1), name)
            assert caught.value.reason == "bad-policy"


class TestSchemaTree:
    def test_arrays_and_objects_at_one_path(self) -> None:
        leaf = pv.ShreddingSchema.from_ddl("int")
        parse = VariantPath.parse
        both = {parse("$.a[*].x"): leaf, parse("$.a[*].y"): leaf, parse("$.a.z"): leaf}
        assert schema_of_leaves(both).to_ddl() == "a array<struct<x: int, y: int>>"
        assert schema_of_leaves({}).kind == "variant"
        assert schema_of_leaves({parse("$"): leaf}).to_ddl() == "int"


def test_files_for_duckdb_have_no_residual_of_the_root(tmp_path):
    """Rare keys of the root, spread over the file, and fields of which no type is frequent."""
    lines = [
        json.dumps(
            {"kind": "ab"[n % 2], "o": {"n": n, "mixed": [n, str(n), [n], {"x": n}, True][n % 5]}}
            | ({"rare": {"id": n, "rarer": {"x": 1} if n % 3000 == 0 else None}} if n % 500 == 0 else {})
        )
        for n in range(12_000)
    ]
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(lines))
    found = {}
    for readers in ((), "duckdb"):
        dest = tmp_path / f"out-{readers or 'any'}.parquet"
        pv.ingest(source, dest, one_file=True, readers=readers)
        array = pv.open(dest).read()
        value = array.storage.field("value") if "value" in [field.name for field in array.storage.type] else None
        found[readers] = 0 if value is None else len(value) - value.null_count
        back = [json.loads(text) for text in pv.to_json(array).to_pylist()]
        assert back == [json.loads(line) for line in lines]
        untyped = [leaf for leaf in array.schema.to_ddl().split() if "variant" in leaf.lower()]
        assert bool(untyped) == (not readers), array.schema.to_ddl()
    assert found == {(): 24, "duckdb": 0}
    with pytest.raises(pv.VariantError, match="unknown reader 'oracle': use duckdb"):
        pv.ingest(source, tmp_path / "b", readers="oracle")
    with pytest.raises(pv.VariantError, match="requires the policy auto"):
        pv.ingest(source, tmp_path / "b", readers="duckdb", policy="spark")
