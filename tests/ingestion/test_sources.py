"""Sources: every file is found, every line is given once with its number, whatever the codec, chunk or byte range."""

from __future__ import annotations

import gc
import gzip
import io
import itertools
import json
import lzma
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.formats.layout import ArraySplitter, DocumentSplitter, TextLayout
from parquet_variant.ingestion.job import IngestJob, profile_files
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.sources.chunks import open_chunks
from parquet_variant.ingestion.sources.input_files import InputFile, decompressed, find_input_files
from parquet_variant.ingestion.sources.splits import plan_splits
from parquet_variant.io.parallel import Engine, ThreadEngine

NDJSON = b'{"a": 1}\n\n{"b": "x\\ny"}\n[3]\n  \n"last"'


def compress(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def numbered(path: Path, **options: object) -> list[tuple[int, object]]:
    rows = []
    for chunk in open_chunks(InputFile(str(path)), **options):
        texts = chunk.texts()
        rows += [(texts.number(row), json.loads(texts.text(row))) for row in range(len(texts.starts))]
    return rows


@pytest.mark.parametrize("codec", [None, "gzip", "zstd", "bz2", "lz4"])
@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
def test_lines_keep_their_numbers_under_every_codec(tmp_path: Path, codec: str | None, chunk_bytes: int) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(compress(NDJSON, codec) if codec else NDJSON)
    assert InputFile(str(path)).codec == codec
    assert numbered(path, chunk_bytes=chunk_bytes) == [(1, {"a": 1}), (3, {"b": "x\ny"}), (4, [3]), (6, "last")]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_files_of_several_members_are_read_whole(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "members"
    path.write_bytes(compress(b"1\n2\n", codec) + compress(b"3\n", codec))
    assert numbered(path) == [(1, 1), (2, 2), (3, 3)]


def test_zstd_files_may_begin_with_a_frame_that_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "pzstd"
    for first in (0x50, 0x5F):
        path.write_bytes(bytes([first]) + b"\x2a\x4d\x18\x04\0\0\0size" + compress(b"1\n2\n", "zstd"))
        assert InputFile(str(path)).codec == "zstd"
        assert numbered(path) == [(1, 1), (2, 2)]


@given(
    st.lists(st.sampled_from([b"1", b"[2,3]", b'{"a": 12345}', b"", b"  "]), max_size=12),
    st.lists(st.integers(0, 90), max_size=4),
    st.integers(1, 9),
    st.booleans(),
)
def test_byte_ranges_give_each_line_once_with_its_number(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int], chunk_bytes: int, ended: bool
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "f"
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    path.write_bytes(data)
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    rows = []
    for start, end in itertools.pairwise(bounds):
        rows += numbered(path, byte_range=(start, end), chunk_bytes=chunk_bytes)
    assert rows == [(i, json.loads(line)) for i, line in enumerate(data.split(b"\n"), 1) if line.strip()]


def test_only_plain_files_of_lines_are_split(tmp_path: Path) -> None:
    plain, packed, array = tmp_path / "plain", tmp_path / "packed", tmp_path / "array"
    plain.write_bytes(NDJSON)
    packed.write_bytes(gzip.compress(NDJSON))
    array.write_bytes(b"[1, 2, 3, 4, 5, 6]")
    splits = plan_splits(find_input_files([str(plain), str(packed), str(array)]), split_bytes=16)
    assert [(Path(split.file.name).name, split.byte_range) for split in splits] == [
        ("plain", (0, 12)),
        ("plain", (12, 24)),
        ("plain", (24, 37)),
        ("packed", None),
        ("array", None),
    ]


@pytest.mark.parametrize("chunk_bytes", [1, 3, 1 << 20])
def test_json_arrays_give_an_element_a_line(tmp_path: Path, chunk_bytes: int) -> None:
    path = tmp_path / "array.json"
    values = [{"a": [1, {"b": '],[\\"\n'}]}, "x,y", [], [[2]], None, 1.5, "\\", {"": "]"}]
    path.write_text(" " + json.dumps(values, indent=2) + "\n")
    assert numbered(path, chunk_bytes=chunk_bytes) == list(enumerate(values, 1))


@pytest.mark.parametrize("text", ["[1]\n[2]\n", "[1]\n\n{}\n"])
def test_lines_that_are_arrays_are_not_taken_for_one_array(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lines.json"
    path.write_text(text)
    data = b"".join(chunk.data for chunk in open_chunks(InputFile(str(path))))
    assert data == text.encode()


def test_an_array_that_closes_where_a_block_ends_is_distinguished_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    first = b"[" + b" " * ((1 << 20) - 2) + b"]"
    path.write_bytes(first + b"\n[2]\n")
    assert numbered(path) == [(1, []), (2, [2])]
    path.write_bytes(first + b"\n")
    assert numbered(path) == []


def test_a_cut_off_array_gives_its_elements_and_then_an_error(tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    path.write_text('[{"a": 1}, 2, 3')
    chunks = open_chunks(InputFile(str(path)), layout=TextLayout("array"))
    assert next(chunks).data == b'{"a": 1}\n 2\n'
    with pytest.raises(JsonError, match="ends after element 2") as caught:
        next(chunks)
    assert (caught.value.reason, caught.value.row, caught.value.file) == ("truncated", 2, str(path))


@pytest.mark.parametrize(
    ("text", "bad"), [("[1,,2]", [b","]), ("[,]", [b",", b","]), ("[1,]", [b","]), ('["a\nb"]', [b'"a\x0bb"'])]
)
def test_elements_that_are_not_json_stay_visible_to_the_parser(text: str, bad: list[bytes]) -> None:
    lines = ArraySplitter().feed(text.encode()).split(b"\n")[:-1]
    assert [line for line in lines if line not in (b"1", b"2")] == bad


@pytest.mark.parametrize("text", ["\n[1,[2]]", "  \r\n [ 1 ,\n[2] ]\n", "\n\n[\n1,[2]\n]"])
def test_line_ends_may_stand_before_an_array(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert numbered(tmp_path / "a.json") == [(1, 1), (2, [2])]


def test_an_array_must_end_with_its_bracket() -> None:
    for text, lines, words in (
        (b"[1,2}", b"1\n2\n", "element 2 of the JSON array is followed by }"),
        (b"[1] x", b"1\n", "text follows the end"),
    ):
        splitter = ArraySplitter()
        with pytest.raises(JsonError, match=words):
            splitter.feed(text)
        assert splitter.remaining() == lines


@given(
    st.lists(st.recursive(st.none() | st.text() | st.integers(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
)
def test_any_array_is_split_the_same_in_blocks_of_any_size(values: list[object]) -> None:
    for text in (json.dumps(values), json.dumps(values, indent=1, ensure_ascii=False)):
        data = text.encode("utf-8", "surrogatepass")
        for size in (1, 2, 5, len(data)):
            splitter = ArraySplitter()
            lines = b"".join(splitter.feed(data[at : at + size]) for at in range(0, len(data), size))
            splitter.finish()
            assert [json.loads(line) for line in lines.split(b"\n") if line] == values


def test_sources_are_expanded_in_order_and_once(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "sub/c.json", "_tmp/d.json", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    names = lambda sources: [file.name.removeprefix(f"{tmp_path}/") for file in find_input_files(sources)]  # noqa: E731
    assert names(tmp_path) == ["a.json", "b.json", "sub/c.json"]
    assert names(f"{tmp_path}/*.json") == ["a.json", "b.json"]
    assert names(f"{tmp_path}/**/*.json") == ["_tmp/d.json", "a.json", "b.json", "sub/c.json"]
    assert names([tmp_path / "b.json", tmp_path]) == ["b.json", "a.json", "sub/c.json"]
    assert names(f"file://{tmp_path}/a.json") == [f"file://{tmp_path}/a.json"]
    assert names(f"file://{tmp_path}/b*.json") == [f"file://{tmp_path}/b.json"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, reason in [
        (tmp_path / "nope", "missing"),
        (tmp_path / "*.x", "missing"),
        (tmp_path / "empty", "no-files"),
    ]:
        with pytest.raises(VariantFileError) as caught:
            find_input_files(source)
        assert caught.value.reason == reason
        assert str(source) in str(caught.value)
    with pytest.raises(VariantFileError, match="at least one file"):
        find_input_files([])


def test_broken_containers_are_errors_not_short_reads(tmp_path: Path) -> None:
    for codec in ("gzip", "zstd"):
        path = tmp_path / codec
        path.write_bytes(compress(b"1\n" * 10_000, codec)[:-9])
        with pytest.raises(VariantFileError) as caught:
            list(open_chunks(InputFile(str(path))))
        assert caught.value.reason == "bad-compression"
    utf16 = tmp_path / "utf16"
    utf16.write_text('{"a": 1}\n', encoding="utf-16")
    with pytest.raises(VariantFileError, match="convert it to UTF-8"):
        list(open_chunks(InputFile(str(utf16))))
    bom = tmp_path / "bom"
    bom.write_text("[1]\n[2]\n", encoding="utf-8-sig")
    assert numbered(bom) == [(1, [1]), (2, [2])]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("{}".encode("utf-16-le"), "convert it to UTF-8"),
        ("[]".encode("utf-16-be"), "convert it to UTF-8"),
        (lzma.compress(b"{}"), "compressed with xz"),
        (b"PK\x03\x04\x14", "compressed with zip"),
        (b"Obj\x01\x04", "an Avro file"),
        (b"ARROW1\0\0", "an Arrow file"),
    ],
)
def test_a_file_that_is_not_json_is_named(head: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(head)
    with pytest.raises(VariantFileError, match=words):
        list(open_chunks(InputFile(str(tmp_path / "a.json"))))


_SCALARS = st.one_of(st.none(), st.text(max_size=5), st.integers())
DOCUMENTS = st.one_of(
    st.dictionaries(st.text(max_size=3), st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3)), max_size=3),
    st.lists(st.one_of(_SCALARS, st.dictionaries(st.text(max_size=2), _SCALARS, max_size=2)), max_size=3),
)
INDENTED = st.lists(st.tuples(DOCUMENTS, st.sampled_from([None, 1, 4])), min_size=1, max_size=6)


@given(INDENTED, st.integers(1, 50), st.data())
def test_documents_are_split_wherever_their_lines_and_blocks_end(documents, size, data) -> None:
    between = st.sampled_from(["", " ", "\n", "\r\n\n"])
    text = "".join(json.dumps(value, indent=indent) + data.draw(between) for value, indent in documents).encode()
    splitter = DocumentSplitter()
    lines = (
        b"".join(splitter.feed(text[start : start + size]) for start in range(0, len(text), size)) + splitter.finish()
    )
    assert [json.loads(line) for line in lines.splitlines()] == [value for value, _ in documents]
    assert splitter.elements == len(documents)


PRETTY = '{\n  "a": 1,\n  "b": {"c": "}"}\n}\n'


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (PRETTY * 3, [{"a": 1, "b": {"c": "}"}}] * 3),
        ('{"a": 1}{"a": 2} {"a": 3}\n{"a": 4}', [{"a": n} for n in (1, 2, 3, 4)]),
        ("[\n1\n]\n[\n2\n]", [[1], [2]]),
        ("[1] [2]\n", [[1], [2]]),
    ],
)
def test_documents_are_distinguished_from_lines(tmp_path: Path, text: str, values: list[object]) -> None:
    path = tmp_path / "documents.json"
    path.write_text(text)
    assert [value for _, value in numbered(path)] == values
    assert [value for _, value in numbered(path, layout=TextLayout("documents"), chunk_bytes=3)] == values
    assert len(plan_splits(find_input_files([str(path)]), 4)) == 1


@pytest.mark.parametrize("first", ['{"a": 1} x', "{bad", '{"a": ', "}", '{"a": 1}, {"b": 2}'])
def test_a_bad_first_line_does_not_make_documents_of_lines(tmp_path: Path, first: str) -> None:
    path = tmp_path / "lines.ndjson"
    path.write_text(first + '\n{"b": 1}\n{"b": 2}\n')
    (chunk,) = open_chunks(InputFile(str(path)))
    assert (chunk.unit, [*map(chunk.texts().text, (1, 2))]) == ("line", [b'{"b": 1}\n', b'{"b": 2}\n'])


def test_a_document_that_is_cut_off_is_one_bad_value(tmp_path: Path) -> None:
    path = tmp_path / "documents.json"
    path.write_text(PRETTY + '{\n "a": [1,')
    (chunk,) = open_chunks(InputFile(str(path)))
    assert chunk.unit == "document"
    assert chunk.texts().text(1) == b'{  "a": [1,\n'


def test_bz2_members_may_be_empty_and_junk_behind_them_is_an_error(tmp_path: Path) -> None:
    path, text, empty = tmp_path / "members", compress(b"1\n2\n", "bz2"), compress(b"", "bz2")
    for stored in (text + empty + text, empty + empty + text + text, text + text + empty + empty):
        path.write_bytes(stored)
        assert [value for _, value in numbered(path)] == [1, 2, 1, 2]
    for stored in (text + b"junk", text + empty + text[:-3], text[:20], text + b"\0"):
        path.write_bytes(stored)
        with pytest.raises(VariantFileError) as caught:
            numbered(path)
        assert caught.value.reason == "bad-compression"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ['"x"\n', "1\n", "\n{}", "a,b\n1,2\n"])
def test_other_encodings_are_named_whatever_they_begin_with(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "a").write_text(text, encoding=encoding)
    for format in ("ndjson", "csv"):
        with pytest.raises(VariantFileError) as caught:
            list(open_chunks(InputFile(str(tmp_path / "a")), layout=TextLayout(format)))
        assert caught.value.reason == "encoding"


def test_links_that_lead_back_end_no_glob(tmp_path: Path) -> None:
    (tmp_path / "a" / ".hidden").mkdir(parents=True)
    for name in ("x.json", "a/y.json", "a/.hidden/z.json"):
        (tmp_path / name).write_text("1\n")
    for number in range(4):
        (tmp_path / f"self{number}").symlink_to(tmp_path)
        (tmp_path / "a" / f"up{number}").symlink_to(tmp_path)
    names = [file.name.removeprefix(f"{tmp_path}/") for file in find_input_files(f"{tmp_path}/**/*.json")]
    assert names == ["a/y.json", "x.json"]


def test_a_name_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.json")).write_bytes(b"")
    with pytest.raises(VariantFileError, match="is not Unicode"):
        find_input_files(tmp_path)


def test_a_file_that_becomes_shorter_loses_no_row_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    (tmp_path / "b.ndjson").write_text("1\n")
    for split_bytes, lines in ((20_000, 50_000), (None, 50_000), (None, 100)):
        path.write_text("1\n" * lines)
        job = IngestJob(
            IngestRequest.of(
                [path, path.with_name("b.ndjson")], tmp_path / "out", schema="bigint", split_bytes=split_bytes
            )
        )
        path.write_text("1\n" * (lines // 2))
        with pytest.raises(VariantFileError) as caught:
            job.run(ThreadEngine(1, None))
        assert caught.value.reason == "files-changed"
        assert not (tmp_path / "out").exists()


def test_gzip_members_may_be_empty_or_padded_with_zeros(tmp_path: Path) -> None:
    path, text, empty = tmp_path / "members.gz", gzip.compress(b"1\n2\n"), gzip.compress(b"")
    for stored, values in [
        (text + b"\0", [1, 2]),
        (text + b"\0" * 1_000_000, [1, 2]),
        (text + b"\0" * 512 + text, [1, 2, 1, 2]),
        (text + empty + b"\0" + empty + text, [1, 2, 1, 2]),
        (empty + b"\0\0", []),
    ]:
        path.write_bytes(stored)
        assert [value for _, value in numbered(path)] == values
    for stored in (text + b"junk", text + b"\0\0junk", text + b"\0" + text[:-3], text[:-8] + b"\0" * 8, text[:12]):
        path.write_bytes(stored)
        with pytest.raises(VariantFileError) as caught:
            numbered(path)
        assert caught.value.reason == "bad-compression"


@given(st.binary(max_size=2000), st.integers(0, 3), st.integers(0, 9))
def test_gzip_text_is_decompressed_in_any_pieces(text: bytes, members: int, padding: int) -> None:
    stored = b"".join(gzip.compress(text) + b"\0" * padding for _ in range(members + 1))
    stream = decompressed(io.BytesIO(stored), "gzip")
    pieces = list(iter(lambda: stream.read(7), b""))
    assert b"".join(pieces) == text * (members + 1)


RS = "\x1e"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f'{RS}{{"a": 1}}\n{RS}{{"a": 2}}\n', [{"a": 1}, {"a": 2}]),
        (f'{RS}1\n{RS}{RS}"x"\n{RS}[2, 3]\n{RS}', [1, "x", [2, 3]]),
        (f"{RS}[1, 2]\n", [[1, 2]]),
        (f'{RS}{{"a": 1}}{RS}{{"a": 2}}', [{"a": 1}, {"a": 2}]),
        (f"{RS}1{RS}2{RS}3", [1, 2, 3]),
        (f'{RS}{{\n "a": 1\n}}\n{RS}{{\n "a": 2\n}}\n', [{"a": 1}, {"a": 2}]),
        (f'{RS}1\n{RS}{{\n "a": 2\n}}\n', [1, {"a": 2}]),
        (f"\n{RS}1\n\n{RS}2", [1, 2]),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 5, 1 << 20])
def test_json_text_sequences_are_read(tmp_path: Path, text: str, values: list[object], chunk_bytes: int) -> None:
    path = tmp_path / "sequence.json"
    for stored in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        path.write_bytes(stored)
        assert [value for _, value in numbered(path, chunk_bytes=chunk_bytes)] == values
        assert pv.read_json(path).to_pylist() == values


def test_a_truncated_text_of_a_sequence_does_not_affect_the_texts_after_it(tmp_path: Path) -> None:
    path = tmp_path / "sequence.json"
    for text in (
        f'{RS}{{"a": [1,\n{RS}{{"a": 2}}\n',
        f'{RS}{{"a": [\n1,{RS}2]}}{RS}{{"a": 2}}',
        f'{RS}"x{RS}{{"a": 2}}\n',
    ):
        path.write_text(text)
        with pytest.raises(JsonError):
            pv.read_json(path)
        result = pv.ingest(path, tmp_path / "out", on_error="quarantine", mode="overwrite")
        assert pv.open(tmp_path / "out").read().to_pylist() == [{"a": 2}]
        assert result.bad_records >= 1


def test_rows_inside_the_documents_of_a_sequence_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sequence.json"
    path.write_text(f'{RS}{{"items": [1, 2]}}\n{RS}{{"items":\n[3]}}\n')
    assert pv.read_json(path, root="$.items[*]").to_pylist() == [1, 2, 3]
    path.write_text(f'{RS}{{"items": [1, {RS}2]}}\n')
    with pytest.raises(JsonError, match="truncated"):
        pv.read_json(path, root="$.items[*]")


def test_a_record_separator_inside_a_line_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "lines.ndjson"
    path.write_text(f'{{"a": 1}}\n{{"a": {RS}2}}\n{{"a": "{RS}"}}\n')
    result = pv.ingest(path, tmp_path / "out", on_error="quarantine")
    assert (result.rows, result.bad_records) == (1, 2)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """A named pipe, to which a thread writes two rows once."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=[gzip.compress(b'{"a": 1}\n{"a": 2}\n')])
    thread.start()
    yield path
    thread.join()


def test_pipes_are_sources_and_are_read_once(pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A directory of this test alone: other processes have temporary files at the same time.
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    result = pv.ingest(pipe, tmp_path / "out")
    assert (result.rows, pv.open(tmp_path / "out").read().to_pylist()) == (2, [{"a": 1}, {"a": 2}])
    gc.collect()
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("read", [lambda pipe: len(pv.read_json(pipe)), lambda pipe: pv.infer(pipe).rows])
def test_pipes_are_read_and_profiled(pipe: Path, read: Callable[[Path], int]) -> None:
    assert read(pipe) == 2


def test_a_column_of_a_table_in_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=[b'id,p\n1,"{""a"": 1}"\n'])
    thread.start()
    assert pv.ingest(path, tmp_path / "out", json_column="p").rows == 1
    thread.join()


def test_csv_under_another_name_is_recognized_by_its_header(tmp_path):
    (tmp_path / "a.ndjson").write_text("id,name\n1,x\n")
    with pytest.raises(pv.VariantError, match="for CSV set input_format='csv'"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "out")
    (tmp_path / "b.ndjson").write_text("nul, 1\n")
    with pytest.raises(pv.VariantError, match="unexpected 'nul'"):
        pv.ingest(tmp_path / "b.ndjson", tmp_path / "out")


class RecordedTasks(Engine):
    """An engine that runs no task, and keeps the sizes of those that it is asked to run."""

    parallelism = 1

    def __init__(self, parallelism: int) -> None:
        self.parallelism, self.sizes = parallelism, list[int]()

    def reduce(self, step: str, function: Any, items: Any, merge: Any, sizes: Any = ()) -> Profile:
        self.sizes += sizes
        return Profile()


@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
@pytest.mark.parametrize("mebibytes", [1, 60, 300, 700])
def test_no_task_of_a_large_file_runs_alone_at_the_end(tmp_path: Path, parallelism: int, mebibytes: int) -> None:
    path = tmp_path / "a.ndjson"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n' * 2)
        file.truncate(mebibytes << 20)
    engine = RecordedTasks(parallelism)
    with pytest.raises(VariantError, match="no JSON value"):  # because no task ran
        profile_files(engine, find_input_files([str(path)]), TextOptions())
    assert sum(engine.sizes) == mebibytes << 20
    assert max(engine.sizes) <= 128 << 20
    assert max(engine.sizes) - min(engine.sizes) <= 1
    assert len(engine.sizes) % parallelism == 0 or max(engine.sizes) <= 4 << 20
