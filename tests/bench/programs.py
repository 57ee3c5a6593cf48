# SPDX-License-Identifier: GPL-2.0
"""Programs that measure, each started on two machines (or twice on one), and their output."""
import itertools
import re
import sys

import guest

# Measurements that are compared: the rate of bytes, and half of a round trip.
BLAST, PINGPONG, BUSY, PLAIN = "blast", "pingpong", "busy", "plain"
MIB, GB = 1 << 20, 1e9
TICKS = 100                                     # of /proc/stat, a second
LIMIT = 60


class NoFigure(Exception):
    """A program did not end, or printed nothing."""


class Place:
    """The machines of a program's two sides: client and server, and the server's address."""

    ports = itertools.cycle(range(7400, 7900))

    def __init__(self, name, client, server, address):
        self.name, self.client, self.server, self.address = name, client, server, address

    def cpu(self):
        """Seconds that the processors have worked."""
        return sum(worked(machine) for machine in {self.client, self.server})

    def both(self, serve, call, ready=None):
        """The client's output. It starts when the server has printed @ready; None: at once, and tries again."""
        listening = self.server.start(f"stdbuf -oL {serve}")
        try:
            if ready:
                listening.wait_for(ready)
            return self.call(call, tries=1 if ready else 100)
        finally:
            listening.kill()

    def call(self, call, tries):
        for _ in range(tries):
            calling = self.client.start(call)
            try:
                if not calling.wait(LIMIT):
                    return calling.output
            except guest.Timeout as error:
                calling.kill()
                raise NoFigure(call) from error
        raise NoFigure(f"{call}: {calling.output}")


def worked(machine):
    """user, nice, system, irq and softirq of /proc/stat."""
    words = machine.check("head -1 /proc/stat").split()
    return sum(int(words[i]) for i in (1, 2, 3, 6, 7)) / TICKS


def exs(kind):
    def run(place, test, size, depth, count):
        how = {BLAST: f"--blast -d {depth}", PINGPONG: "--pingpong", BUSY: "--pingpong -b", PLAIN: "--pingpong --plain"}
        there = f"{kind} {place.address}:{next(place.ports)}"
        said = place.both(f"exs-perf --listen {there}", f"exs-perf {how[test]} -s {size} -n {count} {there}", "listening")
        values = dict(word.split("=", 1) for word in said.split() if "=" in word)
        found = {"value": float(values["MiB/s" if test == BLAST else "median_usec"])}
        if test == BLAST:
            found["direct_percent"] = float(values["direct_percent"])
        return found
    return run


def perftest(place, test, size, depth, count):
    """
    Both of ib_send_lat's completion queues share one channel: the event of a send that is complete may be taken for
    that of a receive, whose own event then comes when the program does not wait any more. So only the last send is
    signalled (-Q).
    """
    command, column = {
        BLAST: (f"ib_write_bw -t {depth}", 3),
        PINGPONG: (f"ib_send_lat -e -Q {count} -t {count}", 4),
        BUSY: ("ib_write_lat", 4),
    }[test]
    command += f" -d rxe0 -R -F -p {next(place.ports)} -s {size} -n {count}"
    # It says that it waits a little before it listens: the first try may come too early.
    for _ in range(5):
        try:
            said = place.both(command, f"{command} {place.address}", "Waiting for client")
        except (NoFigure, AssertionError):
            continue
        rows = [line.split() for line in said.split("\n") if re.match(r"^ *\d+ +\d+ +[\d.]+", line)]
        if rows:
            return {"value": float(rows[-1][column])}
    raise NoFigure(command)


def rstream(option):
    """It sends one way, and then the other: a ping-pong, if that is one transfer each time."""
    def run(place, test, size, _, count):
        many = f"-C {count} -I 1" if test == BLAST else f"-C 1 -I {count}"
        command = f"rstream {option} -p {next(place.ports)} -S {size} {many}"
        said = place.both(f"{command} -b {place.address}", f"{command} -s {place.address}")
        row = said.strip().split("\n")[-1].split()
        return {"value": float(row[-2]) * GB / 8 / MIB if test == BLAST else float(row[-1]), "ways": 2}
    return run


PROGRAMS = {
    "stream": exs(""), "messages": exs("--seqpacket"),
    "verbs": perftest, "rsockets": rstream(""), "tcp": rstream("-T s"),
}


def measure(place, program, test, size, depth, count):
    """A row: value in MiB/s or microseconds, CPU seconds per GB; None if the program did not end."""
    before = place.cpu()
    try:
        row = PROGRAMS[program](place, test, size, depth, count)
    except (NoFigure, guest.Timeout, AssertionError, LookupError, ValueError) as error:
        print(f"  no end: {error}", file=sys.stderr, flush=True)
        return None
    if test == BLAST:
        row["cpu_per_gb"] = (place.cpu() - before) / (size * count * row.pop("ways", 1) / GB)
    return row


def cm_setups(place, count):
    """Connections that rdma_cm alone sets up in a second: cmtime takes one step for all of them, then the next."""
    command = f"cmtime -b {place.address} -c {count} -p {next(place.ports)}"
    said = place.both(command, f"{command} -s {place.address}")
    steps = dict(re.findall(r"^([a-z ]+?) *: +([\d.]+) ", said, re.M))
    return 1e3 * count / sum(float(steps[step]) for step in ("create id", "bind addr", "resolve addr", "resolve route", "create qp", "connect"))
