"""Looks up ticket prices, in a thread pool; each region is worked out by a process."""
import concurrent.futures
import multiprocessing

pool = concurrent.futures.ThreadPoolExecutor(max_workers=2, thread_name_prefix="lookup")


def price(zone):
    return 2.4 + zone * 0.8


def region(zones):
    found = list(pool.map(price, zones))  # CULPRIT
    print(sum(found))


def main():
    print(sum(pool.map(price, range(4))))
    start = multiprocessing.get_context("fork")
    process = start.Process(target=region, args=([1, 2, 3],))
    process.start()  # CULPRIT
    print("ready", flush=True)
    process.join()


if __name__ == "__main__":
    main()
