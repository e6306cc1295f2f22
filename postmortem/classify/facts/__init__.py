"""Facts shared by patterns of several families. Read ``view`` first."""
