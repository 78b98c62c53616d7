"""Read Parquet files as format tables of Paimon: a process of its environment (`make judges` creates it).

The arguments are files; each answer is a JSON line: the type of the column v and its number of rows, or an error.
"""

import json
import sys
from pathlib import Path
from typing import Any


def rows_of(path: str) -> Any:
    """Return the rows of a format table over the file."""
    from pypaimon.common.identifier import Identifier
    from pypaimon.filesystem.local_file_io import LocalFileIO
    from pypaimon.schema.data_types import AtomicType, DataField
    from pypaimon.schema.table_schema import TableSchema
    from pypaimon.table.format.format_table import Format, FormatTable

    folder = str(Path(path).parent)
    schema = TableSchema(fields=[DataField(0, "v", AtomicType("VARIANT"))])
    name = Identifier.create("default", "t")
    table = FormatTable(LocalFileIO(folder), name, schema, location=folder, format=Format.PARQUET, options={})
    reading = table.new_read_builder()
    splits = [split for split in reading.new_scan().plan().splits() if split.data_path().endswith(path)]
    return reading.new_read().to_arrow(splits)


def main() -> None:
    """Print the answer for every file."""
    for path in sys.argv[1:]:
        try:
            rows = rows_of(path)
            answer = {"type": str(rows.schema.field("v").type), "rows": len(rows)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
