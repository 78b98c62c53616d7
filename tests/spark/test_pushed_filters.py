"""Why the data source does not implement `pushFilters`: Spark keeps the reader of one query for the next query.

The source here skips rows by pushed filters, and returns all filters for Spark to evaluate again, which is the only
form that could be sound. Spark stores the reader in the object that all queries of a DataFrame share (SPARK-51271;
since SPARK-51575 with its partitions). If a test fails because the rows are right, `BatchReader` may implement it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, GreaterThan


def _skipping_source() -> type[DataSource]:
    """Return a source of the numbers 0 to 9; local classes are pickled with their code."""

    class Reader(DataSourceReader):
        least = -1

        def pushFilters(self, filters: list[Any]) -> list[Any]:
            self.least = max([self.least, *(each.value for each in filters if isinstance(each, GreaterThan))])
            return filters

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            for number in range(self.least + 1, 10):
                yield (number,)

    class Skipping(DataSource):
        @classmethod
        def name(cls) -> str:
            return "skipping"

        def schema(self) -> str:
            return "n INT"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Skipping


def test_spark_applies_the_filters_of_an_earlier_query(spark: Any) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(_skipping_source())
        frame = spark.read.format("skipping").load()
        assert frame.where("n > 6").count() == 3
        assert frame.count() == 3  # 10 would be right
        frame = spark.read.format("skipping").load()
        assert frame.where("n > 6").union(frame).count() < 13  # 13 would be right
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
