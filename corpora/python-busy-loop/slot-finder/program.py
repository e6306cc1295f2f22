"""Finds the next free delivery slot of a van: slots are a quarter of an hour, full ones are passed over."""

QUARTER = 15
DAY = 24 * 60


class Van:
    def __init__(self, taken):
        self.taken = set(taken)

    def free(self, minute):
        return minute not in self.taken and 6 * 60 <= minute < 20 * 60


def next_slot(van, minute):
    while not van.free(minute):  # CULPRIT
        minute = (minute + QUARTER) % DAY  # CULPRIT
    return minute


def main():
    van = Van(range(0, DAY, QUARTER))
    print("ready", flush=True)
    minute = next_slot(van, 8 * 60)
    print("%02d:%02d" % divmod(minute, 60))


if __name__ == "__main__":
    main()
