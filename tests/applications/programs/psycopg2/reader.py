import os
import sys

import psycopg2

connection = psycopg2.connect(os.environ["DATABASE_DSN"])
connection.cursor().execute("SELECT * FROM stock")
print("read", flush=True)
for line in sys.stdin:
    print(line)
