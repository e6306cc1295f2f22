"""Books fees of members into a ledger in PostgreSQL, a worker process for each branch."""
import multiprocessing
import os
import sys
import time

import psycopg2

URL = os.environ.get("LEDGER_URL", "dbname=ledger user=fees host=127.0.0.1")


class Ledger:
    def __init__(self, url):
        self.connection = psycopg2.connect(url)

    def run(self, statement, *values):
        cursor = self.connection.cursor()
        cursor.execute(statement, values)  # CULPRIT
        return cursor

    def balance(self, member):
        return self.run("SELECT cents FROM accounts WHERE member = %s FOR UPDATE", member).fetchone()[0]

    def book(self, member, cents):
        balance = self.balance(member)
        if balance + cents < 0:
            print("refused:", member, file=sys.stderr)
            return
        self.run("UPDATE accounts SET cents = %s WHERE member = %s", balance + cents, member)
        self.connection.commit()


def branch(fees, stays):
    ledger = Ledger(URL)
    for member, cents in fees:
        ledger.book(member, -cents)
    while stays:
        time.sleep(5)  # until the next fees come, once they do


def main():
    workers = [
        multiprocessing.Process(target=branch, args=([("ada", 99_000)], True), daemon=True),
        multiprocessing.Process(target=branch, args=([("bob", 300), ("ada", 200)], False)),
    ]
    for worker in workers:
        worker.start()
    print("ready", flush=True)
    workers[1].join()


if __name__ == "__main__":
    main()
