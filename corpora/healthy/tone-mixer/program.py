"""Mixes tones for a small synthesizer: a block of samples every 60 ms, and a keyboard that changes the chord."""
import array
import asyncio
import math
import time


class Mixer:
    def __init__(self, rate):
        self.rate = rate
        self.chord = (220.0, 277.2, 329.6)
        self.phase = 0
        self.late = 0

    def block(self, length):
        samples = array.array("h")
        for n in range(self.phase, self.phase + length):
            moment = n / self.rate
            samples.append(int(sum(4000 * math.sin(6.2832 * tone * moment) for tone in self.chord)))
        self.phase += length
        return samples

    async def play(self, every):
        due = time.monotonic()
        while True:
            self.block(int(self.rate * every))
            due += every
            left = due - time.monotonic()
            if left < 0:
                self.late += 1
                due -= left
            await asyncio.sleep(max(left, 0.005))


class Keyboard:
    def __init__(self, mixer):
        self.mixer = mixer

    async def press(self):
        step = 0
        while True:
            await asyncio.sleep(0.3)
            step += 1
            base = 220.0 * 2 ** (step % 12 / 12)
            self.mixer.chord = (base, base * 1.26, base * 1.5)


async def main():
    mixer = Mixer(8000)
    print("ready", flush=True)
    await asyncio.gather(mixer.play(0.06), Keyboard(mixer).press())


if __name__ == "__main__":
    asyncio.run(main())
