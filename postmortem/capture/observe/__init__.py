"""The observation window: what the processes do while nothing is stopped.

Read ``window`` (counters and states, a dozen looks), ``timelines`` (what each thread was at), ``probes`` (words of the
interpreter itself), ``pyspy`` and ``sampling`` (Python stacks).
"""
