"""Cores of other machines than those that the tests run on, recorded once and kept.

``python -m tests.foreign`` records ``aarch64.core.xz`` anew: Debian's aarch64 kernel and Python run ``program.py`` under
qemu-system-aarch64, and the kernel writes the core. Nobody needs that to run the tests.
"""
