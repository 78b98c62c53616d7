"""Fields of few rows, and fields with values of several types: scans answer as over Parquet files."""

import json

import pytest

import parquet_variant as pv

pytest.importorskip("vortex")

OFTEN = {"id": 7, "mixed": "x", "text": "often"}
ROWS = [
    *(json.dumps(OFTEN | {"id": number, "mixed": number if number % 2 else str(number)}) for number in range(90)),
    *(json.dumps({"id": number, "rare": {"deep": number, "list": [number, "x"]}}) for number in range(90, 100)),
    '{"text": {"an": "object"}, "rare": "no object"}',
    "null",
    None,
]
QUERIES = [
    {"a": "$.rare.deep:bigint"},
    {"a": "$.rare.list[0]:int", "b": "$.rare.list[*]:string", "c": "$.rare"},
    {"a": "$.rare:string", "b": "$.id:string", "c": "$.id:smallint"},
    {"a": "$.mixed:string", "b": "$.mixed:bigint", "c": "$.text:string"},
    {"a": "$.nowhere.at.all:string", "b": "$.id.below:string", "c": "$.mixed[0]:int"},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rare")
    array = pv.parse_json(ROWS)
    pv.write(folder / "a.parquet", array)
    for layout in ("variant", "struct"):
        pv.write(folder / f"{layout}.vortex", array, layout=layout, schema="infer")
    return folder


@pytest.mark.parametrize("where", [None, "a is not null", "a > '95'", "a = 'no object' or a is null"])
@pytest.mark.parametrize("columns", QUERIES, ids=str)
@pytest.mark.parametrize("layout", ["variant", "struct"])
def test_answers_are_those_of_parquet(files, columns, where, layout):
    if where is not None and "'" in where and not columns["a"].endswith("string"):
        where = "a > 95" if ">" in where else "a = 91 or a is null"
    wanted = pv.open(files / "a.parquet").scan(columns, where).to_arrow()
    for options in ({}, {"skipping": False}):
        found = pv.open(files / f"{layout}.vortex").scan(columns, where, **options).to_arrow()
        for name in columns:
            pair = [pv.to_json(item[name]) if columns[name] == "$.rare" else item[name] for item in (found, wanted)]
            assert pair[0].to_pylist() == pair[1].to_pylist()


@pytest.mark.parametrize("layout", ["variant", "struct"])
def test_values_of_other_types_are_null_without_casts(files, layout):
    scan = pv.open(files / f"{layout}.vortex").scan(
        {"a": "$.id:string", "b": "$.id:tinyint", "c": "$.rare:string"}, cast=False
    )
    array = pv.parse_json(ROWS)
    for name, path, kind in (("a", "$.id", "string"), ("b", "$.id", "tinyint"), ("c", "$.rare", "string")):
        assert scan.to_arrow()[name].to_pylist() == pv.get_variant_element(array, path, kind).to_pylist()
