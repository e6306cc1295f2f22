"""Digest the bulletins of an archive: find every reading in the text and keep the extremes of each station."""
import random
import re
import sys

READING = re.compile(
    r"(?P<station>[A-Z]{4})\s+(?P<hour>\d\d):(?P<minute>\d\d)\s+"
    r"(?:wind\s+(?P<wind>\d{1,3})kt\s+)?(?:temp\s+(?P<temp>-?\d{1,2}(?:\.\d)?)C)?"
)
REMARK = re.compile(r"\((?:[^()\\]|\\.)*\)")
SPACES = re.compile(r"[ \t]+")


class Archive:
    """Bulletins as the stations type them: much talk, few readings."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        words = "moderate haze over the valley low cloud patches drizzle at times visibility good".split()
        self.talk = [" ".join(self.rng.choice(words) for _ in range(2500)) for _ in range(12)]

    def bulletins(self):
        while True:
            parts = []
            for _ in range(6):
                parts.append(self.rng.choice(self.talk))
                parts.append("(%s)" % self.rng.choice(self.talk))
                parts.append(
                    "ED%s%s %02d:%02d wind %dkt temp %.1fC"
                    % (
                        self.rng.choice("DFHMN"),
                        self.rng.choice("ABCFH"),
                        self.rng.randrange(24),
                        self.rng.randrange(60),
                        self.rng.randrange(70),
                        self.rng.uniform(-20, 35),
                    )
                )
            yield "\t ".join(parts)


class Digest:
    def __init__(self):
        self.coldest = {}
        self.warmest = {}
        self.readings = 0

    def add(self, bulletin):
        text = SPACES.sub(" ", REMARK.sub("", bulletin))
        for found in READING.finditer(text):
            if found.group("temp") is None:
                continue
            station, degrees = found.group("station"), float(found.group("temp"))
            self.coldest[station] = min(degrees, self.coldest.get(station, degrees))
            self.warmest[station] = max(degrees, self.warmest.get(station, degrees))
            self.readings += 1


def main():
    digest = Digest()
    print("ready", flush=True)
    for number, bulletin in enumerate(Archive(7).bulletins(), 1):
        digest.add(bulletin)
        if number % 100 == 0:
            print("%d bulletins, %d readings" % (number, digest.readings), file=sys.stderr)
        if number == 1000000:
            break


if __name__ == "__main__":
    main()
