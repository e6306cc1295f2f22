"""The tests of a tariff calculator, run by pytest."""
import sys

import pytest


def price(zone, kilograms):
    total = 0
    for gram in range(kilograms * 1000):
        total += (zone * 3 + gram % 7) % 11
    return total / 1000.0


def refuse(zone):
    if zone > 90:
        raise ValueError("no such zone: %d" % zone)
    return zone


@pytest.fixture(scope="session", autouse=True)
def opened():
    print("ready", flush=True)
    yield


@pytest.mark.parametrize("zone", range(90))
@pytest.mark.parametrize("kilograms", [90, 100, 120])
def test_price_grows_with_weight(zone, kilograms):
    assert price(zone, kilograms) < price(zone, kilograms + 20)


@pytest.mark.parametrize("zone", range(91, 120))
def test_zone_is_refused(zone):
    with pytest.raises(ValueError) as refusal:
        refuse(zone)
    assert str(zone) in str(refusal.value)


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", __file__]))
