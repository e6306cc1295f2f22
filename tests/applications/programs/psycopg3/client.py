import os
import sys
from pathlib import Path

import psycopg
from psycopg_pool import ConnectionPool

DSN = os.environ["DATABASE_DSN"]


def listen():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute("LISTEN orders")
        Path(os.environ["READY"]).touch()
        for notify in connection.notifies():
            print(notify)


def row():
    first = psycopg.connect(DSN)
    second = psycopg.connect(DSN)
    first.execute("UPDATE stock SET amount = 1 WHERE id = 1")
    Path(os.environ["READY"]).touch()
    second.execute("UPDATE stock SET amount = 2 WHERE id = 1")  # HANG row


def price(pool, id):
    Path(os.environ["READY"]).touch()
    with pool.connection(timeout=3600) as connection:  # HANG pool
        return connection.execute("SELECT amount FROM stock WHERE id = %s", [id]).fetchone()


def pooled():
    with ConnectionPool(DSN, min_size=1, max_size=1) as pool:
        with pool.connection() as connection:
            for (id,) in connection.execute("SELECT id FROM stock"):
                print(price(pool, id))


with psycopg.connect(DSN) as connection:
    connection.execute("CREATE TABLE stock (id int PRIMARY KEY, amount int)")
    connection.execute("INSERT INTO stock VALUES (1, 0)")
{"idle": listen, "row": row, "pool": pooled}[sys.argv[1]]()
