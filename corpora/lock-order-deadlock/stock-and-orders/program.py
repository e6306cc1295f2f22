"""Orders reduce the stock; a recount corrects both."""
import threading

stock_lock = threading.Lock()
orders_lock = threading.Lock()
both_inside = threading.Barrier(2)
stock = {"bolt": 100}
orders = []


def place_order():
    with orders_lock:
        orders.append(("bolt", 3))
        both_inside.wait()
        with stock_lock:  # CULPRIT
            stock["bolt"] -= 3


def recount():
    with stock_lock:
        stock["bolt"] = 97
        both_inside.wait()
        with orders_lock:  # CULPRIT
            orders.clear()


def main():
    clerk = threading.Thread(target=place_order, name="clerk", daemon=True)
    auditor = threading.Thread(target=recount, name="auditor", daemon=True)
    clerk.start()
    auditor.start()
    print("ready", flush=True)
    clerk.join()
    auditor.join()


main()
