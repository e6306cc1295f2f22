"""The settlement days of a year: the 15th of each month, or the working day next to it."""
import datetime

YEAR = 2028
CLOSED = {
    datetime.date(YEAR, 4, 14),  # Good Friday
    datetime.date(YEAR, 4, 17),  # Easter Monday
    datetime.date(YEAR, 12, 25),
}
ONE = datetime.timedelta(days=1)


def open_for_business(day):
    return day.weekday() < 5 and day not in CLOSED


def beside(day):
    """Saturdays go back to the Friday, other days on to the next one."""
    return day - ONE if day.weekday() == 5 else day + ONE  # CULPRIT


SETTLEMENT = []
month = 1
day = datetime.date(YEAR, month, 15)
while month <= 12:  # CULPRIT
    if not open_for_business(day):
        day = beside(day)
        continue
    SETTLEMENT.append(day)
    month += 1
    if month <= 12:
        day = datetime.date(YEAR, month, 15)
