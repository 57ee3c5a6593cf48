# SPDX-License-Identifier: GPL-2.0
"""The guest's first process: runs what the host asks for.

One JSON object per line goes over a virtio-serial port.

host to guest:
    {"op": "run", "id": 1, "command": "...", "user": "root", "pty": [rows, columns] or null, "env": {}}
    {"op": "input", "id": 1, "data": base64}        {"op": "signal", "id": 1, "signal": 9}
    {"op": "sync", "id": 2}
guest to host:
    {"op": "hello"}
    {"op": "output", "id": 1, "data": base64}       {"op": "exit", "id": 1, "status": 0}
    {"op": "log", "text": "..."}                    {"op": "synced", "id": 2}

A command is a process group of its own; the rest of the group is killed when its leader ends. "synced" comes after
every line that was in the kernel log when "sync" arrived.
"""
import base64
import contextlib
import errno
import fcntl
import glob
import json
import os
import pwd
import selectors
import signal
import struct
import subprocess
import termios
import time

PORT = "exs.agent"
# Links to built files, which the kernel and the loader look through first whenever a program starts. In a tmpfs,
# because 9p asks the host each time for a name that is not there.
LINKS = {
    "/run/path/bin": ["/exs/build/tests/e2e", "/exs/build/tools", "/exs/build/examples"],
    "/run/path/lib": ["/exs/build/lib"],
}
BASE_ENV = {
    "PATH": "/run/path/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": "/run/path/lib",
    "LANG": "C.UTF-8",
    "TERM": "xterm",
}


def make_links():
    for place, sources in LINKS.items():
        os.makedirs(place)
        for source in filter(os.path.isdir, sources):
            for name in os.listdir(source):
                with contextlib.suppress(FileExistsError):      # the first one counts
                    os.symlink(f"{source}/{name}", f"{place}/{name}")


def open_port():
    """The virtio port by its name: there is no udev that would make a link."""
    for name in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(name, encoding="ascii") as file:
            if file.read().strip() == PORT:
                return os.open("/dev/" + name.split("/")[-2], os.O_RDWR)
    raise FileNotFoundError(PORT)


class Command:
    """One running command: its process and the descriptor of its output (and, with a terminal, input)."""

    def __init__(self, request):
        self.id = request["id"]
        user = pwd.getpwnam(request.get("user") or "root")
        if request.get("pty"):
            self.fd, child = os.openpty()
            fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", *request["pty"], 0, 0))
            os.fchown(child, user.pw_uid, -1)
            self.input = self.fd
        else:
            self.fd, child = os.pipe()
            self.input = None
        env = {**BASE_ENV, "USER": user.pw_name, "HOME": user.pw_dir, **(request.get("env") or {})}
        # Only for others: where there is nothing to be done before, the child starts without a copy of this process.
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user.pw_uid else {}
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", request["command"]], cwd="/exs", env=env,
            stdin=child if self.input is not None else subprocess.DEVNULL, stdout=child, stderr=child,
            start_new_session=True, **identity, preexec_fn=self.take_terminal if self.input is not None else None)
        os.close(child)
        os.set_blocking(self.fd, False)

    @staticmethod
    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self):
        """Output that is there: bytes, b"" at the end, None when there is none yet."""
        try:
            return os.read(self.fd, 16384)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.EIO:        # a terminal that no process has open
                return b""
            raise

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


class Agent:
    def __init__(self):
        # Nothing but the selector may poll it: poll(2) of a port takes arrived data off the ring, and another thread
        # that sleeps there is not woken for them. So it is read, and written, without.
        self.port = open_port()
        os.set_blocking(self.port, False)
        self.patience = 30                      # s: the port may be there before its other end
        self.pending = b""
        self.commands = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.port, selectors.EVENT_READ, self.on_port)
        self.kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        self.selector.register(self.kmsg, selectors.EVENT_READ, self.on_kmsg)
        # A child's end must wake the selector.
        self.wake, wake = os.pipe()
        for fd in self.wake, wake:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.wake, selectors.EVENT_READ, self.on_child)

    def send(self, **message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            try:
                data = data[os.write(self.port, data):]
            except BlockingIOError:
                self.on_port()                  # is the host there?
                time.sleep(0.01)

    def on_port(self):
        """Takes the input; it is handled when nothing is under way. The end of process 1 is a panic."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.port, 65536)
            self.pending += data
            if data:
                self.patience = 0
            elif self.patience:
                self.patience -= 1
                time.sleep(1)
            else:
                os._exit(1)

    def do_pending(self):
        while b"\n" in self.pending:
            line, _, self.pending = self.pending.partition(b"\n")
            request = json.loads(line)
            getattr(self, "do_" + request["op"])(request)

    def do_run(self, request):
        try:
            command = Command(request)
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            text = f"agent: cannot run: {error}\n".encode()
            self.send(op="output", id=request["id"], data=base64.b64encode(text).decode())
            self.send(op="exit", id=request["id"], status=127)
            return
        self.commands[command.id] = command
        self.selector.register(command.fd, selectors.EVENT_READ, lambda: self.on_output(command))

    def do_input(self, request):
        command = self.commands.get(request["id"])
        if command and command.input is not None:
            os.write(command.input, base64.b64decode(request["data"]))

    def do_signal(self, request):
        command = self.commands.get(request["id"])
        if command:
            command.signal(request["signal"])

    def do_sync(self, request):
        self.on_kmsg()
        self.send(op="synced", id=request["id"])

    def on_kmsg(self):
        while True:
            try:
                record = os.read(self.kmsg, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:             # overwritten before we came: say so, a report may have been in it
                self.send(op="log", text="agent: kernel log lines were lost")
                continue
            prefix, _, text = record.partition(b";")
            stamp = int(prefix.split(b",")[2]) / 1e6
            for line in text.decode(errors="replace").rstrip("\n").split("\n"):
                if not line.startswith(" SUBSYSTEM=") and not line.startswith(" DEVICE="):
                    self.send(op="log", text=f"[{stamp:12.6f}] {line}")

    def on_output(self, command):
        """Passes output on; at its end stops listening (the process may live on without output)."""
        data = command.read()
        if data:
            self.send(op="output", id=command.id, data=base64.b64encode(data).decode())
        elif data == b"":
            self.forget_output(command)

    def forget_output(self, command):
        if command.fd is not None:
            self.selector.unregister(command.fd)
            os.close(command.fd)
            command.fd = command.input = None

    def on_child(self):
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            pass
        for command in list(self.commands.values()):
            status = command.process.poll()
            if status is not None:
                self.finish(command, status)
        self.reap_orphans()

    def finish(self, command, status):
        command.signal(signal.SIGKILL)
        while command.fd is not None and (data := command.read()):
            self.send(op="output", id=command.id, data=base64.b64encode(data).decode())
        self.forget_output(command)
        del self.commands[command.id]
        self.on_kmsg()
        self.send(op="exit", id=command.id, status=status if status >= 0 else 128 - status)

    def reap_orphans(self):
        """Everything that lost its parent is ours; only processes that Popen does not know may be waited for here."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in {c.process.pid for c in self.commands.values()}:
                return                          # a command that ended just now wakes us again
            os.waitpid(ended.si_pid, 0)

    def serve(self):
        self.send(op="hello")
        while True:
            for key, _ in self.selector.select():
                if key.fd in self.selector.get_map():   # an earlier event of this round may have closed it
                    key.data()
            self.do_pending()


os.umask(0o022)
make_links()
Agent().serve()
