"""The report for people: ``textreport`` is the whole, ``stacks`` its processes, ``page`` its lines.

``markdown`` is the same report for pages of code hosts.
"""
