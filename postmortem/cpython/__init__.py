"""CPython 3.8 to 3.15, free-threaded builds too, read out of memory: the standard library alone, nothing executed.

    runtime/   find the interpreter; its version, and where its structures have which field
    objects/   str, dict, list and their kin; code objects; attributes
    frames/    Python stacks: frames, calls, exceptions, what the program calls an object
    sync/      locks, conditions, queues, semaphores: who waits and who holds
    state/     interpreters, thread states, the GIL; signal handlers, values, last words
    heap/      who refers to an object, and what variables lead to

Each imports only what stands above it.
"""
