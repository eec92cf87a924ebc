"""libpq: the connection is made by native code."""

import json
import sys

import psycopg

PORT = json.loads(sys.argv[1])["postgres"]
with psycopg.connect(host="127.0.0.1", port=PORT, dbname="postgres", user="tester", connect_timeout=10) as connection:
    connection.execute("CREATE TEMPORARY TABLE t (n int, s text)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(n, "x" * n) for n in range(100)])
        print(cursor.execute("SELECT sum(n), sum(length(s)) FROM t").fetchone())
