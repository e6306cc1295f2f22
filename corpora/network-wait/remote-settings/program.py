"""Start a kiosk with the settings that head office keeps for it."""
import os
import socket
import sys


def start():
    from kiosk_settings import SETTINGS

    return "kiosk %s opens at %s" % (SETTINGS["name"], SETTINGS["opens"])


def main():
    if len(sys.argv) > 1:
        address = sys.argv[1]
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = "%s:%d" % stand_in.getsockname()
    os.environ["KIOSK_SETTINGS"] = "http://%s/kiosk.json" % address
    print("ready", flush=True)
    print(start())


if __name__ == "__main__":
    main()
