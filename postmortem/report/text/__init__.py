"""The report for people: ``textreport`` is the whole, ``stacks`` its processes, ``page`` its lines; ``markdown`` the same for
pages of code hosts."""
