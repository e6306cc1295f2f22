"""Damaged bundles, archives, crash reports, journals and compressed cores: ``python -m tests.faults.fuzz --bundles``.

``clean`` has an undamaged input of every kind; ``inputs`` is how one is kept, written down and laid out. A seed damages it:
``values`` the structure of its JSON, ``octets`` its bytes, ``nodes`` the kind of its files, ``archives`` a zip, ``texts`` the
fields of reports and journals; ``mutations`` chooses. ``cases`` runs the commands over the result, each in a process of its
own, with limits; ``campaign`` runs many and keeps those that fail as bytes.
"""
