"""What the kernel shows of a tree of processes at one moment.

Read ``parsers`` (one function for each file of /proc), ``tree`` (the processes that belong to the command), ``facts``
(process.json), ``connections`` (net.json: how descriptors are connected), then the modules that these use.
"""
