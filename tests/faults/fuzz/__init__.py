"""Damaged cores by the thousand: ``python -m tests.faults.fuzz``, and in the small a test.

``bases`` takes clean cores of ``target`` under several interpreters; ``reads`` notes what the reader reads of one;
``mutations`` makes a seed into damage, most of it exactly there; ``damage`` lays it over the core without copying it;
``cases`` analyses the result in a process of its own, with limits; ``flips`` counts verdicts that survive a few flipped bytes.
"""
