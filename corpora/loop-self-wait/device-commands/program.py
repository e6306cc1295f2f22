"""A service with its event loop in a thread; commands may come from any thread."""
import asyncio
import threading


class DeviceLoop:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="device-loop", daemon=True)
        self.state = "idle"

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def command(self, state):
        """Switches the device, and returns when that is done."""
        applied = threading.Event()

        def apply():
            self.state = state
            applied.set()

        self.loop.call_soon_threadsafe(apply)
        applied.wait()  # CULPRIT

    def every(self, seconds, callback):
        self.loop.call_soon_threadsafe(self.loop.call_later, seconds, callback)


class Watch:
    def __init__(self, device):
        self.device = device
        self.ticks = 0

    def tick(self):
        self.ticks += 1
        if self.device.state == "running":
            self.device.command("cooling")  # CULPRIT


def main():
    device = DeviceLoop()
    device.thread.start()
    device.command("running")
    device.every(0.1, Watch(device).tick)
    print("ready", flush=True)
    device.thread.join()


if __name__ == "__main__":
    main()
