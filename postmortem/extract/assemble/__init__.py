"""Bundles and cores → evidence: ``cores`` reads one core, ``processes`` those of a tree, ``bundles`` a whole capture."""
