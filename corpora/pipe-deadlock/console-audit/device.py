"""A device's console: asks who is there, takes one command, prints its report and ends."""
import sys

name = sys.argv[1]
user = input("login: ")
command = input("%s@%s> " % (user, name))
if command == "report full":
    for port in range(4000):
        print("%s port %4d: up, 1000 Mbit/s, full duplex, %9d frames, 0 errors" % (name, port, port * 7919))
