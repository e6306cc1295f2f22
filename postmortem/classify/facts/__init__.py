"""Facts that patterns of several families share: ``view`` first, the others as they are met."""
