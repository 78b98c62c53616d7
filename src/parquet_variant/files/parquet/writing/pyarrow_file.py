"""A Parquet file writer that uses pyarrow: the reference implementation that `pages.file_writer` is compared with.

Owns the options passed to pyarrow and the insertion of the VARIANT annotation, which pyarrow cannot write, into the
footer. Leaves the sizes of row groups and the names of files to `writer`.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.errors import SchemaError, VariantFileError, first_line
from parquet_variant.files.parquet.format.arrow_schema import leaf_paths
from parquet_variant.files.parquet.format.footer import MAGIC, TAIL, annotate_footer
from parquet_variant.files.parquet.writing.encodings import DICTIONARY_BYTES

# Each page is compressed on its own, so large pages make smaller files.
_PAGE_BYTES = 16 << 20
# Values of a column per call of the encoder: eight times pyarrow's default, for fewer calls.
_BATCH_VALUES = 8_192


class _FooterSink(io.RawIOBase):
    """A file that passes bytes on, or collects them once `tail` is a list, so that the footer can be changed."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self.stream, self.size = stream, 0
        self.tail: list[bytes] | None = None

    def write(self, data: Any) -> int:
        if self.tail is None:
            self.stream.write(data)
        else:
            self.tail.append(bytes(data))
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True


class PyarrowFileWriter:
    """Write Arrow columns into a Parquet file, with the methods and parameters of `PageFileWriter`.

    `options`: ``compression``, and the result of `choose_encodings`.
    Raises `VariantFileError` if the installed pyarrow cannot write the Bloom filters.
    """

    def __init__(
        self,
        stream: pa.NativeFile,
        schema: pa.Schema,
        variants: Collection[tuple[str, ...]],
        *,
        no_statistics: Collection[str],
        bloom_filters: Collection[str],
        **options: Any,
    ) -> None:
        self._sink, self._variants = _FooterSink(stream), variants
        self._pending: list[pa.Table] = []
        leaves = (".".join(leaf) for field in schema for leaf in leaf_paths(field, (field.name,)))
        if bloom_filters:
            options["bloom_filter_options"] = dict.fromkeys(bloom_filters, True)
        try:
            self._writer = pq.ParquetWriter(
                self._sink,
                schema,
                version="2.6",
                data_page_size=_PAGE_BYTES,
                dictionary_pagesize_limit=DICTIONARY_BYTES,
                write_statistics=[leaf for leaf in leaves if leaf not in no_statistics],
                store_decimal_as_integer=True,
                write_page_index=True,
                write_batch_size=_BATCH_VALUES,
                store_schema=False,
                **options,
            )
        except pa.ArrowNotImplementedError as error:
            problem = f"Parquet has no type for a column: {first_line(error)}; cast it first"
            raise SchemaError(problem, reason="unsupported-type") from None
        except TypeError:
            if not bloom_filters:
                raise
            raise VariantFileError(
                f"pyarrow {pa.__version__} does not write Bloom filters: use writer='native', or pyarrow 24 or newer",
                reason="bad-option",
            ) from None

    def write_batch(self, table: pa.Table) -> None:
        """Add rows to the current row group."""
        self._pending.append(table)

    def end_row_group(self) -> None:
        """Write the rows added since the last row group as a row group, if there are any."""
        if self._pending:
            # pyarrow stops using a dictionary when the next chunk has a different one.
            table = pa.concat_tables(self._pending).unify_dictionaries()
            self._pending = []
            self._writer.write_table(table, row_group_size=len(table))

    def close(self, key_values: Mapping[str, str]) -> tuple[bytes, int]:
        """Write pending rows and the footer with key-value metadata; return the footer's bytes and the file's size."""
        self.end_row_group()
        self._writer.add_key_value_metadata(dict(key_values))
        self._sink.tail = []
        self._writer.close()
        tail = b"".join(self._sink.tail)
        length = int.from_bytes(tail[-TAIL:-4], "little")
        footer = tail[-TAIL - length : -TAIL]
        if self._variants:
            footer = annotate_footer(footer, self._variants)
        end = tail[: -TAIL - length] + footer + len(footer).to_bytes(4, "little") + MAGIC
        self._sink.stream.write(end)
        return footer, self._sink.size - len(tail) + len(end)

    def abort(self) -> None:
        """Close pyarrow's writer and discard what it still writes."""
        self._sink.tail = []
        self._writer.close()
