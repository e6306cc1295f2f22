"""Where cores come from: files, systemd's journal, apport's and abrt's reports, core directories; compressed or not.

Read ``stores`` (which store a target names), then the store in question; ``executable`` finds the program that left a core,
``located`` and ``sparse`` its files, ``unpacked`` and ``codecs`` its compression.
"""
