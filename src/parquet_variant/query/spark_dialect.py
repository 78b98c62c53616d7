"""Spark's SQL with Variant paths.

Owns the dialect; it is imported only for Spark. Leaves paths to `path_dialect`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.generators.databricks import DatabricksGenerator
from sqlglot.parsers.databricks import DatabricksParser

from parquet_variant.query.path_dialect import SPARK_TYPES, PathParser, path_text


class ForSpark(Databricks):
    """Spark's SQL with Variant paths."""

    INDEX_OFFSET = 0
    SUPPORTS_USER_DEFINED_TYPES = True  # an unknown type is refused with the list of those that there are

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS = {**Databricks.Tokenizer.KEYWORDS, **SPARK_TYPES, "INT8": TokenType.BIGINT}

    class Parser(PathParser, DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}

    class Generator(DatabricksGenerator):
        TRANSFORMS = {**DatabricksGenerator.TRANSFORMS, exp.JSONExtract: path_text}
