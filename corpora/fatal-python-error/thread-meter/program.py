"""Reports which interpreter threads a service runs, keyed by the address of their thread state as the profiler shows them."""
import ctypes
import threading

runtime = ctypes.CDLL(None)  # CULPRIT
runtime.PyThreadState_Get.restype = ctypes.c_void_p


class Meter:
    def __init__(self):
        self.lock = threading.Lock()
        self.threads = {}

    def register(self):
        address = runtime.PyThreadState_Get()  # CULPRIT
        with self.lock:
            self.threads[address] = threading.current_thread().name


def serve(meter, begun, stop):
    begun.wait()
    meter.register()
    stop.wait()


def main():
    meter = Meter()
    begun, stop = threading.Barrier(4), threading.Event()
    workers = [threading.Thread(target=serve, args=(meter, begun, stop), name="serve-%d" % n) for n in range(3)]
    for worker in workers:
        worker.start()
    print("ready", flush=True)
    begun.wait()
    for worker in workers:
        worker.join(timeout=2)
    stop.set()
    for address, name in sorted(meter.threads.items()):
        print("%x %s" % (address, name))


if __name__ == "__main__":
    main()
