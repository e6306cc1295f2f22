"""What keeps secrets out of reports: command lines, source lines and texts, masked before anybody sees evidence.

``raw/`` of a bundle keeps what was read. Everything that is made of it passes ``whole.discreet``, old evidence included.
"""
