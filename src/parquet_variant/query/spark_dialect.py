"""Spark's SQL with Variant paths.

Owns the dialect, which is imported only when the engine is Spark. Leaves paths to `path_dialect`.
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
    SUPPORTS_USER_DEFINED_TYPES = True  # so that an unknown type is refused later, with the list of types

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS = {**Databricks.Tokenizer.KEYWORDS, **SPARK_TYPES, "INT8": TokenType.BIGINT}

    class Parser(PathParser, DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}

    class Generator(DatabricksGenerator):
        TRANSFORMS = {**DatabricksGenerator.TRANSFORMS, exp.JSONExtract: path_text}
