"""A toll kiosk on uvloop: prices come from a coroutine, displays are updated by plain functions."""
import asyncio
import threading
import time

import uvloop


async def price(category):
    await asyncio.sleep(0.01)
    return {"car": 3, "lorry": 9}[category]


class Kiosk:
    def __init__(self, loop):
        self.loop, self.shown = loop, []

    def price_now(self, category):
        return asyncio.run_coroutine_threadsafe(price(category), self.loop).result()  # CULPRIT

    def show(self, category):
        self.shown.append(self.price_now(category))


def pulse(beats):
    while True:
        beats.append(time.monotonic())
        del beats[:-10]
        time.sleep(0.5)


async def main():
    kiosk = Kiosk(asyncio.get_running_loop())
    threading.Thread(target=pulse, args=([],), name="pulse", daemon=True).start()
    print("ready", flush=True)
    for category in ("car", "lorry"):
        await asyncio.sleep(0.05)
        kiosk.show(category)


uvloop.install()
asyncio.run(main())
