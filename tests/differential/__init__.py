"""Our reader beside py-spy and pystack, on every interpreter, live and from a core.

The judge is the target itself: ``program`` prints what its own ``sys._current_frames()`` says. Our reading must always
be equal to it. A peer's must be too, unless ``known`` lists the difference; there the target's account proves the peer
wrong, and an entry that no longer differs fails as well.
"""
