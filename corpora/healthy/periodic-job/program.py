"""Samples the load of the machine every second and a half."""
import os
import time


class Sampler:
    period = 1.5

    def __init__(self):
        self.history = []

    def sample(self):
        self.history.append(os.getloadavg()[0])
        del self.history[:-100]

    def run(self):
        while True:
            self.sample()
            print("load", self.history[-1], flush=True)
            time.sleep(self.period)


print("ready", flush=True)
Sampler().run()
