"""Run `variant` as ``python -m parquet_variant.cli``. Owns nothing else."""

from __future__ import annotations

import sys

from parquet_variant.cli.app import main

sys.exit(main())
