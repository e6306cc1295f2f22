"""Takes an inventory of the screens in the meeting rooms from what their players report."""
import threading

import jc

REPORTS = {
    "oak": """Screen 0: minimum 320 x 200, current 1920 x 1080, maximum 16384 x 16384
HDMI-1 connected primary 1920x1080+0+0 (normal left inverted right x axis y axis) 527mm x 296mm
   1920x1080     60.00*+  50.00
   1280x720      60.00    50.00
""",
    "elm": """'Screen 0: minimum 1024 x 600, current 1024 x 600, maximum 1024 x 600
default connected 1024x600+0+0 0mm x 0mm
   1024x600       0.00*
""",
}


class Inventory:
    def __init__(self):
        self.rooms = {}
        self.guard = threading.Lock()

    def take(self, room, report):
        screens = jc.parse("xrandr", report, quiet=True)  # CULPRIT
        with self.guard:
            self.rooms[room] = screens

    def take_all(self, reports):
        for room, report in sorted(reports.items(), reverse=True):
            self.take(room, report)


def main():
    inventory = Inventory()
    inventory.take("oak", REPORTS["oak"])
    worker = threading.Thread(target=inventory.take_all, args=(REPORTS,), name="inventory", daemon=True)
    print("ready", flush=True)
    worker.start()
    worker.join()
    print(sorted(inventory.rooms))


if __name__ == "__main__":
    main()
