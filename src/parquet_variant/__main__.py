"""``python -m parquet_variant``: the command `variant`."""

from parquet_variant.cli.__main__ import run

if __name__ == "__main__":
    run()
