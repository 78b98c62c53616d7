"""Z85: the standard's vector, padding, tails, and refusals."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.errors import TableError
from parquet_variant.tables.delta import z85


def test_vector_of_the_specification() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85.encode(data) == "HelloWorld"
    assert z85.decode("HelloWorld") == data


@given(st.binary(max_size=64))
def test_decoding_gives_back_what_was_encoded_and_padded(data: bytes) -> None:
    assert z85.decode(z85.encode(data)) == data + bytes(-len(data) % 4)


@given(st.binary(min_size=1, max_size=33))
def test_an_unpadded_tail_gives_back_its_bytes(data: bytes) -> None:
    padding = -len(data) % 4
    text = z85.encode(data)
    assert z85.decode(text[: len(text) - padding]) == data


@given(st.binary(max_size=33))
def test_a_tail_as_rust_writes_it_gives_back_its_bytes(data: bytes) -> None:
    whole, tail = data[: len(data) // 4 * 4], data[len(data) // 4 * 4 :]
    # The tail is the end of a group, whose missing bytes are marked in front.
    last = "#" * (4 - len(tail)) + z85.encode(tail.rjust(4, b"\0"))[4 - len(tail) :] if tail else ""
    assert z85.decode(z85.encode(whole) + last) == data
    assert z85.decode_array(pa.array([z85.encode(whole)])).to_pylist() == [whole]


@given(st.lists(st.none() | st.binary(max_size=24)))
def test_a_column_decodes_as_its_rows_do(rows: list[bytes | None]) -> None:
    texts = [None if row is None else z85.encode(row) for row in rows]
    expected = [None if text is None else z85.decode(text) for text in texts]
    column = pa.array(["skipped", *texts], pa.string()).slice(1)
    assert z85.decode_array(column).to_pylist() == expected


@pytest.mark.parametrize(
    "text", ["Hello!\x00abc", "Hällo", "HelloW", "%#%#%", "#####", "####0", "###50", "##Z00", '"0000']
)
def test_refuses_what_is_not_z85(text: str) -> None:
    with pytest.raises(TableError) as caught:
        z85.decode(text)
    assert caught.value.reason == "bad-z85"
