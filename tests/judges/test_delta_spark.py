"""delta-spark reads and changes the tables that parquet-variant writes, and the other way round."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.judges.conftest import EngineProcess

import parquet_variant as pv

# Options of `pv.write` for the kinds of table that both sides must agree on.
KINDS: dict[str, dict[str, Any]] = {
    "unshredded": {"properties": {"delta.enableVariantShredding": "false"}},
    "shredded": {},
    "preview": {"preview": True},
    "deletion vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "column mapping": {"properties": {"delta.columnMapping.mode": "name"}},
    "row tracking": {"properties": {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}},
    "v2 checkpoints": {"properties": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"}},
    "change data": {"properties": {"delta.enableChangeDataFeed": "true"}},
    "partitioned": {"partition_by": ["part"]},
}


def _value(number: int, shape: int) -> dict[str, Any]:
    """A value whose field `n` is a number in most rows, a string in some, and missing in others."""
    shapes: list[dict[str, Any]] = [
        {"n": number, "kind": f"k{number % 3}", "o": {"x": number + 0.5}},
        {"n": str(number), "kind": None},
        {"kind": "none", "list": [number, {"a": "b"}]},
    ]
    return shapes[shape % 3]


@dataclass
class BothSides:
    """One table, changed by both engines, and the rows that it must hold.

    Parameters
    ----------
    engine
        The session with delta-spark.
    path
        The table's directory.
    rows
        The expected rows: id to partition and value.
    """

    engine: EngineProcess
    path: str
    rows: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"delta.`{self.path}`"

    def columns(self, ids: list[int], shape: int) -> dict[str, Any]:
        """New rows as columns; the expected rows gain them."""
        new = {number: (f"p{number % 2}", _value(number, shape)) for number in ids}
        self.rows.update(new)
        texts = [json.dumps(value) for _, value in new.values()]
        return {
            "id": pa.array(ids, pa.int64()),
            "part": [part for part, _ in new.values()],
            "v": pv.parse_json(texts),
        }

    def check(self) -> None:
        """Compare what both engines read with the expected rows."""
        expected = sorted(
            (number, part, json.dumps(value, sort_keys=True)) for number, (part, value) in self.rows.items()
        )
        ours = pv.open(self.path).to_arrow().select(["id", "part", "v"])
        variants = pv.VariantArray.from_arrow(ours, column="v") if ours.num_rows else None
        values = [json.loads(text) for text in pv.to_json(variants).to_pylist()] if variants is not None else []
        read = zip(ours["id"].to_pylist(), ours["part"].to_pylist(), values, strict=True)
        assert sorted((number, part, json.dumps(value, sort_keys=True)) for number, part, value in read) == expected
        theirs = self.engine.sql(f"SELECT id, part, to_json(v) FROM {self.name}")
        assert sorted((n, part, json.dumps(json.loads(text), sort_keys=True)) for n, part, text in theirs) == expected


def _table(engine: EngineProcess, path: Path, kind: str) -> BothSides:
    both = BothSides(engine, str(path / "table"))
    pv.write(both.path, both.columns(list(range(60)), 0), format="delta", **KINDS[kind])
    return both


def _delete_theirs(both: BothSides, bound: int) -> None:
    both.engine.sql(f"DELETE FROM {both.name} WHERE try_variant_get(v, '$.n', 'bigint') < {bound}")
    both.rows = {number: row for number, row in both.rows.items() if not int(row[1].get("n", bound)) < bound}


def _delete_ours(both: BothSides, bound: int) -> None:
    pv.open(both.path).delete(f"v:n::bigint < {bound}")
    both.rows = {number: row for number, row in both.rows.items() if not int(row[1].get("n", bound)) < bound}


def _update_theirs(both: BothSides, number: int) -> None:
    both.engine.sql(f"""UPDATE {both.name} SET v = parse_json('{{"n": -1, "new": true}}') WHERE id = {number}""")
    if number in both.rows:
        both.rows[number] = (both.rows[number][0], {"n": -1, "new": True})


def _update_ours(both: BothSides, number: int) -> None:
    pv.open(both.path).update({"v:kind": "'changed'"}, f"id = {number}")
    if number in both.rows:
        part, value = both.rows[number]
        both.rows[number] = (part, {**value, "kind": "changed"})


def _append_ours(both: BothSides, number: int) -> None:
    pv.open(both.path).append(both.columns([1000 + number, 2000 + number], number))


def _append_theirs(both: BothSides, number: int) -> None:
    value = _value(number, number)
    both.engine.sql(
        f"INSERT INTO {both.name} SELECT cast({3000 + number} AS bigint), 'p0', parse_json('{json.dumps(value)}')"
    )
    both.rows[3000 + number] = ("p0", value)


def _merge_theirs(both: BothSides, number: int) -> None:
    value = {"n": number, "merged": True}
    both.engine.sql(
        f"MERGE INTO {both.name} t USING (SELECT {number}L AS id, 'p1' AS part, parse_json('{json.dumps(value)}') AS v)"
        " s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    both.rows[number] = (both.rows[number][0] if number in both.rows else "p1", value)


def _merge_ours(both: BothSides, number: int) -> None:
    known = both.rows.get(number)
    source = both.columns([number], 1)
    if known is not None:
        both.rows[number] = (known[0], both.rows[number][1])
    merge = pv.open(both.path).merge(source, "target.id = source.id")
    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()


def _optimize_ours(both: BothSides, _: int) -> None:
    pv.open(both.path).optimize()


def _optimize_theirs(both: BothSides, _: int) -> None:
    both.engine.sql(f"OPTIMIZE {both.name}")


STEPS: list[Callable[[BothSides, int], None]] = [
    _delete_theirs, _delete_ours, _update_theirs, _update_ours, _append_ours, _append_theirs, _merge_theirs,
    _merge_ours, _optimize_ours, _optimize_theirs,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_side_changes_a_table_of_the_other(delta_spark: EngineProcess, tmp_path: Path, kind: str) -> None:
    both = _table(delta_spark, tmp_path, kind)
    both.check()
    for number, step in enumerate(STEPS):
        step(both, number + 3)
        if number % 3 == 0:
            both.check()
    both.check()


def _random_history(engine: EngineProcess, path: Path, seed: int, length: int) -> None:
    chance = random.Random(seed)
    both = _table(engine, path, chance.choice(list(KINDS)))
    for number in range(length):
        chance.choice(STEPS)(both, chance.randrange(70))
        if number % 3 == 0:
            both.check()
    both.check()


def test_a_random_history_of_both_sides(delta_spark: EngineProcess, tmp_path: Path) -> None:
    _random_history(delta_spark, tmp_path, random.randrange(1000), 15)


def test_a_random_history_with_spark_4_1(delta_spark_of_4_1: EngineProcess, tmp_path: Path) -> None:
    _random_history(delta_spark_of_4_1, tmp_path, random.randrange(1000), 12)


def test_versions_history_restore_and_vacuum(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "deletion vectors")
    pv.open(both.path).delete("id < 10")
    assert delta_spark.sql(f"SELECT count(*) FROM {both.name} VERSION AS OF 0") == [[60]]
    operations = [row[4] for row in delta_spark.sql(f"DESCRIBE HISTORY {both.name}")]
    assert operations[0] == "DELETE"
    delta_spark.sql(f"RESTORE TABLE {both.name} TO VERSION AS OF 0")
    both.check()
    pv.open(both.path).restore(version=1)
    assert delta_spark.sql(f"SELECT count(*) FROM {both.name}") == [[50]]
    delta_spark.sql(f"VACUUM {both.name}")
    assert delta_spark.sql(f"SELECT count(*), sum(variant_get(v, '$.n', 'bigint')) FROM {both.name}") == [[50, 1725]]


def test_vacuum_of_each_side_keeps_what_the_other_reads(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "deletion vectors")
    delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled=false")
    for number, (delete, optimize) in enumerate([(_delete_ours, _optimize_theirs), (_delete_theirs, _optimize_ours)]):
        both.engine.sql(f"DELETE FROM {both.name} WHERE id = {50 + number}")
        del both.rows[50 + number]
        delete(both, 10 * (number + 1))
        optimize(both, 0)
        _append_ours(both, number)
        if number == 0:
            both.engine.sql(f"VACUUM {both.name} RETAIN 0 HOURS")
        else:
            pv.open(both.path).vacuum(retention=timedelta(0), force=True)
        both.check()


def test_tables_of_delta_spark(delta_spark: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, part STRING, v VARIANT) USING delta "
        "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )
    both = BothSides(delta_spark, str(path))
    for number in range(4):
        _append_theirs(both, number)
    both.check()
    for number, step in enumerate(STEPS):
        step(both, number)
        if number % 3 == 0:
            both.check()
    both.check()


def test_generated_and_identity_columns(delta_spark: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "generated"
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (k BIGINT GENERATED ALWAYS AS IDENTITY, n INT, "
        "double_n INT GENERATED ALWAYS AS (n * 2), v VARIANT) USING delta"
    )
    delta_spark.sql(f"INSERT INTO delta.`{path}` (n, v) VALUES (1, parse_json('1'))")
    pv.open(str(path)).append({"n": pa.array([2], pa.int32()), "v": pv.parse_json(["2"])})
    delta_spark.sql(f"INSERT INTO delta.`{path}` (n, v) VALUES (3, parse_json('3'))")
    rows = delta_spark.sql(f"SELECT k, n, double_n, to_json(v) FROM delta.`{path}` ORDER BY n")
    assert [row[1:] for row in rows] == [[1, 2, "1"], [2, 4, "2"], [3, 6, "3"]]
    assert len({row[0] for row in rows}) == 3


def test_change_data_of_each_side(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "change data")
    pv.open(both.path).delete("id < 2")
    delta_spark.sql(f"DELETE FROM {both.name} WHERE id = 2")
    theirs = delta_spark.python(
        f"frame = spark.read.format('delta').option('readChangeFeed', 'true').option('startingVersion', 1)"
        f".load({both.path!r}).select('id', '_change_type')\nresult = sorted(list(row) for row in frame.collect())"
    )
    assert theirs == [[0, "delete"], [1, "delete"], [2, "delete"]]
    ours = pv.open(both.path).changes(since=1)
    assert sorted(zip(ours["id"].to_pylist(), ours["_change_type"].to_pylist(), strict=True)) == [
        (0, "delete"), (1, "delete"), (2, "delete"),
    ]  # fmt: skip


def test_streams_of_delta_spark_read_our_commits(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "shredded")
    pv.open(both.path).append(both.columns([100], 0))
    result = delta_spark.python(
        f"query = (spark.readStream.format('delta').load({both.path!r}).writeStream.format('memory').queryName('rows')"
        f".option('checkpointLocation', {str(tmp_path / 'checkpoint')!r}).trigger(availableNow=True).start())\n"
        "query.awaitTermination()\nresult = spark.sql('SELECT count(*) FROM rows').collect()[0][0]"
    )
    assert result == 61


def test_our_streams_read_commits_of_delta_spark(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "deletion vectors")
    pv.open(both.path).delete("id < 10")
    stream = (
        "spark.dataSource.register(pv.spark.VariantDataSource)\n"
        f"query = (spark.readStream.format('variant').option('format', 'delta').load({both.path!r})"
        f".writeStream.format('delta').option('checkpointLocation', {str(tmp_path / 'checkpoint')!r})"
        f".trigger(availableNow=True).start({str(tmp_path / 'copy')!r}))\nquery.awaitTermination()\nresult = None"
    )
    for rows in (50, 52):
        delta_spark.python(f"import parquet_variant as pv\n{stream}")
        copy = delta_spark.sql(f"SELECT count(*), count(DISTINCT id) FROM delta.`{tmp_path / 'copy'}`")
        assert copy == [[rows, rows]]
        for number in (1, 2):
            _append_theirs(both, number)
    assert len(pv.open(tmp_path / "copy").to_arrow()) == 52


def test_delta_spark_skips_files_by_statistics_of_columns(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "shredded")
    pv.open(both.path).append(both.columns(list(range(1000, 1060)), 0))

    def files(where: str) -> int:
        code = f"result = len(spark.read.format('delta').load({both.path!r}).where({where!r}).inputFiles())"
        return int(delta_spark.python(code))

    assert files("id >= 0") == 2
    assert files("id > 500") == 1
    # delta-spark 4.4 does not use the statistics of paths in a Variant, neither ours nor its own, which it can collect.
    for option in ("false", "true"):
        delta_spark.sql(f"SET spark.databricks.delta.variantShredding.collectVariantDataSkippingStats={option}")
        for getter in ("try_variant_get", "variant_get"):
            assert files(f"{getter}(v, '$.n', 'bigint') > 500") == 2, (option, getter)
    assert pv.open(both.path).scan({"n": ("$.n", "bigint")}, "n > 500").explain().files_pruned == 1


def test_both_sources_work_in_one_session(delta_spark: EngineProcess, tmp_path: Path) -> None:
    both = _table(delta_spark, tmp_path, "deletion vectors")
    pv.open(both.path).delete("id < 10")
    result = delta_spark.python(
        "import parquet_variant as pv\n"
        "spark.dataSource.register(pv.spark.VariantDataSource)\n"
        f"path = {both.path!r}\n"
        "ours = spark.read.format('variant').option('format', 'delta').load(path)\n"
        "theirs = spark.read.format('delta').load(path)\n"
        "joined = ours.alias('a').join(theirs.alias('b'), 'id').where('to_json(a.v) = to_json(b.v)').count()\n"
        "new = spark.range(5000, 5003).selectExpr('id', \"'p0' AS part\", \"parse_json('{\\\"n\\\": 1}') AS v\")\n"
        "new.write.format('variant').option('format', 'delta').mode('append').save(path)\n"
        "new.write.format('delta').mode('append').save(path)\n"
        "registered = pv.spark.register_table(spark, 'both_sources', path).count()\n"
        "result = [joined, spark.read.format('variant').load(path).count(), registered]"
    )
    assert result == [50, 56, 56]
