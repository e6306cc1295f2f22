"""What the kernel says of a tree of processes, at one moment.

Read ``parsers`` (a function a file of /proc), ``tree`` (which processes belong to the command), ``facts`` (process.json),
``connections`` (net.json: what ties descriptors together), then whatever these use.
"""
