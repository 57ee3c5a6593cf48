#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Types the commands of README.md and of the programmer's guide, and checks their output.

    letter.sh [CHAPTER...]                  which makes the machine that the texts assume; all chapters are typed, and
                                            those that are named are reported

Each line of an indented or fenced block (but those of C) that has a prompt is a command, and in a block without prompts
each line is one. They are typed into shells, one for each host, and one for root ("#"). A command must end with status
0, and must print the lines that the text shows below it, in their order. One of host-b that serves goes on until the
next one of host-b; one with "&" goes on until its shell ends.

The steps of the guide, and what README.md says of a first program and the tools, are typed once more where ulimit -l
is 64: a step may end early there, if a command says that this is why.

Of files, the command that a unit of README.md starts is typed, and drop-ins are compared with Debian's units.
"""
import errno
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCRATCH = os.environ["EXS_SCRATCH"]
REPOSITORY = f"{SCRATCH}/exs"
SLOW = int(os.environ.get("EXS_SLOW", 1))
# Of a command, and of all: less than the MANIFEST's, so that there is a report.
LIMIT = 240 * SLOW
END = time.monotonic() + 1500 * SLOW
NOBODY = 65534
README, GUIDE = "README.md", "Documentation/programmers-guide.md"

# Commands that cannot be typed here: the text, the command without its comment or a file's first line, and the reason.
EXCEPTIONS = [
    (README, "make demo", "boots machines of its own"),
    (README, "make check", "runs all tests, of which this is one"),
    (README, "sudo apt update", "needs a mirror"),
    (README, "sudo apt install gcc make libc6-dev rsync pkg-config python3 libxxhash-dev linux-headers-$(uname -r)",
     "needs a mirror; tests/quoted compares the packages with scripts/deps"),
    (README, "[Unit]", "there is no systemd: start_units()"),
    (README, "sudo systemctl disable rxe0", "there is no systemd"),
    (GUIDE, "[Unit]", "there is no systemd: drop_in_is_wrong()"),
    (GUIDE, "[Service]", "there is no systemd: drop_in_is_wrong()"),
    (GUIDE, "sudo mokutil --import exs.der", "there is no EFI"),
    (GUIDE, "sudo reboot", "the machine would be gone"),
    (GUIDE, "m=/lib/modules/$(uname -r); sudo $m/build/scripts/sign-file sha256 exs.key exs.der $m/extra/exs.ko",
     "make_modules() leaves out what headers have beside their name"),
    (GUIDE, "systemctl enable --now exs-system", "there is no systemd; tests/lib/install.sh checks the unit"),
]
UNITS = "/usr/lib/systemd/system"
# Files that must be executable in a service that exs-run starts.
EXECUTABLE = {"/usr/local/bin/exs-run", "/usr/local/lib"}
# This is typed when everything else was.
LAST = "To remove everything:"
PROMPT = re.compile(r"(\$|#|host-a\$|host-b\$) (.*)")
SHELLS = {"$": "a", "host-a$": "a", "host-b$": "b", "#": "root"}
# A server prints this when it is ready.
READY = re.compile(r"listening|serving|ready to accept", re.I)
# Numbers that differ each time: processes, descriptors.
MASKS = re.compile(r"(?<=\\\[)\d+(?=\\\])|(?<=socket\\ )\d+|(?<=cgroup\\-)\d+")
# Bash's report on a command in the background: that it failed, or, after kill, that it has ended.
FAILED = re.compile(r"^\[\d+\][+-]? +(?! |Done|Running|\d+$).*", re.M)
KILLED = re.compile(r"^\[\d+\][+-]? +(Done|Terminated)", re.M)


class Wrong(Exception):
    """The text is wrong, for this reason."""


class Command:
    """A command of a text, and the output that the text shows below it."""

    def __init__(self, text, line, prompt, typed):
        self.where, self.text, self.prompt, self.typed, self.shown = f"{text}:{line}", text, prompt, typed, []
        self.content = None                     # of a file

    @property
    def background(self):
        return self.typed.endswith("&")

    @property
    def kills(self):
        return self.typed.startswith("kill ")

    def exception(self):
        whole = re.sub(r"\s+# .*", "", self.typed)
        for row in EXCEPTIONS:
            if row[:2] == (self.text, whole):
                return row
        return None

    def starts(self):
        """The commands that a unit's file starts: lists of words."""
        return [shlex.split(words) for words in re.findall(r"^ExecStart=(.+)", self.content or "", re.M)]


def commands(text, line, block):
    """Those of a block. A file's content is one, for which there has to be an exception."""
    if block[0].startswith("["):
        file = Command(text, line, "$", block[0])
        file.content = "\n".join(block).replace("\\\n", " ")
        return [file]
    prompts = any(map(PROMPT.match, block))
    found = []
    for number, words in enumerate(block, line):
        prompt = PROMPT.match(words)
        if found and found[-1].typed.endswith("\\"):
            found[-1].typed += "\n" + words
        elif prompt or not prompts:
            found.append(Command(text, number, *(prompt.groups() if prompt else ("$", words))))
        elif found:
            found[-1].shown.append(words)
        else:
            raise Wrong(f"{text}:{number}: nobody prints this: {words}")
    return found


def indented(text):
    """A text with as many lines, where blocks of C are empty, and other fenced ones are indented."""
    text = re.sub(r"^```c\n.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    return re.sub(r"^```.*\n((?:.*\n)*?)```$", lambda found: "\n" + re.sub("^(?=.)", "    ", found[1], flags=re.M),
                  text, flags=re.M)


def chapters(name):
    """{title: commands} of a text; each step of the guide is there."""
    with open(f"{TOP}/{name}", encoding="utf-8") as file:
        text = indented(file.read())
    found = {title: [] for title in re.findall(r"^## (.*)", text, re.M)}
    for block in re.finditer(r"(?:^    .*\n(?:\n+(?=    ))?)+", text, re.M):
        before = text[:block.start()]
        title = LAST if before.rstrip().endswith(LAST) else re.findall(r"^## (.*)", before, re.M)[-1]
        lines = [words[4:].rstrip() for words in block[0].rstrip().split("\n")]
        found.setdefault(title, []).extend(commands(name, before.count("\n") + 1, lines))
    return {title: chapter for title, chapter in found.items() if chapter or title[0].isdigit()}


class Shell:
    """One on a terminal, as a reader has it. After each command it prints the status, between two marks."""

    MARK = re.compile("\x1e(\\d+)\x1e")
    open = []

    def __init__(self, user, place, limit=None):
        self.data, self.begin, self.limited = "", 0, limit
        self.pid, self.fd = pty.fork()
        if not self.pid:
            self.become(user, place)
        Shell.open.append(self)
        self.wait(lambda: self.status, "a shell")
        if limit:
            self.type(f"ulimit -l {limit}")
            self.wait(lambda: self.status, "ulimit")

    @staticmethod
    def become(user, place):
        mode = termios.tcgetattr(0)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, mode)
        os.chdir(place)
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        where = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-ib", "-o", "pipefail"], {
            "PATH": ":".join([f"{SCRATCH}/bin", *where]), "HOME": place, "LANG": "C.UTF-8", "TERM": "dumb",
            "PS1": "", "PS2": "", "PROMPT_COMMAND": r"printf '\036%d\036' $?"})

    @property
    def output(self):
        """The output since the last command was typed."""
        return self.MARK.sub("", self.data[self.begin:]).replace("\r", "")

    @property
    def status(self):
        """The command's status, when it has ended."""
        return self.MARK.search(self.data, self.begin)

    @staticmethod
    def listen():
        """To all shells, so that no program has to wait for its output to be read."""
        for shell in select.select(Shell.open, [], [], 0.1)[0]:
            shell.data += os.read(shell.fd, 65536).decode(errors="replace")

    def fileno(self):
        return self.fd

    def wait(self, condition, what, limit=LIMIT):
        end = min(time.monotonic() + limit, END)
        while not condition():
            if time.monotonic() > end:
                raise Wrong(f"waited in vain for {what}: {self.output}")
            self.listen()

    def type(self, typed):
        """When the command before, a server, was ended."""
        if not self.status:
            os.write(self.fd, b"\x03")
            self.wait(lambda: self.status, "the end of a server")
            # If it ended by itself just then, the shell is interrupted, and reports that before it runs this.
            os.write(self.fd, b"printf '\\035'\n")
            self.wait(lambda: re.search("\x1d\x1e0\x1e", self.data[self.begin:]), "a shell")
        self.begin = len(self.data)
        os.write(self.fd, typed.encode() + b"\n")

    def run(self, command):
        self.type(command.typed)
        if command.prompt == "host-b$":
            self.wait(lambda: self.status or READY.search(self.output), "its end, or a server")
        else:
            self.wait(lambda: self.status, "its end")
        if command.background:
            self.wait(lambda: READY.search(self.output) or FAILED.search(self.output), "a server")
        if command.kills:
            self.wait(lambda: KILLED.search(self.output), "the end of what is killed")
        if self.status and self.status[1] != "0" and not self.too_little():
            raise Wrong(f"exit status {self.status[1]}: {self.output}")
        if not self.limited:
            self.compare(command)

    def too_little(self):
        """Whether it says that the limit of memory is why it cannot go on."""
        why = os.strerror(errno.ENOMEM), "RLIMIT_MEMLOCK is"
        return self.limited and "ulimit -l" in self.output and any(words in self.output for words in why)

    def compare(self, command):
        if not self.status or command.background:
            self.wait(lambda: not missing(command.shown, self.output), "what the text shows", LIMIT / 4)
        if line := missing(command.shown, self.output):
            raise Wrong(f"does not print '{line}', but: {self.output}")
        failed = FAILED.search(self.output)
        if failed and not (command.kills and KILLED.match(failed[0])):
            raise Wrong(f"{failed[0]}: {self.output}")

    def close(self):
        """Ends what it has started, too."""
        Shell.open.remove(self)
        subprocess.run(["pkill", "-KILL", "-s", str(self.pid)], check=False)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def missing(shown, output):
    """The first line that was not printed; others may be between them."""
    lines = iter(output.split("\n"))
    for line in shown:
        pattern = re.compile(MASKS.sub(r"\\d+", re.escape(line)))
        if line != "..." and not any(pattern.fullmatch(printed.rstrip()) for printed in lines):
            return line
    return None


class Reader:
    """Reads a text and executes its commands."""

    def __init__(self, user, place, limit=None):
        self.how, self.shells = (user, place, limit), {}

    def shell(self, name):
        if name not in self.shells:
            user, place, limit = self.how
            self.shells[name] = Shell(0 if name == "root" else user, place, limit)
        return self.shells[name]

    def follow(self, chapter):
        """Executes the commands. Returns the error, or None."""
        if not chapter:
            return "it has no commands"
        for command in chapter:
            if command.exception():
                continue
            shell = self.shell(SHELLS[command.prompt])
            try:
                shell.run(command)
            except (Wrong, OSError) as wrong:
                return f"{command.where}: {command.typed}: {wrong}"
            if shell.too_little():
                self.close()
                break
        return None

    def close(self):
        for shell in self.shells.values():
            shell.close()
        self.shells = {}
        end = time.monotonic() + 30 * SLOW
        while module_is("used"):
            if time.monotonic() > end:
                raise Wrong("the programs have ended, and the module is used")
            time.sleep(0.05)


def module_is(what):
    """loaded, or even used."""
    try:
        with open("/sys/module/exs/refcnt", encoding="ascii") as file:
            return what == "loaded" or file.read().strip() != "0"
    except FileNotFoundError:
        return False


def reboot():
    """After a reboot, as README.md says: module and device are gone."""
    if module_is("loaded"):
        subprocess.run(["rmmod", "exs"], check=True)
    subprocess.run(["rdma", "link", "delete", "rxe0"], check=False)


def installed():
    return {f"{place}/{name}" for root in ("/usr/local", f"/lib/modules/{os.uname().release}/extra")
            for place, _, names in os.walk(root) for name in names}


def on_a_line(problem):
    """Its beginning, and its end."""
    line = re.sub(r"\s*\n\s*", " | ", problem.strip())
    return line if len(line) < 2000 else f"{line[:400]} ... {line[-1500:]}"


class Report:
    def __init__(self, wanted):
        self.wanted, self.failed, self.seen = wanted, False, set()

    def add(self, text, title, problem):
        name = os.path.basename(text).split(".")[0].lower() + "-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        self.seen.add(name)
        if self.wanted and name not in self.wanted:
            return
        self.failed |= bool(problem)
        print(f"not ok {name}: {on_a_line(problem)}" if problem else f"ok {name}", flush=True)

    def end(self):
        """Every chapter that was named is there."""
        for name in set(self.wanted) - self.seen:
            self.failed = True
            print(f"not ok {name}: there is no such chapter", flush=True)
        return self.failed


def follow(report, text, reader, parts, suffix=""):
    for title, chapter in parts.items():
        if not chapter or any(not command.exception() for command in chapter):
            report.add(text, title + suffix, reader.follow(chapter))
    reader.close()


def start_units(reader, chapters_):
    """As at boot. Returns the error, or None."""
    reboot()
    units = [command for chapter in chapters_.values() for command in chapter if command.content]
    problem = reader.follow([Command(*unit.where.split(":"), "#", shlex.join(start))
                             for unit in units for start in unit.starts()])
    reader.close()
    return problem


def drop_in_is_wrong(file):
    """Compared with Debian's unit of the program: why, or None."""
    for run, *words in file.starts():
        while words[0] == "-r":
            del words[:2]
        name = os.path.basename(words[0])
        with open(f"{UNITS}/{name}.service", encoding="utf-8") as unit:
            text = unit.read()
        if run not in EXECUTABLE or words not in map(shlex.split, re.findall("^ExecStart=(.*)", text, re.M)):
            return f"{name}.service starts something else"
        if "\nExecStart=\n" not in file.content:
            return f"{name} would be started twice"
        allowed = set(" ".join(re.findall("^ExecPaths=(.*)", file.content, re.M)).split())
        if "\nNoExecPaths=/\n" in text and not EXECUTABLE <= allowed:
            return f"{name}.service must not execute {' '.join(EXECUTABLE - allowed)}"
    return None


def drop_ins(found):
    problems = [(file.where, drop_in_is_wrong(file)) for file in found if file.content and file.text == GUIDE]
    return "; ".join(f"{where}: {problem}" for where, problem in problems if problem)


def exceptions_used(found):
    """Each exception names an existing block; each block without commands has one."""
    left = [row for row in EXCEPTIONS if row not in [command.exception() for command in found]]
    files = [command for command in found if command.typed.startswith("[") and not command.exception()]
    return "; ".join([f"{row[0]} has no '{row[1]}' any more" for row in left] +
                     [f"{command.where}: a file's content, which is not used: {command.typed}" for command in files])


def follow_all(report):
    readme, guide = chapters(README), chapters(GUIDE)
    last = {LAST: readme.pop(LAST)}
    found = [command for parts in (readme, guide, last) for chapter in parts.values() for command in chapter]
    report.add("texts", "exceptions", exceptions_used(found))
    report.add("texts", "drop-ins", drop_ins(found))
    before = installed()
    follow(report, README, Reader(NOBODY, REPOSITORY), readme)
    report.add(README, "units", start_units(Reader(0, REPOSITORY), readme))
    reboot()
    follow(report, GUIDE, Reader(NOBODY, REPOSITORY), guide)
    steps = {title: chapter for title, chapter in guide.items() if re.match(r"[1-9]\.", title)}
    follow(report, GUIDE, Reader(NOBODY, f"{REPOSITORY}/build/examples", 64), steps, " 64k")
    programs = {title: chapter for title, chapter in readme.items() if title in ("A first program", "Tools")}
    follow(report, README, Reader(NOBODY, REPOSITORY, 64), programs, " 64k")
    follow(report, README, Reader(NOBODY, REPOSITORY), last)
    report.add("README", "nothing stays", " ".join(sorted(installed() - before)))


def main():
    report = Report(sys.argv[1:])
    try:
        follow_all(report)
    except Wrong as wrong:
        report.add("texts", "to the end", str(wrong))
        report.failed = True
    return report.end()


sys.exit(main())
