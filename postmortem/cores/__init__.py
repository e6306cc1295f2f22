"""Sources of cores: files, systemd's journal, apport's and abrt's reports, core directories; compressed or not.

Read ``stores`` (which store a target names), then the store in question; ``executable`` finds the program of a core,
``located`` its files, ``unpacked``, ``codecs`` and ``sparse`` decompress it.
"""
