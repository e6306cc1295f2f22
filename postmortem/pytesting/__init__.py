"""The pytest plugin: limits for tests, watched from another process.

    guard      in pytest's process: hooks that record what begins, and how long it may take
    page       the memory shared by both processes: a test costs a few stores into it, and no system call
    watchdog   the other process: asleep until a limit has passed
    strike     its reaction: capture, diagnosis, interruption, or the end of a process that cannot be interrupted
    junit      the file of results for a pytest that cannot write it any more
    workers    reports in pytest-xdist's controller

Native code that keeps the GIL, a main thread that never runs again and a hang at the interpreter's exit disable every
watchdog inside the process. This one is outside, and not a child: tests that wait for any child do not meet it.
"""

#: The name of the plugin's marker.
MARKER = "postmortem_timeout"
