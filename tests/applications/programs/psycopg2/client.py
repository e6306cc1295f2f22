import os
import select
import subprocess
import sys
from pathlib import Path

import psycopg2

DSN = os.environ["DATABASE_DSN"]


def listen(connection):
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("LISTEN orders")
    Path(os.environ["READY"]).touch()
    while True:
        if select.select([connection], [], [], 60)[0]:
            connection.poll()
            print(connection.notifies)


def row(first):
    second = psycopg2.connect(DSN)
    first.cursor().execute("UPDATE stock SET amount = 1 WHERE id = 1")
    Path(os.environ["READY"]).touch()
    second.cursor().execute("UPDATE stock SET amount = 2 WHERE id = 1")  # HANG row


def alter(connection):
    reader = subprocess.Popen([sys.executable, "reader.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    reader.stdout.readline()
    Path(os.environ["READY"]).touch()
    connection.cursor().execute("ALTER TABLE stock ADD COLUMN price int")  # HANG alter


connection = psycopg2.connect(DSN)
with connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE stock (id int PRIMARY KEY, amount int)")
    cursor.execute("INSERT INTO stock VALUES (1, 0)")
{"idle": listen, "row": row, "alter": alter}[sys.argv[1]](connection)
