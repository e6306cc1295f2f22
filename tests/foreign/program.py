"""Eight threads of which two wait for each other: what is read of a core of aarch64, each of them in another system call."""

import os
import select
import socket
import sys
import threading
import time

first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
asleep = threading.Barrier(7)


def transfer():
    with first:
        both.wait()
        with second:  # waits for the second
            pass


def audit():
    with second:
        both.wait()
        with first:  # waits for the first
            pass


def nap():
    asleep.wait()
    time.sleep(3600)


def from_pipe():
    reading, _writing = os.pipe()
    asleep.wait()
    os.read(reading, 1)


def from_socket():
    listening = socket.create_server(("127.0.0.1", 0))
    asleep.wait()
    listening.settimeout(3600)
    listening.accept()


def on_events():
    events = select.epoll()
    asleep.wait()
    events.poll()


def for_child():
    child = os.fork()
    if child == 0:
        time.sleep(3600)
    asleep.wait()
    os.waitpid(child, 0)


def for_notice():
    condition = threading.Condition()
    with condition:
        asleep.wait()
        condition.wait(3600)


threads = [
    threading.Thread(target=target, name=target.__name__, daemon=True)
    for target in (transfer, audit, nap, from_pipe, from_socket, on_events, for_child, for_notice)
]
for thread in threads:
    thread.start()
asleep.wait()
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.5)
print("ready", flush=True)
threads[0].join()
