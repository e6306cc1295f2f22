"""Counts words in log lines, four shards side by side."""
import threading


def parse(lines):
    counts = {}
    for line in lines:  # CULPRIT
        for word in line.split():
            key = word.strip(".,").lower()
            counts[key] = counts.get(key, 0) + 1
    return counts


def shard(number, results):
    lines = ["request %d served in %d ms, cache hit." % (n, n % 37) for n in range(2000)]
    totals = {}
    for _ in range(20_000):  # CULPRIT
        for key, value in parse(lines).items():
            totals[key] = totals.get(key, 0) + value
    results[number] = totals


def main():
    results = {}
    threads = [threading.Thread(target=shard, args=(n, results), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    for thread in threads:
        thread.join()
    print(sum(len(totals) for totals in results.values()))


if __name__ == "__main__":
    main()
