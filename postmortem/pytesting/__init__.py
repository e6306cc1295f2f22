"""The pytest plugin: limits for tests, watched from another process.

    guard      in pytest's process: hooks that say what begins, and how long it may take
    page       the memory that both share: a test costs a few stores into it, and no system call
    watchdog   the other process: asleep until a limit has passed
    strike     what it does then: capture, diagnosis, interruption, or the end of what cannot be interrupted
    junit      the file of results when pytest is no more
    workers    what pytest-xdist's controller makes of it

Native code that keeps the GIL, a main thread without a pulse and a hang at the interpreter's exit silence whatever lives
in the process. The watchdog lives outside, and is no child of it: tests that wait for any child do not meet it.
"""

#: The name of the plugin's marker.
MARKER = "postmortem_timeout"
