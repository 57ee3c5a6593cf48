# SPDX-License-Identifier: GPL-2.0
"""The targets: ratios of two programs in one run, and which rows miss them."""
import dataclasses
import statistics

from programs import BLAST, BUSY, PINGPONG, PLAIN

KIB, MIB = 1 << 10, 1 << 20
BOTH = ("stream", "messages")
NETEM = ("delay", "loss")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """@program's @what is to be at least (or at most) @bound times that of @against."""
    places: tuple
    test: str
    program: str
    against: str
    smallest: int
    largest: int
    bound: float
    what: str = "value"

    @property
    def at_least(self):
        return self.test == BLAST and self.what == "value"

    def of(self, place, test, size):
        return place in self.places and test == self.test and self.smallest <= size <= self.largest


def wanted():
    for kind in BOTH:
        yield Wanted(("two",), BLAST, kind, "verbs", 64 * KIB, 4 * MIB, 1.0)
        yield Wanted(("two",), BLAST, kind, "rsockets", 64 * KIB, 4 * MIB, 1.5)
        yield Wanted(("two",), BLAST, kind, "rsockets", 4 * KIB, 32 * KIB, 1.2)
        yield Wanted(("two",), BLAST, kind, "rsockets", 64, 1 * KIB, 1.0)
        yield Wanted(("one",), BLAST, kind, "verbs", 64, 4 * MIB, 1.0)
        yield Wanted(("one",), BLAST, kind, "rsockets", 64, 4 * MIB, 1.2)
        yield Wanted(NETEM, BLAST, kind, "verbs", 4 * KIB, 1 * MIB, 0.95)
        yield Wanted(("two",), BLAST, kind, "rsockets", 512 * KIB, 512 * KIB, 0.5, "cpu_per_gb")
        yield Wanted(("one", "two"), PINGPONG, kind, "verbs", 64, 1 * KIB, 1.1)
        yield Wanted(("one", "two"), PINGPONG, kind, "verbs", 4 * KIB, 64 * KIB, 1.25)
        yield Wanted(("one", "two"), BUSY, kind, "verbs", 64, 64, 1.15)
    yield Wanted(("one", "two"), BLAST, "messages", "stream", 64, 4 * MIB, 0.95)
    yield Wanted(("one", "two"), PLAIN, "stream", "verbs", 64, 64, 1.3)


WANTED = list(wanted())


class Point:
    """The measurements of a test at one size and depth: rounds, each {program: row or None}."""

    def __init__(self, place, test, size, depth):
        self.place, self.test, self.size, self.depth, self.rounds = place, test, size, depth, []

    def title(self):
        depth = f" x{self.depth}" if self.test == BLAST else ""
        return f"{self.place}: {self.test} {amount(self.size)}{depth}"

    def values(self, program, what="value"):
        rows = [row.get(program) for row in self.rounds]
        return [row[what] for row in rows if row and what in row]

    def median(self, program, what="value"):
        values = self.values(program, what)
        return statistics.median(values) if values else None

    def ratios(self, program, against, what="value"):
        """The sorted ratios of neighbours in time: a disturbance of one disturbs the other."""
        pairs = [(row.get(program), row.get(against)) for row in self.rounds]
        return sorted(ours[what] / theirs[what] for ours, theirs in pairs
                      if ours and theirs and theirs.get(what) and what in ours)

    def judged(self):
        """(target, ratio) for each target."""
        for figure in WANTED:
            if figure.of(self.place, self.test, self.size):
                ratios = self.ratios(figure.program, figure.against, figure.what)
                if ratios:
                    yield figure, statistics.median(ratios)

    def noisy(self):
        """Whether the rounds of a median differ much."""
        return any(len(ratios) < 2 or ratios[-1] > 1.25 * ratios[0]
                   for ratios in (self.ratios(f.program, f.against, f.what) for f in WANTED
                                  if f.of(self.place, self.test, self.size)) if ratios)


def amount(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def falls_short(figure, ratio):
    return ratio < figure.bound if figure.at_least else ratio > figure.bound


def says(figure, ratio):
    what = " CPU" if figure.what == "cpu_per_gb" else ""
    return f"{ratio:.2f} of {figure.against}'s{what} ({'at least' if figure.at_least else 'at most'} {figure.bound:g})"


def steps(points, program):
    """Sizes of a ping-pong that take longer than 1.15 times the next one: (point, ratio)."""
    row = sorted((p for p in points if p.test == PINGPONG and p.median(program)), key=lambda p: p.size)
    for point, following in zip(row, row[1:]):
        ratio = point.median(program) / following.median(program)
        if ratio > 1.15:
            yield point, ratio
