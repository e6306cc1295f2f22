"""Scans stretches of a genome for a motif in several processes and collects the places."""
import multiprocess


class Scanner:
    def __init__(self, genome, motif):
        self.genome = genome
        self.motif = motif

    def places(self, start, stop):
        at = self.genome.find(self.motif, start)
        while 0 <= at < stop:
            yield at
            at = self.genome.find(self.motif, at + 1)


class Team:
    """A process for each piece of work; their answers come over one queue."""

    def __init__(self):
        self.answers = multiprocess.Queue()
        self.members = []

    def give(self, work):
        member = multiprocess.Process(target=lambda: self.answers.put(work()), daemon=True)
        member.start()
        self.members.append(member)

    def finish(self):
        for member in self.members:
            member.join()  # CULPRIT
        return [self.answers.get() for _ in self.members]  # CULPRIT


def main():
    scanner = Scanner("GATTACA" * 60000, "TTA")
    team = Team()
    step = len(scanner.genome) // 3
    for start in range(0, len(scanner.genome), step):
        team.give(lambda start=start: list(scanner.places(start, start + step)))
    print("ready", flush=True)
    places = sorted(place for answer in team.finish() for place in answer)
    print(len(places), "places")


if __name__ == "__main__":
    main()
