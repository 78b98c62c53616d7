"""Profiles: the right figures, whatever the order and the parting of the data, in bounded memory."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.inference import path_table
from parquet_variant.inference.infer import infer
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.shredding.json_batch import parse_text
from parquet_variant.kernels.tapes import profile as kernel
from parquet_variant.types import VariantType


def profile_of(rows: list[str | None], **options: Any) -> Profile:
    """Through the tape of the text."""
    text = "".join(row or "" for row in rows).encode()
    lengths = np.array([len((row or "").encode()) for row in rows], np.int64)
    stops = np.cumsum(lengths)
    starts = stops - lengths
    valid = np.array([row is not None for row in rows], np.uint8)
    return Profile.of_tape(parse_text(np.frombuffer(text, np.uint8), starts, stops, valid).tape, **options)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(float)
    | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdefghij"), inner, max_size=5),
    max_leaves=12,
)
rows_of_json = st.lists(st.none() | values.map(json.dumps), max_size=12)


class TestFigures:
    def test_counts_by_path_and_type(self) -> None:
        profile = profile_of(['{"a": 1, "b": [1, "x"]}', '{"a": 2.50}', '{"a": null}', None, "[]"])
        assert (profile.rows, profile.null_rows, profile.values) == (5, 1, 10)
        a = profile.get("$.a")
        assert a is not None
        assert a.types == {VariantType.NULL: 1, VariantType.INT8: 1, VariantType.DECIMAL4: 1}
        assert (a.count, a.places, a.share, a.rows, a.row_share) == (3, 3, 1.0, 3, 0.6)
        element = profile.get("$.b[*]")
        assert element is not None
        assert (element.count, element.places, element.rows) == (2, 2, 1)
        assert profile.get("$.b[0]").path == element.path
        assert profile.get("$.none") is None and profile.get("$.a.b") is None

    def test_ranges_digits_and_lengths(self) -> None:
        profile = profile_of(
            ['{"n": -7, "d": 123.4567, "s": "ab", "l": [1, 2]}', '{"n": 900, "d": 0.01, "s": "é€", "l": []}']
        )
        n, d, s, lists = (profile.get(f"$.{name}") for name in "ndsl")
        assert n.int_range == (-7, 900) and n.int_digits == 3
        assert (d.whole_digits, d.scale) == (3, 4)
        assert s.string_range == (2, 5) and s.string_bytes == 7
        assert lists.array_range == (0, 2) and lists.element_count == 2

    def test_digits_before_the_point_do_not_count_the_scale(self) -> None:
        found = profile_of(["0.001", "99999999999999999999.5"]).root
        assert (found.whole_digits, found.scale) == (20, 3)

    @pytest.mark.parametrize("distinct", [1, 10, 100, 1000, 20000])
    def test_distinct_is_about_right(self, distinct: int) -> None:
        for make in ('"k%d"', "%d", "%d.5", '"a longer text that varies at the end only %d"'):
            found = profile_of([make % (n % distinct) for n in range(max(distinct, 2000))]).root
            assert abs(found.distinct - distinct) <= max(1, 0.5 * distinct)  # 13 % standard error

    def test_encoded_bytes_are_those_of_the_encoder(self) -> None:
        for text in (
            "1",
            "300",
            "70000",
            "1.5",
            "12345678901.5",
            "true",
            "null",
            '"ab"',
            json.dumps("x" * 100),
            "1e300",
        ):
            variant = pv.parse_json(text)
            assert profile_of([text]).root.scalar_bytes == len(variant.value)

    def test_the_tables_of_kernel_and_profile_agree(self) -> None:
        names = (
            "ROWS STRING_BYTES LONG_STRINGS ELEMENTS FIELDS INT_MIN STRING_MIN ARRAY_MIN INT_MAX STRING_MAX ARRAY_MAX"
        )
        for name in names.split():
            assert getattr(kernel, f"P_{name}") == getattr(path_table, name)
        for name in ("KINDS", "COUNTS", "DIGIT_BUCKETS", "REGISTERS"):
            assert getattr(kernel, name) == getattr(path_table, name)


class TestMerging:
    @settings(max_examples=60, deadline=None)
    @given(rows_of_json, st.randoms(use_true_random=False), st.integers(1, 4), st.sampled_from([1 << 17, 4]))
    def test_any_partition_in_any_order_gives_the_same(
        self, rows: list[str | None], random: Any, parts: int, max_paths: int
    ) -> None:
        whole = profile_of(rows, max_paths=max_paths)
        shuffled = rows[:]
        random.shuffle(shuffled)
        split = [profile_of(shuffled[n::parts], max_paths=max_paths) for n in range(parts)]
        random.shuffle(split)
        merged = Profile()
        while split:
            # Trees of merges, not only a chain.
            merged = merged.merge(split.pop()) if len(split) < 2 else merged.merge(split.pop().merge(split.pop()))
        assert merged == whole
        assert infer(merged).schema == infer(whole).schema

    def test_kept_forms_are_equal(self) -> None:
        profile = profile_of(['{"a": [1.5, "x"]}', None, '{"\\u0000": {}}'])
        assert pickle.loads(pickle.dumps(profile)) == profile
        assert Profile.from_json(profile.to_json()) == profile
        assert profile != profile_of(['{"a": [1.5, "y"]}', None, '{"\\u0000": {}}'])

    @pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 9}', '{"version": 1, "rows": 1}'])
    def test_other_text_is_refused(self, text: str) -> None:
        with pytest.raises(VariantError) as caught:
            Profile.from_json(text)
        assert caught.value.reason == "bad-profile"


class TestCap:
    def test_many_keys_are_bounded_and_the_rest_survives(self) -> None:
        # Twelve batches of new keys each, as version numbers or dates make them.
        merged = Profile()
        for batch in range(12):
            keys = ", ".join(f'"k{batch}-{n}": {n}' for n in range(1000))
            merged = merged.merge(
                profile_of([f'{{"id": {batch}, "hot": {{"x": "y"}}, "map": {{{keys}}}}}'], max_paths=4096)
            )
        assert 12_000 * 0.9 < merged.path_count < 12_000 * 1.1
        assert len(merged) < 200
        assert merged.overflow_values == 12 * 1000 + 12 * 5 - sum(found.count for found in merged)
        assert merged.overflow_values > 11_000 and merged.path_count - len(merged) > 10_000
        assert merged.get("$.hot.x").count == 12 and merged.get("$.id").count == 12
        assert merged.get("$.map").field_count == 12_000

    def test_no_limit_below_the_cap(self) -> None:
        profile = profile_of(["{" + ", ".join(f'"k{n}": 1' for n in range(900)) + "}"], max_paths=1024)
        assert len(profile) == profile.path_count == 901 and profile.overflow_values == 0


def rows_of_new_keys(rows: int, keys: int) -> list[str]:
    """Rows of which each has keys of its own, as data-like as can be, next to three frequent paths."""
    return [
        json.dumps(
            {"id": n, "type": f"t{n % 7}"}
            | ({"at": {"place": n / 4}} if n % 4 == 0 else {})
            | {f"k{n * keys + k}": k for k in range(keys)}
        )
        for n in range(rows)
    ]


def profile_of_parts(rows: list[str], size: int, **options: Any) -> Profile:
    parts = [profile_of(rows[start : start + size], **options) for start in range(0, len(rows), size)]
    return reduce(Profile.merge, parts)


class TestFrequentPathsAmongTooMany:
    def check(self, profile: Profile, rows: int) -> None:
        shredded = {str(d.path): d.type for d in infer(profile).decisions if d.shredded}
        assert {"$['id']", "$['type']", "$['at']['place']"} < set(shredded)
        assert len(shredded) == 5  # and the two objects: none of the keys that are data
        assert profile.get("$.id").count == profile.get("$.type").rows == rows
        assert 0.15 < profile.get("$.at.place").row_share < 0.35
        assert profile.get("$.at.place").share == 1.0
        assert profile.overflow_values > 0

    @pytest.mark.parametrize("size", [150, 400, 1000, 4000])
    def test_any_partition_gives_the_same(self, size: int) -> None:
        rows = rows_of_new_keys(4000, 20)
        whole = profile_of(rows, max_paths=1 << 13)
        self.check(whole, 4000)
        shuffled = rows[:]
        Random(size).shuffle(shuffled)
        assert profile_of_parts(shuffled, size, max_paths=1 << 13) == whole

    def test_kept_forms_and_arrays_have_them_too(self) -> None:
        rows = rows_of_new_keys(4000, 20)
        whole = profile_of(rows, max_paths=1 << 13)
        assert Profile.from_json(whole.to_json()) == whole == pickle.loads(pickle.dumps(whole))
        assert infer(Profile.from_json(whole.to_json())).schema == infer(whole).schema
        assert Profile.of_array(pv.parse_json(rows), max_paths=1 << 13) == whole

    def test_1_200_000_distinct_paths(self) -> None:
        rows = rows_of_new_keys(60_000, 20)
        schemas = set()
        for size in (7000, 20_000):
            profile = profile_of_parts(rows, size)
            assert 1_100_000 < profile.path_count < 1_300_000
            assert len(profile) < 2000
            assert sum(len(table.hashes) for table in profile.sample.tables) <= profile.max_paths
            self.check(profile, 60_000)
            schemas.add(infer(profile).schema.to_ddl())
            Random(size).shuffle(rows)
        assert len(schemas) == 1


class TestArrays:
    @settings(max_examples=60, deadline=None)
    @given(rows_of_json)
    def test_an_array_has_the_profile_of_its_text(self, rows: list[str | None]) -> None:
        assert Profile.of_array(pv.parse_json(pa.array(rows, pa.string()))) == profile_of(rows)

    def test_shredded_columns_count_as_the_values_they_hold(self) -> None:
        array = pv.parse_json(['{"a": 1, "b": "x"}', '{"a": "n/a"}', None, "[1.5]"])
        profile = Profile.of_array(pv.shred_variant(array, "a bigint, b string"))
        assert profile.get("$.a").types == {VariantType.INT64: 1, VariantType.STRING: 1}
        assert (profile.rows, profile.null_rows) == (4, 1)
        assert profile.get("$.b") is not None and profile.get("$[*]").types == {VariantType.DECIMAL4: 1}

    def test_types_that_json_does_not_have(self) -> None:
        import datetime as dt
        import uuid

        day = dt.date(2024, 2, 29)
        rows = [day, uuid.UUID(int=5), b"\x00\xff", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), Decimal("1E-38"), 2.5]
        types = Profile.of_array(pv.VariantArray.from_pylist(rows)).root.types
        assert {"date", "uuid", "binary", "timestamp", "decimal16", "double"} == {str(name) for name in types}

    def test_slices_and_empty_arrays(self) -> None:
        array = pv.parse_json([f'{{"n": {n}}}' for n in range(10)])
        assert Profile.of_array(array[3:5]).get("$.n").int_range == (3, 4)
        empty = Profile.of_array(array[:0])
        assert len(empty) == 0 and empty.root is None and list(empty) == []


def storage(metadata: bytes, value: bytes) -> pv.VariantArray:
    good = pv.parse_json(["{}", '{"a": 1}']).storage
    parts = [
        pa.array([*good.field(name).to_pylist(), part], pa.binary())
        for name, part in (("metadata", metadata), ("value", value))
    ]
    return pv.VariantArray(pa.StructArray.from_arrays(parts, ["metadata", "value"]))


class TestMalformed:
    EMPTY = b"\x11\x00\x00"

    @pytest.mark.parametrize(
        ("metadata", "value", "reason"),
        [
            (EMPTY, b"", "truncated"),
            (EMPTY, b"\x18\x01", "truncated"),
            (EMPTY, bytes([21 << 2]), "unknown-type"),
            (EMPTY, b"\x03\x01\x00\x09\x00", "offset-out-of-range"),
            (EMPTY, b"\x02\x01\x00\x00\x01\x00", "id-out-of-range"),
            (b"", b"\x02\x01\x00\x00\x01\x00", "truncated"),
            (b"\x12\x00\x00", b"\x02\x01\x00\x00\x01\x00", "bad-version"),
            (b"\x11\x01\x00\x01\xff", b"\x02\x01\x00\x00\x01\x00", "bad-utf8"),
            (b"\x11\x01\x00\x01a", b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "duplicate-key"),
        ],
    )
    def test_reason_row_and_offset_are_named(self, metadata: bytes, value: bytes, reason: str) -> None:
        with pytest.raises(pv.VariantError) as caught:
            Profile.of_array(storage(metadata, value))
        assert (caught.value.reason, caught.value.row) == (reason, 2)
        assert caught.value.offset is not None

    def test_values_that_share_bytes_do_not_multiply(self) -> None:
        # Each level is an array of 100 times the level below: 100**8 values in a few kilobytes.
        value = b"\x00"
        for _ in range(8):
            offsets = b"".join(n.to_bytes(4, "little") for n in [0] * 100 + [len(value)])
            value = bytes([3 | 3 << 2, 100]) + offsets + value
        with pytest.raises(pv.VariantError) as caught:
            Profile.of_array(storage(self.EMPTY, value))
        assert caught.value.reason == "overlap"

    def test_depth_is_not_limited_by_a_stack(self) -> None:
        depth = 5000
        value = b"\x00"
        for _ in range(depth):
            width = 1 if len(value) < 256 else 2
            value = bytes([3 | (width - 1) << 2, 1]) + bytes(width) + len(value).to_bytes(width, "little") + value
        profile = Profile.of_array(storage(self.EMPTY, value))
        assert len(profile) == depth + 2
