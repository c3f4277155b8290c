#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the five queries of a fleet with DuckDB or Spark, and compares their results.

    ask.py duckdb TABLES > duckdb.json
    ask.py spark TABLES [MASTER] > spark.json      MASTER: local[*], or local-cluster[2,1,1024]
    ask.py compare duckdb.json spark.json
    ask.py table FOLDER...                         the cost of each run of scripts/fleet, as Markdown

TABLES is a folder such as fleet.parquet. The queries are the .sql files in this folder; both engines run the same text.
The results are JSON: columns, rows and seconds of each query. `compare` is strict: it expects the same rows in the same
order, and floating-point numbers within 1e-9 of each other. Its exit status is 1 if anything differs.
"""

import json
import pathlib
import sys
import time

QUESTIONS = ["worst-waits", "programs", "round-trips", "users", "p99-by-day"]
TABLES = ["sessions", "clients", "bursts", "waits", "connections", "round_trips"]
HERE = pathlib.Path(__file__).resolve().parent


def question(name):
    return (HERE / f"{name}.sql").read_text()


def plain(value):
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def timed(ask):
    began = time.monotonic()
    columns, rows = ask()
    seconds = time.monotonic() - began
    return {"columns": columns, "rows": [[plain(value) for value in row] for row in rows], "seconds": seconds}


def by_duckdb(tables):
    import duckdb

    connection = duckdb.connect()
    for name in TABLES:
        files = str(tables / name / "*" / "*" / "*" / "*.parquet").replace("'", "''")
        types = "{'host': VARCHAR, 'display': VARCHAR, 'day': DATE}"
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM "
            f"read_parquet('{files}', hive_partitioning = true, hive_types = {types})"
        )

    def ask(name):
        answer = connection.execute(question(name))
        return [column[0] for column in answer.description], answer.fetchall()

    return {name: timed(lambda: ask(name)) for name in QUESTIONS}


def by_spark(tables, master):
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col

    builder = SparkSession.builder.master(master).appName("xqos fleet")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        # Partition values stay text, as xqos wrote them.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name in TABLES:
        table = spark.read.parquet(str(tables / name))
        table.withColumn("day", col("day").cast("date")).createOrReplaceTempView(name)

    def ask(name):
        answer = spark.sql(question(name))
        return answer.columns, [list(row) for row in answer.collect()]

    try:
        return {name: timed(lambda: ask(name)) for name in QUESTIONS}
    finally:
        spark.stop()


def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return None not in (one, other) and abs(one - other) <= 1e-9
    return one == other


def differences(one, other):
    for name in QUESTIONS:
        rows, others = one[name]["rows"], other[name]["rows"]
        if one[name]["columns"] != other[name]["columns"]:
            yield f"{name}: columns {one[name]['columns']} and {other[name]['columns']}"
        if len(rows) != len(others):
            yield f"{name}: {len(rows)} and {len(others)} rows"
        for number, (row, second) in enumerate(zip(rows, others)):
            if len(row) != len(second) or not all(map(same, row, second)):
                yield f"{name}, row {number}: {row} and {second}"


def compare(paths):
    one, other = (json.loads(pathlib.Path(path).read_text()) for path in paths)
    found = list(differences(one, other))
    print("\n".join(found) or f"{sum(len(one[name]['rows']) for name in QUESTIONS)} rows of the five queries are equal")
    return 1 if found else 0


def table(folders):
    """Prints a row for each folder. Bytes and seconds are for a million trace records."""
    head = ["sessions", "records", "trace", "tables", "writing", "DuckDB", "Spark", "Spark, two workers"]
    print("| " + " | ".join(head) + " |")
    print("|" + " ---: |" * len(head))
    for folder in map(pathlib.Path, folders):
        made = json.loads((folder / "made.json").read_text())
        millions = made["records"] / 1e6
        cells = [f"{made['sessions']:,}", f"{made['records']:,}"]
        cells += [f"{made[name] / millions / 1e6:.2f} MB" for name in ("trace_bytes", "table_bytes")]
        cells.append(f"{made['export_s'] / millions:.2f} s")
        for name in ("duckdb", "spark", "cluster"):
            file = folder / f"{name}.json"
            answers = json.loads(file.read_text()) if file.exists() else {}
            seconds = sum(answer["seconds"] for answer in answers.values())
            cells.append(f"{seconds / millions:.2f} s ({seconds:.1f} s)" if answers else "")
        print("| " + " | ".join(cells) + " |")
    return 0


def main(arguments):
    match arguments:
        case ["duckdb", tables]:
            answers = by_duckdb(pathlib.Path(tables))
        case ["spark", tables, *rest] if len(rest) <= 1:
            answers = by_spark(pathlib.Path(tables), rest[0] if rest else "local[*]")
        case ["compare", one, other]:
            return compare([one, other])
        case ["table", *folders] if folders:
            return table(folders)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    print(json.dumps(answers, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
