"""Prints the cities of a registry that is loaded once, when its module is imported."""
import sys

print("ready", flush=True)
import registry  # noqa: E402


def main():
    for name in sorted(registry.CITIES):
        print(name, registry.CITIES[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
