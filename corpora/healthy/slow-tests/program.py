"""The tests of a pricing engine: thorough, and slow."""
import time
import unittest


def price(base, quantity, discount):
    total = 0.0
    for step in range(quantity):
        total += base * (1 - discount) ** (step % 10)
    return round(total, 2)


class PriceTest(unittest.TestCase):
    pass


def make_test(number):
    def test(self):
        for quantity in range(1, 400, 2):
            whole = price(10 + number, quantity, 0.01)
            self.assertGreater(whole, 0)
            self.assertLessEqual(whole, (10 + number) * quantity + 0.01)
        time.sleep(0.01)  # the clock of the fixture ticks in hundredths

    return test


for number in range(5000):
    setattr(PriceTest, "test_price_%04d" % number, make_test(number))


if __name__ == "__main__":
    print("ready", flush=True)
    unittest.main(verbosity=2)
