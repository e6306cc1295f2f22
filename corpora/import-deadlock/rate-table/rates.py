"""Exchange rates, computed in parallel at import time."""
from concurrent.futures import ThreadPoolExecutor

import quotes

CURRENCIES = ("CHF", "USD", "SEK")
SPREAD = 0.01

with ThreadPoolExecutor(2, thread_name_prefix="quotes") as pool:
    TABLE = dict(zip(CURRENCIES, pool.map(quotes.quote, CURRENCIES)))  # CULPRIT
