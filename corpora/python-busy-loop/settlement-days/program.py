"""Tell when the next invoice run is due."""
import datetime


def next_run(today):
    from workdays import SETTLEMENT

    for day in SETTLEMENT:
        if day >= today:
            return day
    return None


def main():
    print("ready", flush=True)
    print("next run:", next_run(datetime.date(2028, 5, 2)))


if __name__ == "__main__":
    main()
