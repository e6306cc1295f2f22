"""From evidence to a diagnosis: every pattern is asked, what they find is ranked.

Read ``pattern`` (what a pattern is and may answer), ``facts/view`` (the questions that patterns ask), one pattern of
``patterns/``, then ``engine``. ``snippets`` has code before and after for the pages, ``signature`` the short string of a hang.
"""
