"""Waits for the tide in C, on a condition variable that an exit handler destroys."""
import ctypes
import threading
import time

libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)
tide = ctypes.create_string_buffer(64)
# both outlive the interpreter
ctypes.pythonapi.Py_IncRef(ctypes.py_object(mutex))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(tide))


def watch():
    libc.pthread_mutex_lock(mutex)
    libc.pthread_cond_wait(tide, mutex)  # CULPRIT
    libc.pthread_mutex_unlock(mutex)


def main():
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_cond_init(tide, None)
    libc.__cxa_atexit(libc.pthread_cond_destroy, tide, None)  # CULPRIT
    threading.Thread(target=watch, name="watch", daemon=True).start()
    time.sleep(0.2)
    print("ready", flush=True)


if __name__ == "__main__":
    main()
