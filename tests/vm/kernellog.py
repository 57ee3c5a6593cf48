# SPDX-License-Identifier: GPL-2.0
"""Finds in a kernel log what the kernel's checkers report."""
import re

TROUBLE = re.compile(r"""
    \bBUG:? | \bWARNING: | \bOops\b | \bKASAN\b | \bUBSAN\b | \bODEBUG\b | kernel\ panic
    | possible\ (circular|recursive|irq|unsafe) | inconsistent\ lock\ state | suspicious\ RCU | bad\ unlock\ balance
    | held\ lock\ freed | lock\ held\ when\ returning | [Nn]ested\ lock
    | INFO:\ task\ .*\ blocked | rcu.*\ detected\ .*stall | hung\ task
    | refcount_t | \bleaked\b | kmemleak:.*[1-9]\d*\ new | unreferenced\ object
    | general\ protection | unable\ to\ handle | sleeping\ function | scheduling\ while\ atomic
    | still\ has\ locks | Objects\ remaining | unregister_netdevice:\ waiting | list_(add|del)\ corruption
    """, re.VERBOSE | re.IGNORECASE)
HARMLESS = re.compile(r"""
    lockdep\ checking\ is\ enabled | KASAN:\ shadow | kasan:\ KernelAddressSanitizer
    | ommand\ line:
    """, re.VERBOSE)
# Providers' own defects that are too rare to be seen before our module is loaded: a headline, and a function without
# which it is another report. tests/README.md says why each is not ours.
DEFECTS = [
    (re.compile(r"WARNING: net/core/page_pool\.c"), "rxe_receiver"),
]
STAMP = re.compile(r"^\[ *[\d.]+\] ")
LENGTH = 60


class Report:
    """One report: its headline, and the lines that follow."""

    def __init__(self, lines):
        self.title = STAMP.sub("", lines[0]).strip()
        self.text = "\n".join(lines)

    @property
    def signature(self):
        """What stays the same when it happens again: the headline without numbers, and the functions involved."""
        functions = re.findall(r"([a-z_][\w.]*)\+0x[0-9a-f]+/", self.text)
        return (re.sub(r"(0x)?[0-9a-f]*\d[0-9a-f]*", "N", self.title), tuple(functions[:12]))


    @property
    def is_defect(self):
        """Whether it is one of DEFECTS."""
        return any(title.search(self.title) and f"{function}+0x" in self.text for title, function in DEFECTS)


def reports(lines):
    """The reports in some lines of a log; what follows a headline closely belongs to it."""
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
        return report.is_defect or report.signature in self.signatures
