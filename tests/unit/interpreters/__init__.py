"""The parts of setting interpreters up that need none."""
