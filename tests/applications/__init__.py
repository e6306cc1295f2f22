"""Real applications, each idle and in two well-known hangs: ``make applications``.

Read ``specs.py`` (what is tried), then ``trying.py`` (one state: start, reach, capture), ``judging.py`` (what is right)
and ``page.py`` (docs/applications.md). ``venvs.py`` and ``services.py`` set up what the applications need.
"""
