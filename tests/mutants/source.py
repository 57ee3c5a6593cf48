# SPDX-License-Identifier: GPL-2.0
"""What a test consists of: the function of its case, and what that uses of the same file. `make lint` runs this example:

>>> text = '''static int one(void)
... {
... \treturn LIMIT;
... }
...
... /* Not used. */
... static int two(void)
... {
... \treturn 2;
... }
...
... enum {
... \tLIMIT = 1,
... };
...
... static const struct e2e_case cases[] = {
... \t{ "first", one },
... \t{ "second", two },
... };
... '''
>>> [piece.split("\\n")[0] for piece in reached(text, "first")]
['static int one(void)', 'enum {']
>>> len(reached(text, "third")) == len(pieces(text))
True
>>> without_comments("# Why.\\ncp ./*.c /a/*/b\\n", ".sh"), without_comments("a /* b */ c", ".c")
('cp ./*.c /a/*/b\\n', 'a  c')
"""
import functools
import glob
import hashlib
import os
import re

TOP = os.path.abspath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")
COMMENT = {".c": re.compile(r"/\*.*?\*/", re.S), ".sh": re.compile(r"^\s*#(?!!).*\n", re.M),
           ".py": re.compile(r"^\s*#(?!!).*\n", re.M)}
# At the margin: a function, a variable, a type, a macro.
DEFINED = re.compile(r"^#define (\w+)|^(?=\w).*?(\w+)(?=\(|\[| = |;$| \{$)", re.M)


def without_comments(text, suffix):
    return COMMENT[suffix].sub("", text) if suffix in COMMENT else text


def words(text):
    return set(re.findall(r"[A-Za-z_]\w*", text)) - {"enum"}


def defines(piece):
    """Its names; of an enum all words."""
    return words(piece if piece.startswith("enum") else " ".join(map(" ".join, DEFINED.findall(piece))))


@functools.lru_cache(None)
def pieces(text):
    """What blank lines separate at the margin, with the names that it defines."""
    return [(piece, defines(piece)) for piece in re.split(r"\n{2,}(?=\S)", text.strip())]


def reached(text, case):
    """The pieces of a file that a case uses; all of it where no function bears the case's name.

    That is NAME, case_NAME in a script, what stands beside it in the table, or, for NAME_KIND, again NAME.
    """
    names = words(" ".join([case, f"case_{case}", *re.findall(rf'"{re.escape(case)}", (\w+)', text)]))
    if not any(defined & names for _, defined in pieces(text)):
        names = words(case.rpartition("_")[0])
    found = []
    while more := [piece for piece, defined in pieces(text) if defined & names and piece not in found]:
        found += more
        names |= words(" ".join(more))
    return [piece for piece, _ in pieces(text) if piece in found or not found]


@functools.lru_cache(None)
def read(path):
    """A file without its comments."""
    with open(path, encoding="utf-8") as file:
        return without_comments(file.read(), os.path.splitext(path)[1])


def found_in(test, commands):
    """(files, case) of a test; commands: topologies and commands of the MANIFEST by the tests' names."""
    if test.startswith("kunit "):
        case = test.split()[1]
        return [path for path in glob.glob(f"{TOP}/kunit/*.c") if f"KUNIT_CASE({case})" in read(path)], case
    name, _, case = test.partition("@")[0].partition("/")
    call, _, of_call = case.partition("/")
    if os.path.exists(of := f"{TOP}/tests/e2e/calls/{call}.c"):
        return [of], of_call
    programs = commands[name].split()
    return [path for path in sorted(glob.glob(f"{TOP}/tests/e2e/*/*.*")) if "/lib/" not in path and
            {os.path.relpath(path, TOP), os.path.basename(path).removesuffix(".c")} & set(programs)], case


def digest(tests, commands):
    parts = []
    for test in tests:
        paths, case = found_in(test, commands)
        if not paths:
            raise ValueError(f"{test}: where is it?")
        parts += [] if test.startswith("kunit ") else [commands[test.partition("@")[0].partition("/")[0]]]
        parts += [piece for path in paths for piece in reached(read(path), case)]
    return hashlib.sha256("\n\n".join(parts).encode()).hexdigest()[:12]
