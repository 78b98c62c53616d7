"""JSON files as values: all of them, or only those that some paths lead to.

Owns reading them in threads, in order. Leaves the steps to `batches`, and removing the other values to
`kernels.tapes.compact`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.batches import ChunkResult, Pass, steps
from parquet_variant.ingestion.request import Sources, TextOptions
from parquet_variant.ingestion.sources.input_files import find_input_files
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.engine import check_interrupted
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.compact import project
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types.path import VariantPath

Result = TypeVar("Result")
Used = TypeVar("Used")


@dataclass(frozen=True)
class JsonFiles:
    """The values of JSON files.

    `splits`: the files.
    `text`: how they are read.
    """

    splits: Sequence[Split]
    text: TextOptions = field(default_factory=TextOptions)

    @classmethod
    def of(cls, sources: Sources, text: TextOptions | None = None) -> JsonFiles:
        """Find the files. Raises `VariantFileError` for a source that does not exist."""
        text = text or TextOptions()
        return cls([Split(file) for file in find_input_files(sources, text.exclude, pipes=True)], text)

    def arrays(
        self,
        use: Callable[[VariantArray], Used],
        *,
        schema: ShreddingSchema | None = None,
        paths: Collection[VariantPath] | None = None,
        threads: int | None = None,
    ) -> Iterator[Used]:
        """Yield what a function returns for each array of rows, in order.

        `use`: the function, which is called in threads.
        `schema`: the shredding schema of the arrays; None shreds nothing.
        `paths`: the paths that `use` looks at; the other fields of objects may be missing. None for whole values.
        `threads`: the number of threads (default: one per CPU that this process may use).
        Raises `JsonError` or `VariantFileError` for a line or file that cannot be read, and for files without a value.
        """
        work = Pass(partial(_array, schema, paths), lambda first, second: VariantArray.concat([first, second]))
        any_row = False
        for results in self._each(work, lambda array: [use(array)] if len(array) else [], threads):
            any_row = any_row or bool(results)
            yield from results
        if not any_row:
            raise VariantFileError(
                "the sources hold no JSON value: name files that contain at least one", reason="no-rows"
            )

    def keys(self, threads: int | None = None) -> frozenset[str]:
        """Return every key of the objects in the files. Raises as `arrays` does."""
        work: Pass[frozenset[bytes]] = Pass(lambda tape: frozenset(tape.key_list), lambda first, second: first | second)
        keys = frozenset[bytes]().union(*self._each(work, lambda keys: keys, threads))
        return frozenset(key.decode("utf-8", "surrogatepass") for key in keys)

    def _each(self, work: Pass[Result], use: Callable[[Result], Used], threads: int | None) -> Iterator[Used]:
        def run(step: Callable[[], ChunkResult[Result]]) -> Used:
            check_interrupted()
            return use(step().result)

        yield from in_order(run, steps(self.splits, self.text, work), thread_count(threads), read_ahead=True)


def _array(schema: ShreddingSchema | None, paths: Collection[VariantPath] | None, tape: Tape) -> VariantArray:
    rows = shredded_rows(tape if paths is None else project(tape, paths), schema, per_batch=True)
    return trusted_array(rows.storage(), fits_files=True)
