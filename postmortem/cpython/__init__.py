"""CPython 3.8 to 3.15, including free-threaded builds, read out of memory; nothing is executed.

    runtime/   find the interpreter; its version, and where its structures have which field
    objects/   str, dict, list and their kin; code objects; attributes
    frames/    Python stacks: frames, calls, exceptions, the program's name of an object
    sync/      locks, conditions, queues, semaphores: waiters and holders
    state/     interpreters, thread states, the GIL; signal handlers, values, fatal errors
    heap/      referrers of an object, and what variables lead to

Each package imports only those above it. Uses the standard library alone.
"""
