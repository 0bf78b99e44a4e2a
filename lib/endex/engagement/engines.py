"""The two engines that run the SQL texts of this package, unchanged: DuckDB and Spark.

An engine names relations: Parquet files, and the results of queries. Nothing else differs.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pandas as pd


class DuckDB:
    """DuckDB inside this process: one machine, no set-up.

    Args:
        memory: most memory, such as "1GB"; larger intermediate results go to disk.
        threads: all cores by default.
    """

    def __init__(self, memory: str | None = None, threads: int | None = None):
        config = {"memory_limit": memory, "threads": threads}
        self.connection = duckdb.connect(config={k: v for k, v in config.items() if v is not None})

    def read(self, name: str, files: Sequence[Path]) -> None:
        """Give Parquet files a name."""
        paths = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        self.connection.execute(
            f"create or replace temp view {name} as select * from read_parquet([{paths}])"
        )

    def view(self, name: str, sql: str) -> None:
        """Give a query a name; it runs each time the name is used."""
        self.connection.execute(f"create or replace temp view {name} as {sql}")

    def keep(self, name: str, sql: str) -> None:
        """Run a query once and give its result a name."""
        self.connection.execute(f"create or replace temp table {name} as {sql}")

    def frame(self, sql: str) -> pd.DataFrame:
        """Run a query and return its rows."""
        return self.connection.execute(sql).df()


class Spark:
    """A Spark session: the same SQL on one machine or on a cluster.

    Args:
        session: a `pyspark.sql.SparkSession`. Files are named as its cluster sees them.
    """

    def __init__(self, session):
        self.session = session

    def read(self, name: str, files: Sequence[Path]) -> None:
        """Give Parquet files a name."""
        paths = [str(file) for file in files]
        self.session.read.parquet(*paths).createOrReplaceTempView(name)

    def view(self, name: str, sql: str) -> None:
        """Give a query a name; it runs each time the name is used."""
        self.session.sql(sql).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> None:
        """Run a query once and give its result a name."""
        self.session.sql(sql).cache().createOrReplaceTempView(name)

    def frame(self, sql: str) -> pd.DataFrame:
        """Run a query and return its rows."""
        return self.session.sql(sql).toPandas()
