"""Diagnosis of evidence: every pattern is evaluated, and their findings are ranked.

Read ``pattern`` (the definition of a pattern and its answers), ``facts/view`` (the queries that patterns use), one
pattern of ``patterns/``, then ``engine``. ``snippets`` holds code before and after a fix for the pages, ``signature``
the short string that identifies a hang.
"""
