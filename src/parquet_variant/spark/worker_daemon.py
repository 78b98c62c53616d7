"""PySpark's daemon, from which its Python workers are forked, but quiet about broken pipes from their first moment.

The setting ``spark.python.daemon.module`` names it; `local_session` sets that. Without it workers are quiet from the
moment our code arrives in them (`worker_end`). Leaves everything else to PySpark.
"""

from __future__ import annotations

import importlib
from typing import Any

from parquet_variant.spark.worker_end import keep_quiet

if __name__ == "__main__":
    daemon: Any = importlib.import_module("pyspark.daemon")
    keep_quiet(daemon)
    daemon.manager()
