# SPDX-License-Identifier: GPL-2.0
"""Finds reports of the kernel's checkers in a kernel log, and results of KUnit (KTAP)."""
import re

TROUBLE = re.compile(r"""
    \bBUG:? | \bWARNING: | \bOops\b | \bKASAN\b | \bUBSAN\b | \bODEBUG\b | kernel\ panic
    | possible\ (circular|recursive|irq|unsafe) | inconsistent\ lock\ state | suspicious\ RCU | bad\ unlock\ balance
    | held\ lock\ freed | lock\ held\ when\ returning | [Nn]ested\ lock
    | non-static\ key | turning\ off\ the\ locking | Disabling\ lock\ debugging | lockdep\ is\ turned\ off
    | INFO:\ task\ .*\ blocked | rcu.*\ detected\ .*stall | hung\ task
    | refcount_t | \bleaked\b | kmemleak:.*[1-9]\d*\ new | unreferenced\ object
    | general\ protection | unable\ to\ handle | sleeping\ function | scheduling\ while\ atomic
    | still\ has\ locks | Objects\ remaining | unregister_netdevice:\ waiting | list_(add|del)\ corruption
    """, re.VERBOSE | re.IGNORECASE)
HARMLESS = re.compile(r"""
    lockdep\ checking\ is\ enabled | KASAN:\ shadow | kasan:\ KernelAddressSanitizer
    | ommand\ line:
    """, re.VERBOSE)
# Suites stand at one level of indentation and their cases deeper; parameters of a case deeper still.
KTAP = re.compile(r"^\[[ \d.]+\] ( *)(ok|not ok) \d+ ?-? ?(\S*)(.*)$")
STAMP = re.compile(r"^\[ *[\d.]+\] ")
LENGTH = 60


class Report:
    """One report: its headline, and the lines that follow."""

    def __init__(self, lines):
        self.title = STAMP.sub("", lines[0]).strip()
        self.text = "\n".join(lines)

    @property
    def signature(self):
        """The part that is the same when it happens again: the headline without numbers, and the functions."""
        functions = re.findall(r"([a-z_][\w.]*)\+0x[0-9a-f]+/", self.text)
        return (re.sub(r"(0x)?[0-9a-f]*\d[0-9a-f]*", "N", self.title), tuple(functions[:12]))


def reports(lines):
    """The reports in some lines of a log; lines shortly after a headline belong to it."""
    found, skip_until = [], 0
    for number, line in enumerate(lines):
        if number < skip_until or not TROUBLE.search(line) or HARMLESS.search(line):
            continue
        end = number + 1
        while end < min(len(lines), number + LENGTH) and not (
                "end trace" in lines[end] or lines[end].startswith("unreferenced object")):
            end += 1
        found.append(Report(lines[number:end]))
        skip_until = end
    return found


class Known:
    """Reports that were seen when our module was not there."""

    def __init__(self):
        self.signatures = set()

    def add(self, report):
        new = report.signature not in self.signatures
        self.signatures.add(report.signature)
        return new

    def has(self, report):
        return report.signature in self.signatures


def ktap(log):
    """(name, result, remark) of every case: result lines that are not the sum of deeper ones."""
    results = [match for match in map(KTAP.match, log) if match]
    for match, following in zip(results, [None, *results]):
        # A sum comes after its summands, so the line before it is indented deeper.
        if following is None or len(following[1]) <= len(match[1]):
            yield match[3], match[2], match[4]
