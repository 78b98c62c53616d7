"""Write the malformed corpus next to this script: `<attack>.metadata`, `<attack>.value`, and `expected.json`.

Owns what each attack is. Leaves what must happen to the tests. Run it after a change: ``python make_corpus.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

EMPTY = "110000"
AB = "1102000102 6162"


def containers_around(inner: bytes, levels: int) -> bytes:
    """Arrays of one element, with offsets of four bytes."""
    value = inner
    for _ in range(levels):
        value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
    return value


def laughs(levels: int) -> bytes:
    """Arrays whose two elements are the same bytes: 2**levels values if one believes it."""
    value = b"\x00"
    for _ in range(levels):
        value = b"\x0f\x02" + bytes(8) + len(value).to_bytes(4, "little") + value
    return value


def amplified_names(count: int, size: int) -> bytes:
    """A dictionary whose every second name is all of the bytes."""
    offsets = [0 if index % 2 == 0 else size for index in range(count + 1)]
    numbers = b"".join(number.to_bytes(4, "little") for number in [count, *offsets])
    return b"\xc1" + numbers + b"k" * size


def all_fields(count: int) -> bytes:
    """An object of the fields 0 to count - 1 with two-byte ids, all null."""
    ids = b"".join(field_id.to_bytes(2, "little") for field_id in range(count))
    offsets = b"".join(offset.to_bytes(2, "little") for offset in range(count + 1))
    return bytes([(1 << 4 | 1 << 2 | 1) << 2 | 2]) + count.to_bytes(4, "little") + ids + offsets + bytes(count)


# Attack: metadata, value, reason of the first fault.
ATTACKS: dict[str, tuple[str | bytes, str | bytes, str]] = {
    "metadata_empty": ("", "00", "truncated"),
    "metadata_version_0": ("100000", "00", "bad-version"),
    "metadata_version_2": ("120000", "00", "bad-version"),
    "metadata_size_cut_off": ("5105", "00", "truncated"),
    "metadata_size_4_billion": ("d1ffffffff", "00", "truncated"),
    "metadata_offsets_cut_off": ("11050001", "00", "truncated"),
    "metadata_empty_without_offset": ("1100", "00", "truncated"),
    "metadata_offset_past_end": ("11010005 61", "02010000 0100", "offset-out-of-range"),
    "metadata_offset_4_billion": ("d1 01000000 00000000 ffffffff 61", "02010000 0100", "offset-out-of-range"),
    "metadata_offsets_backwards": ("1102000201 6162", "02010000 0100", "offset-out-of-range"),
    "metadata_first_offset_not_zero": ("11010102 6162", "02010000 0100", "offset-out-of-range"),
    "metadata_names_share_bytes": (amplified_names(2000, 50_000), all_fields(2000), "offset-out-of-range"),
    "metadata_trailing_bytes": ("110000 ff", "00", "trailing-bytes"),
    "metadata_name_not_utf8": ("11010001 ff", "02010000 0100", "bad-utf8"),
    "metadata_name_overlong_utf8": ("11010002 c0af", "02010000 0100", "bad-utf8"),
    "metadata_name_surrogate": ("11010003 eda080", "02010000 0100", "bad-utf8"),
    "metadata_sorted_flag_lies": ("1102000102 6261", "00", "unsorted-dictionary"),
    "metadata_sorted_flag_with_duplicates": ("1102000102 6161", "00", "unsorted-dictionary"),
    "value_empty": (EMPTY, "", "truncated"),
    "value_trailing_bytes": (EMPTY, "0c01 00", "trailing-bytes"),
    "unknown_primitive_21": (EMPTY, "54 0000000000000000", "unknown-type"),
    "unknown_primitive_63": (EMPTY, "fc", "unknown-type"),
    "int8_cut_off": (EMPTY, "0c", "truncated"),
    "int64_cut_off": (EMPTY, "18 01020304050607", "truncated"),
    "double_cut_off": (EMPTY, "1c 00", "truncated"),
    "decimal4_cut_off": (EMPTY, "20 02 000000", "truncated"),
    "decimal16_cut_off": (EMPTY, "28 02 000000000000000000000000000000", "truncated"),
    "decimal_scale_39": (EMPTY, "20 27 00000000", "bad-decimal"),
    "decimal_scale_255": (EMPTY, "28 ff 00000000000000000000000000000000", "bad-decimal"),
    "decimal4_ten_digits": (EMPTY, "20 00 00ca9a3b", "bad-decimal"),
    "decimal8_nineteen_digits": (EMPTY, "24 00 000064a7b3b6e00d", "bad-decimal"),
    "decimal16_39_digits": (EMPTY, "28 00 000000000000000000000000000000 80", "bad-decimal"),
    "time_negative": (EMPTY, "44 ffffffffffffffff", "bad-time"),
    "time_24_hours": (EMPTY, "44 0060d71d14000000", "bad-time"),
    "uuid_cut_off": (EMPTY, "50 000102030405060708090a0b0c0d0e", "truncated"),
    "short_string_cut_off": (EMPTY, "fd 61", "truncated"),
    "string_length_4_billion": (EMPTY, "40 ffffffff 61", "truncated"),
    "string_length_cut_off": (EMPTY, "40 0100", "truncated"),
    "binary_length_2_billion": (EMPTY, "3c ffffff7f 61", "truncated"),
    "string_not_utf8": (EMPTY, "09 e961", "bad-utf8"),
    "string_overlong_utf8": (EMPTY, "09 c080", "bad-utf8"),
    "string_surrogate": (EMPTY, "0d eda0bd", "bad-utf8"),
    "string_ends_inside_character": (EMPTY, "09 e282", "bad-utf8"),
    "string_beyond_unicode": (EMPTY, "11 f4908080", "bad-utf8"),
    "array_count_cut_off": (EMPTY, "13 0100", "truncated"),
    "array_count_4_billion": (EMPTY, "13 ffffffff 00", "truncated"),
    "array_offsets_cut_off": (EMPTY, "03 05 00 01 02", "truncated"),
    "array_last_offset_past_end": (EMPTY, "03 01 00 09 00", "offset-out-of-range"),
    "array_last_offset_negative_if_signed": (EMPTY, "0f 01 00000000 ffffffff 00", "offset-out-of-range"),
    "array_offset_past_last": (EMPTY, "03 02 00 05 02 0000", "offset-out-of-range"),
    "array_offset_at_last": (EMPTY, "03 01 01 01 00", "offset-out-of-range"),
    "array_element_cut_off": (EMPTY, "03 01 00 02 1800", "truncated"),
    "array_element_longer_than_its_offsets": (EMPTY, "03 02 00 01 03 0c01 00", "overlap"),
    "array_elements_share_bytes": (EMPTY, "03 02 00 00 02 0c01", "overlap"),
    "array_elements_laugh_a_billion_times": (EMPTY, laughs(60), "overlap"),
    "array_gap_between_elements": (EMPTY, "03 02 00 02 03 00ff00", "unused-bytes"),
    "array_bytes_after_last_element": (EMPTY, "03 01 00 02 00ff", "unused-bytes"),
    "array_empty_with_bytes": (EMPTY, "03 00 01 00", "unused-bytes"),
    "object_count_4_billion": (AB, "42 ffffffff 00", "truncated"),
    "object_ids_cut_off": (AB, "02 04 00 01", "truncated"),
    "object_id_outside_dictionary": (AB, "02 01 02 00 01 00", "id-out-of-range"),
    "object_id_4_billion": (AB, "32 01 ffffffff 00 01 00", "id-out-of-range"),
    "object_without_dictionary": (EMPTY, "02 01 00 00 01 00", "id-out-of-range"),
    "object_unsorted_keys": (AB, "02 02 01 00 00 01 02 0000", "unsorted-keys"),
    "object_utf16_order": (
        "0102 00 04 07 f09f9880 efac81", "02 02 00 01 00 01 02 0000", "unsorted-keys"
    ),
    "object_same_id_twice": (AB, "02 02 00 00 00 01 02 0000", "duplicate-key"),
    "object_same_name_by_two_ids": ("0102 00 01 02 6161", "02 02 00 01 00 01 02 0000", "duplicate-key"),
    "object_values_share_bytes": (AB, "02 02 00 01 00 00 02 0c01", "overlap"),
    "object_last_offset_past_end": (AB, "02 01 00 00 05 00", "offset-out-of-range"),
    "object_value_cut_off": (AB, "02 01 00 00 01 18", "truncated"),
    "object_gap_between_values": (AB, "02 02 00 01 03 00 04 00ffff00", "unused-bytes"),
    "nested_value_cut_off": (EMPTY, containers_around(bytes.fromhex("1801"), 5), "truncated"),
    "nested_1001_levels": (EMPTY, containers_around(b"\x00", 1001), "depth"),
    "nested_5000_levels": (EMPTY, containers_around(b"\x00", 5_000), "depth"),
    "nested_5000_levels_cut_off": (EMPTY, containers_around(b"\x18", 5_000), "depth"),
    "nested_5000_headers_without_end": (EMPTY, "03" * 5_000, "offset-out-of-range"),
}  # fmt: skip


def main() -> None:
    """Write every file."""
    here = Path(__file__).parent
    for name, (metadata, value, _) in ATTACKS.items():
        for suffix, part in (("metadata", metadata), ("value", value)):
            (here / f"{name}.{suffix}").write_bytes(bytes.fromhex(part) if isinstance(part, str) else part)
    expected = {name: reason for name, (_, _, reason) in ATTACKS.items()}
    (here / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    main()
