"""First step: is everything there?"""
import sys

print("checked with Python %d.%d" % sys.version_info[:2])
