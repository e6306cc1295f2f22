"""Prints shipping labels in batches; between two batches the operator puts in a new roll."""
import os
import signal


class Press:
    per_roll = 250

    def __init__(self):
        self.printed = 0
        self.rolls = 1

    def print_label(self, parcel):
        self.printed += 1
        return "%08d|%s" % (parcel, "X" * 20)

    def change_roll(self):
        print("roll", self.rolls, "is used up; put in a new one, then: kill -CONT", os.getpid(), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)  # CULPRIT
        self.rolls += 1


def run(press, parcels):
    for parcel in parcels:
        press.print_label(parcel)
        if press.printed % press.per_roll == 0:
            print("ready", flush=True)
            press.change_roll()  # CULPRIT
    return press.printed


if __name__ == "__main__":
    print(run(Press(), range(2000)), "labels")
