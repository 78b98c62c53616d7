"""PySpark's daemon, from which Python workers are forked, without tracebacks of broken pipes from the first moment.

`local_session` sets ``spark.python.daemon.module`` to this module. Without it, workers are quiet as soon as an object
of this package arrives in them (see `task_errors`).
"""

from __future__ import annotations

from pyspark import daemon

from parquet_variant.spark.task_errors import keep_quiet

if __name__ == "__main__":
    keep_quiet()
    daemon.manager()
