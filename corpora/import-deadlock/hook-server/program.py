"""Collects the webhooks of a code forge, and prints how many came."""
import argparse
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    options = parser.parse_args()
    print("ready", flush=True)
    import hooks

    time.sleep(options.seconds)
    print(len(hooks.RECEIVED), "webhooks on port", hooks.SERVER.config.port)


if __name__ == "__main__":
    main()
