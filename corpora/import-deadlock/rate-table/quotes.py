"""Quotes for a currency, with the spread of the table."""

LAST = {"CHF": 0.95, "USD": 1.08, "SEK": 11.3}


def quote(currency):
    import rates  # CULPRIT

    return LAST[currency] * (1 + rates.SPREAD)
