"""Second step: unlock the key of the release."""
import getpass


def unlock(key):
    print("unlocking", key, flush=True)
    return getpass.getpass("passphrase of %s: " % key)  # CULPRIT


if __name__ == "__main__":
    unlock("release-2024")
