"""Who may open which door: groups grant doors to their members, and groups can be members of groups."""
import logging
import queue
import threading

log = logging.getLogger("access")
log.addHandler(logging.NullHandler())


class Grant:
    def __init__(self, doors, heirs=()):
        self.doors = set(doors)
        self.heirs = list(heirs)

    def covers(self, directory, door):
        if door in self.doors:
            return True
        for heir in self.heirs:
            if directory.opens(heir, door):
                return True
        return False


class Group:
    def __init__(self, name):
        self.name = name
        self.grants = []

    def allows(self, directory, door):
        for grant in self.grants:
            if grant.covers(directory, door):
                return True
        return False


class Directory:
    def __init__(self):
        self.groups = {}

    def group(self, name):
        return self.groups.setdefault(name, Group(name))

    def opens(self, name, door):
        try:
            return self.group(name).allows(self, door)  # CULPRIT
        except RecursionError:  # CULPRIT
            log.debug("gave up on %s", name)
            return False


class Gatekeeper:
    def __init__(self, directory):
        self.directory = directory
        self.requests = queue.Queue()

    def serve(self):
        while True:
            badge, door, reply = self.requests.get()
            reply.put(self.directory.opens(badge, door))

    def ask(self, badge, door):
        reply = queue.Queue(1)
        self.requests.put((badge, door, reply))
        return reply.get()


def campus():
    directory = Directory()
    directory.group("library").grants = [Grant(["reading-room", "archive"])]
    directory.group("staff").grants = [Grant(["lobby"], ["faculty", "library"]), Grant(["canteen"], ["services"])]
    directory.group("faculty").grants = [Grant(["lab"], ["staff", "services"])]
    directory.group("services").grants = [Grant(["boiler-house"], ["staff", "faculty"])]
    return directory


def main():
    keeper = Gatekeeper(campus())
    threading.Thread(target=keeper.serve, name="gatekeeper", daemon=True).start()
    print("archive for the library:", keeper.ask("library", "archive"), flush=True)
    print("ready", flush=True)
    print("roof for the staff:", keeper.ask("staff", "roof"))


if __name__ == "__main__":
    main()
