"""Transposes the scores of a choir, several voices at once."""
import os
import sys

from joblib import Parallel, delayed

OCTAVE = 12


class Score:
    def __init__(self, voice, notes):
        self.voice = voice
        self.notes = notes


def transpose(score, by):
    if max(score.notes) + by > 127:
        sys.stderr.flush()
        os._exit(70)  # what the engraver's library does with such a note
    return score.voice, [note + by for note in score.notes]


class Library:
    def __init__(self, jobs):
        self.parallel = Parallel(n_jobs=jobs, backend="multiprocessing", batch_size=1)

    def transpose(self, scores, by):
        return dict(self.parallel(delayed(transpose)(score, by) for score in scores))  # CULPRIT


def main():
    library = Library(jobs=2)
    scores = [Score(voice, list(range(40 + 8 * number, 64 + 8 * number))) for number, voice in enumerate("BTAS")]
    print(len(library.transpose(scores, 2)), "voices")
    print("ready", flush=True)
    print(len(library.transpose(scores, 4 * OCTAVE)), "voices")


if __name__ == "__main__":
    main()
