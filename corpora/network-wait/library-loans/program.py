"""Prints the loans of a library's readers that are due, from its MySQL database."""
import queue
import sys
import threading

import pymysql


class Loans:
    def __init__(self, host, port):
        self.host = host
        self.port = port

    def connect(self):
        place = {"host": self.host, "port": self.port}
        return pymysql.connect(user="desk", password="desk", connect_timeout=5, **place)  # CULPRIT

    def due(self, reader):
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT title FROM loans WHERE reader = %s AND due < NOW()", (reader,))  # CULPRIT
                return [title for (title,) in cursor.fetchall()]
        finally:
            connection.close()


class Desk:
    def __init__(self, loans):
        self.loans = loans
        self.readers = queue.Queue()
        self.letters = {}

    def write_letters(self):
        while True:
            reader = self.readers.get()
            self.letters[reader] = self.loans.due(reader)
            self.readers.task_done()

    def run(self, readers):
        for number in range(2):
            threading.Thread(target=self.write_letters, name="letters-%d" % number, daemon=True).start()
        for reader in readers:
            self.readers.put(reader)
        print("ready", flush=True)
        self.readers.join()


def main():
    host, _, port = sys.argv[1].rpartition(":")
    desk = Desk(Loans(host, int(port)))
    desk.run(["R-117", "R-240", "R-251"])
    print(desk.letters)


if __name__ == "__main__":
    main()
