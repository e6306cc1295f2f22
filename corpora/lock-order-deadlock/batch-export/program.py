"""Exports several tables at once; each exporter locks its tables first, in the order it was asked for."""
import contextlib
import threading
import time


class Table:
    def __init__(self, name):
        self.name = name
        self.latch = threading.Lock()
        self.rows = list(range(100))


class Export(threading.Thread):
    def __init__(self, tables):
        super().__init__(name="export-" + "-".join(t.name for t in tables))
        self.tables = tables

    def run(self):
        with contextlib.ExitStack() as locked:
            for table in self.tables:
                locked.enter_context(table.latch)  # CULPRIT
                time.sleep(0.2)  # reads the header
            for table in self.tables:
                print(table.name, sum(table.rows), flush=True)


def main():
    orders, items, stock = Table("orders"), Table("items"), Table("stock")
    exports = [Export([orders, items]), Export([items, stock]), Export([stock, orders])]
    print("ready", flush=True)
    for export in exports:
        export.start()
    for export in exports:
        export.join()


if __name__ == "__main__":
    main()
