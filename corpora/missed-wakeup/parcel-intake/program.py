"""Takes parcels in at the counter and labels them in the back room; the queue between the two outlives a restart."""
import os
import tempfile
import threading

import persistqueue


class Intake:
    """The counter: writes what comes in to the queue on disk."""

    def __init__(self, folder):
        self.parcels = persistqueue.Queue(folder)  # CULPRIT

    def accept(self, number, weight):
        self.parcels.put({"number": number, "weight": weight})


class BackRoom(threading.Thread):
    """Labels the parcels, in the order in which they came."""

    def __init__(self, folder):
        super().__init__(name="back-room", daemon=True)
        self.parcels = persistqueue.Queue(folder)  # CULPRIT
        self.labels = []
        self.all_labelled = threading.Event()

    def run(self):
        while True:
            parcel = self.parcels.get()  # CULPRIT
            if parcel["weight"] is None:
                break
            self.labels.append("%06d %4.1f kg" % (parcel["number"], parcel["weight"]))
            self.parcels.task_done()
        self.all_labelled.set()


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "parcels")
        intake = Intake(place)
        back_room = BackRoom(place)
        back_room.start()
        for number in range(1, 6):
            intake.accept(number, number * 0.7)
        intake.accept(0, None)
        print("ready", flush=True)
        back_room.all_labelled.wait()
        print("\n".join(back_room.labels))


if __name__ == "__main__":
    main()
