"""Apache's corpus of shredded files, through file read, extract, rewrite and validate."""

from __future__ import annotations

import pytest

import parquet_variant as pv
from parquet_variant.errors import ConflictError, SchemaError
from shredded_corpus import CASES, CONTRADICTORY, MISSING, READABLE, REFUSED, VIOLATIONS, expected, name, path

if not CASES:
    pytest.skip(MISSING, allow_module_level=True)


def steps(variant):
    """All paths of a value with what is there."""
    todo = [(pv.VariantPath(), variant)]
    while todo:
        path, value = todo.pop()
        yield path, value
        if value.type == "object":
            todo += [(path / key, child) for key, child in value.items()]
        elif value.type == "array":
            todo += [(path / index, child) for index, child in enumerate(value)]


@pytest.mark.parametrize("case", READABLE, ids=name)
def test_read_gives_the_value(case):
    assert list(pv.open(path(case)).read()) == expected(case)


@pytest.mark.parametrize("case", READABLE, ids=name)
def test_extract_gives_every_part(case):
    values = expected(case)
    places = {str(place) for value in values if value is not None for place, _ in steps(value)}
    answer = pv.open(path(case)).scan({place: (place, "variant") for place in places}).to_arrow()
    for place in places:
        found = list(pv.VariantArray(answer[place]))
        assert found == [None if value is None else value.get(place) for value in values], place


@pytest.mark.parametrize("layout", ["unshredded", "final", "draft-paths", "draft-object"])
@pytest.mark.parametrize("case", READABLE, ids=name)
def test_rewrite_keeps_the_value(case, layout, tmp_path):
    dest = tmp_path / "a.parquet"
    (info,) = pv.open(path(case)).rewrite(dest, layout=layout)
    rewritten = pv.open(dest).read()
    assert list(rewritten) == expected(case)
    assert info.rows == len(rewritten)
    if layout in ("unshredded", "final"):
        report = pv.open(dest).validate()
        assert report.ok, str(report)


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_must_fail_fails(case, tmp_path):
    file = path(case)
    with pytest.raises((ConflictError, SchemaError)):
        list(pv.open(file).read())
    with pytest.raises((ConflictError, SchemaError)) as caught:
        pv.open(file).rewrite(tmp_path / "a.parquet", layout="unshredded")
    assert caught.value.file == str(file)
    assert not list(tmp_path.iterdir())
    assert not pv.open(file).validate().ok


def test_conflicts_can_be_read_on_request():
    for case in REFUSED:
        if "conflict" in case["error_message"]:
            array = pv.open(path(case)).read(on_conflict="typed")
            assert len(list(array)) == len(array) > 0


@pytest.mark.parametrize("case", CONTRADICTORY, ids=name)
def test_a_field_in_both_columns_is_an_error_or_by_request_the_shredded_one(case, tmp_path):
    with pytest.raises(ConflictError) as caught:
        list(pv.open(path(case)).read())
    assert caught.value.reason == "shredded-field-in-value"
    with pytest.raises(ConflictError) as caught:
        pv.open(path(case)).rewrite(tmp_path / "a.parquet", layout="unshredded")
    assert (caught.value.reason, caught.value.file) == ("shredded-field-in-value", str(path(case)))
    assert not list(tmp_path.iterdir())
    assert [violation.reason for violation in pv.open(path(case)).validate().violations] == ["field-in-both"]
    values = expected(case)
    assert list(pv.open(path(case)).read(on_conflict="typed")) == values
    answer = pv.open(path(case)).scan({key: f"$.{key}" for key in "ab"}).to_arrow()
    assert [list(pv.VariantArray(answer[key])) for key in "ab"] == [
        [row.get(f"$.{key}") for row in values] for key in "ab"
    ]


def test_validate_finds_the_invalid_files():
    found = {case["case_number"]: pv.open(path(case)).validate().violations for case in READABLE}
    assert {
        number: {violation.reason for violation in violations} for number, violations in found.items() if violations
    } == {
        case["case_number"]: {VIOLATIONS[case["case_number"]]} for case in READABLE if case["case_number"] in VIOLATIONS
    }


def test_an_unsigned_column_is_refused_by_name():
    (file,) = (path(case) for case in REFUSED if case["case_number"] == 127)
    with pytest.raises(SchemaError, match=r"var\.typed_value.*false.*case-127") as caught:
        pv.open(file).read()
    assert caught.value.file == str(file)
