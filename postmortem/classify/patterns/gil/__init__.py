"""Threads that compute: the interpreter lock, busy loops, backtracking, slow imports."""
