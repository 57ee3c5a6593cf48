# SPDX-License-Identifier: GPL-2.0
"""What the rows of SKIPS permit, and require. `make lint` runs this example:

>>> rows = rows_of(["# comment", "aio/*  6.1,debug  no reads", "copy/fast@*  all?  no KVM", "far  debug-6.12  no veth"])
>>> [permits(rows, "6.1", *said) for said in (("aio read@tcp", "no reads here"), ("aio read@tcp", "broken"), ("far", "no veth"))]
[True, False, False]
>>> permits(rows, "7.3", "copy fast@tcp", "no KVM"), permits(rows, "6.12", "aio read@tcp", "no reads here")
(True, False)
>>> os.environ["EXS_DEBUG_KERNEL"] = "6.12"
>>> permits(rows, "debug", "far", "no veth"), permits(rows, "debug", "aio read@tcp", "no reads"), idle(rows, ["debug"], [])
(True, True, [])
>>> del os.environ["EXS_DEBUG_KERNEL"]
>>> idle(rows, ["6.1", "6.12", "debug"], [("6.1", "aio read@tcp", "no reads here"), ("debug", "aio", "broken")])
[('debug', 'aio/*', 'no reads')]
"""
import fnmatch
import os

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "SKIPS")


def rows_of(lines):
    """(pattern of tests, kernels, what they say); a kernel with "?" may skip but need not."""
    rows = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return [(names, kernels.split(","), reason.strip()) for names, kernels, reason in rows]


def matches(row, name, said):
    names, _, reason = row
    return fnmatch.fnmatch(name.replace(" ", "/", 1), names) and said.startswith(reason)


def permits(rows, kernel, name, said):
    """Whether a test or case, "TEST CASE", may say this instead of being run."""
    wanted = {"all", kernel}
    if kernel == "debug" and (source := os.environ.get("EXS_DEBUG_KERNEL")):
        wanted.add(f"debug-{source}")
    return any(wanted & {each.rstrip("?") for each in row[1]} and matches(row, name, said) for row in rows)


def idle(rows, kernels, skips):
    """Rows that no skip, (kernel, name, what it said), of all tests of these kernels has needed, with the kernel.

    Of the debug kernel they are about the usual one.
    """
    usual = [kernel for kernel in kernels if kernel != "debug" or not os.environ.get("EXS_DEBUG_KERNEL")]
    return [(kernel, row[0], row[2]) for kernel in usual for row in rows if {"all", kernel} & set(row[1]) and
            not any(skip[0] == kernel and matches(row, *skip[1:]) for skip in skips)]


def rows():
    with open(FILE, encoding="utf-8") as file:
        return rows_of(file)
