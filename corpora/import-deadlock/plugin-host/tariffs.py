"""Prices by weight."""
import time

import steps

steps.TARIFFS_ARE_LOADING.set()
BASE_PRICE = 4.2
TABLE = {}
for weight in range(10):
    TABLE[weight] = BASE_PRICE + weight * 1.1
    time.sleep(0.03)  # asks the price file

import customs  # noqa: E402


def price(weight):
    return TABLE[weight] + customs.duty(weight)
