"""Parts of the standard library that touch the system: zoneinfo, sqlite3, tempfile, selectors, subprocess-free pipes."""

import datetime
import os
import select
import socket
import sqlite3
import tempfile
import zoneinfo
from pathlib import Path

print(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris")).utcoffset())
with tempfile.TemporaryDirectory(dir=".") as folder:
    with sqlite3.connect(Path(folder) / "data.db") as database:
        database.execute("CREATE TABLE t (n)")
        database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
        print(database.execute("SELECT sum(n) FROM t").fetchone())
    database.close()
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"x" * 10_000)
        print(file.tell())
with tempfile.TemporaryFile(dir=".") as unnamed:
    print(unnamed.write(b"y"))
one, two = socket.socketpair()
poll = select.epoll()
poll.register(one, select.EPOLLIN)
two.send(b"z")
print(poll.poll(5)[0][1] == select.EPOLLIN, one.recv(1))
ends = os.pipe()
os.write(ends[1], b"w")
print(select.select([ends[0]], [], [], 5)[0] == [ends[0]])
