# SPDX-License-Identifier: GPL-2.0
"""Plots of the measurements, by gnuplot: NAME.svg in a directory, a curve for each program, against the size."""
import subprocess

from programs import BLAST, PINGPONG, PROGRAMS

PLOTS = [                                       # name, test, what, title, programs
    ("throughput", BLAST, "value", "MiB/s", list(PROGRAMS)),
    ("cpu", BLAST, "cpu_per_gb", "CPU seconds per GB", list(PROGRAMS)),
    ("direct", BLAST, "direct_percent", "% of bytes direct", ["stream", "messages"]),
    ("latency", PINGPONG, "value", "half a round trip, us", list(PROGRAMS)),
]


def curve(points, program, what):
    """If a size has several depths, the first."""
    sizes = {}
    for point in points:
        value = point.median(program, what)
        if value is not None:
            sizes.setdefault(point.size, value)
    return sorted(sizes.items())


def plot(directory, place, points, name, test, what, title, programs):
    curves = {program: curve([p for p in points if p.test == test], program, what) for program in programs}
    curves = {program: rows for program, rows in curves.items() if len(rows) > 1}
    if not curves:
        return
    script = [
        "set terminal svg size 800,500 dynamic background 'white'", f"set output '{directory}/{place}-{name}.svg'",
        f"set title '{title}, {place}'", "set logscale x 2", "set xlabel 'bytes'", "set format x '%.0b%B'", "set grid",
        "set yrange [0:*]", "set key left top",
        "plot " + ", ".join(f"'-' using 1:2 with linespoints title '{program}'" for program in curves),
    ]
    for rows in curves.values():
        script += [f"{size} {value}" for size, value in rows] + ["e"]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)


def plot_all(directory, places):
    """@places: {name: points}."""
    for place, points in places.items():
        for row in PLOTS:
            plot(directory, place, points, *row)
