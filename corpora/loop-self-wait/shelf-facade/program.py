"""The desk of a parcel shop: synchronous for its staff, asynchronous inside."""
import anyio
from anyio.from_thread import start_blocking_portal


class Shelves:
    def __init__(self):
        self.places = {}
        self.reserved = 0

    async def free_place(self, size):
        await anyio.sleep(0.2)  # asks the light barriers
        self.reserved += 1
        return "%s-%02d" % (size, self.reserved)

    async def put(self, place, parcel):
        await anyio.sleep(0)
        self.places[place] = parcel


class ShelfFacade:
    """For code that knows nothing of async."""

    def __init__(self, portal, shelves):
        self._portal = portal
        self._shelves = shelves

    def reserve(self, size):
        return self._portal.start_task_soon(self._shelves.free_place, size)

    def put(self, place, parcel):
        self._portal.call(self._shelves.put, place, parcel)


class Booking:
    def __init__(self, parcel, reservation):
        self.parcel = parcel
        self.reservation = reservation

    @property
    def place(self):
        return self.reservation.result()  # CULPRIT

    def label(self):
        return "%s -> %s" % (self.parcel, self.place)


class Desk:
    def __init__(self, shelves):
        self.shelves = shelves
        self.labels = []

    async def book(self, booking):
        self.labels.append(booking.label())  # CULPRIT
        await self.shelves.put(booking.place, booking.parcel)


def main():
    shelves = Shelves()
    with start_blocking_portal() as portal:
        facade = ShelfFacade(portal, shelves)
        first = facade.reserve("large")
        facade.put(first.result(), "P-1")
        print("ready", flush=True)
        portal.call(Desk(shelves).book, Booking("P-2", facade.reserve("small")))


if __name__ == "__main__":
    main()
