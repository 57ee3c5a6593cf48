# SPDX-License-Identifier: GPL-2.0
"""Guests for the tests: boots QEMU, runs commands in it through the agent, freezes, unplugs and kills it.

    with Guest("6.12") as g:                 one machine, rxe on a dummy netdev; kind="ns": also siw between namespaces
        g.run("rping -c ...")                waits; returns a Run with .status and .output
        server = g.start("exs-cp --listen ...")
        server.wait_for("listening")         a line of its output, as a regular expression
        server.kill()
    with Pair("6.12") as (a, b):             two machines on a wire, rxe on a virtio NIC
        a.freeze(), a.thaw(), a.set_link(False), a.kill()

Every wait has a limit and ends early with an exception when the guest dies.
"""
import base64
import contextlib
import fcntl
import functools
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import kernellog

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("EXS_BUILD") or os.path.join(TOP, "build")
ACCEL = os.environ.get("EXS_ACCEL", "tcg,thread=multi")
BOOT_LIMIT = 300
# Useless lines of a report: registers, code, and stale return addresses.
NOISE = re.compile(r"\] +(\? |(R[0-9A-DS][0-9XIPS]|[CDF]S|CR\d|PKRU|Code): )")
# The checkers cost memory: KASAN an eighth, a quarantine, and redzones.
MEMORY = {"one": 2048, "debug": 2048, "pair": 1536}
# Where waiting takes no time (Guest.counted): the factor for time limits, as a guest's clock also goes on while it
# reads the host's disk, forty times as fast; and the milliseconds for which tests watch that nothing happens.
COUNTED_PATIENCE, WATCH = 4, 1000
# The machines of this process, and whether it has been told to end.
living, ending = set(), threading.Event()
ENDS = signal.SIGHUP, signal.SIGINT, signal.SIGTERM


def terminated(number, _):
    """Leaves through every finally and with. Machines end at once: some may be booting, in threads or half made."""
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    ending.set()
    for machine in list(living):
        machine.qemu.kill()
    sys.exit(128 + number)


for told in ENDS:
    if signal.getsignal(told) != signal.SIG_IGN:        # nohup
        signal.signal(told, terminated)


class GuestDied(Exception):
    """QEMU ended: panic, kill or power-off."""


class Timeout(Exception):
    """A wait reached its limit."""


class NoBoot(Exception):
    """The kernel did not start its first program: no test ran."""


def kernel(name, what):
    """tests/vm/kernel's answer: release, image or kdir."""
    return subprocess.run([f"{HERE}/kernel", name, what], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def in_guest(path):
    """The path in a guest: the repository has a place of its own; it does not see the host's /tmp and /run."""
    return "/exs" + path[len(TOP):] if path.startswith(TOP + "/") else path


def this_machines_khz():
    place = os.path.join(BUILD, "vm")
    os.makedirs(place, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as directory:
        program = os.path.join(directory, "tsc")
        subprocess.run(["cc", "-O2", "-o", program, f"{HERE}/tsc.c"], check=True)
        return subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


@functools.cache
def clock(kernel_name, counted):
    """Kernel parameters that tell an emulated machine the rate of its TSC, which is this machine's, or 1 GHz if counted.

    It would be measured against an emulated timer while the guest boots, and where both processors are busy with other
    guests the result may be a tenth of the real rate: the guest's clock runs ten times as fast then, and all of its
    limits with it. The rounds of a delay loop, too, are told for all processors: measuring them takes seconds.
    """
    if not counted and (platform.machine() != "x86_64" or not ACCEL.startswith("tcg")):
        return ""
    khz = 1000000 if counted else this_machines_khz()
    told = f"tsc_early_khz={khz} "
    with contextlib.suppress(OSError), open(kernel(kernel_name, "kdir") + "/.config", encoding="utf-8") as config:
        told += f"lpj={int(khz) * 1000 // int(re.search('^CONFIG_HZ=([0-9]+)', config.read(), re.M)[1])} "
    return told


class Skip(Exception):
    """Raised by a test: it cannot run here, for the reason given."""


class Run:
    """A command in a guest, running or ended."""

    def __init__(self, guest, ident, command, echo):
        self.guest, self.id, self.command = guest, ident, command
        self.echo = echo
        self.data = b""
        self.status = None

    @property
    def output(self):
        return self.data.decode(errors="replace")

    def wait(self, timeout=60):
        """The exit status (128 + n for signal n)."""
        self.guest.wait_until(lambda: self.status is not None, timeout, f"the end of: {self.command}")
        return self.status

    def wait_for(self, pattern, timeout=60):
        """Waits until the output matches; an end without a match is an error."""
        found = lambda: re.search(pattern, self.output, re.MULTILINE)
        self.guest.wait_until(lambda: found() or self.status is not None, timeout, f"{pattern!r} from: {self.command}")
        if not found():
            raise AssertionError(f"{self.command}: ended with {self.status} before {pattern!r}:\n{self.output}")
        return found()

    def signal(self, number):
        self.guest.send(op="signal", id=self.id, signal=int(number))

    def kill(self, timeout=60):
        self.signal(signal.SIGKILL)
        return self.wait(timeout)

    def send(self, data):
        """Types into the command's terminal."""
        self.guest.send(op="input", id=self.id, data=base64.b64encode(data).decode())


class Guest:
    """One virtual machine."""

    def __init__(self, kernel_name, name="one", wire=None, module=True, params="", kind="one", logs=None, memory=None,
                 processors=None):
        self.kernel, self.name = kernel_name, name
        self.release, self.root = kernel(kernel_name, "release"), kernel(kernel_name, "root")
        self.module = f"/exs/build/{self.release}/exs.ko"       # as the guest sees it
        self.logs = logs or os.path.join(BUILD, "logs")
        self.processors = processors or (1 if wire else 2)
        # Its clock counts its instructions, so other load of the host has no effect in it. While everything waits, the
        # clock skips to the next tick, so waiting takes little time. Not for two on a wire, whose clocks would be
        # independent of each other, nor for two processors, which then would take turns.
        self.counted = ACCEL.startswith("tcg") and self.processors == 1 and not wire
        self.memory = memory or MEMORY["debug" if kernel_name == "debug" else "pair" if wire else "one"]
        self.log = []                           # kernel log lines
        self.runs, self.next_id, self.synced = {}, 0, set()
        self.dead = self.ready = self.killed = False
        # Everything takes longer under the checkers; programs see the factor in EXS_SLOW.
        self.slow = 4 if kernel_name == "debug" else 1
        self.changed = threading.Condition()
        self.qmp_lock = threading.Lock()
        self.wire = wire.dup() if wire else None
        self.boot(wire)
        try:
            self.wait_boot()
            self.setup(kind)
            if module:
                self.load_module(params)
        except BaseException:
            self.close()
            raise

    # -- starting and ending

    def boot(self, wire):
        base = self.claim_logs()
        self.console = base + ".console"
        initramfs = os.path.join(BUILD, "vm", f"initramfs-{self.release}-{os.path.basename(base)}")
        subprocess.run([f"{HERE}/initramfs", self.release, self.root, initramfs], check=True)
        self.agent, agent = socket.socketpair()
        self.monitor, monitor = socket.socketpair()
        fds = [agent.fileno(), monitor.fileno()] + ([wire.fileno()] if wire else [])
        self.qemu = subprocess.Popen(
            self.qemu_command(initramfs, *fds), pass_fds=fds, stdin=subprocess.DEVNULL,
            stdout=open(base + ".qemu", "w", encoding="utf-8"), stderr=subprocess.STDOUT, start_new_session=True)
        living.add(self)
        if ending.is_set():
            self.qemu.kill()
        for end in agent, monitor:
            end.close()
        self.reader = threading.Thread(target=self.read_agent, daemon=True)
        self.reader.start()
        self.monitor.settimeout(60)
        self.qmp_stream = self.monitor.makefile("rw", encoding="utf-8")

    def claim_logs(self):
        """The first name for the logs that no other machine is using just now."""
        os.makedirs(self.logs, exist_ok=True)
        for suffix in ("", *(f"-{n}" for n in range(2, 100))):
            base = os.path.join(self.logs, f"{self.kernel}-{self.name}{suffix}")
            self.log_file = open(base + ".log", "a", encoding="utf-8", buffering=1)
            try:
                fcntl.flock(self.log_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.log_file.close()
                continue
            self.log_file.truncate(0)
            return base
        raise RuntimeError(f"too many machines at once (tests/run --end ends those that stay up): {self.logs}")

    def qemu_command(self, initramfs, agent, monitor, wire=None):
        share = "security_model=none,readonly=on,multidevs=remap"
        command = [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-accel", "tcg,thread=single" if self.counted else ACCEL, "-cpu", "max,la57=off,erms=off,cx16=off",
            # ERMS announces fast copies byte by byte; this processor takes a round for each byte. CMPXCHG16B, when it
            # fails, leaves rubbish in the flags under QEMU 7.2's emulation. The kernel's allocator lives with that
            # unless an interrupt comes then, and returns with NT or TF, or the direction flag, set. Sockets, because
            # the debug kernel counts processors in the MP table, which lists no cores.
            "-smp", f"{self.processors},sockets={self.processors}", "-m", str(self.memory),
            "-kernel", kernel(self.kernel, "image"), "-initrd", initramfs,
            "-append", f"{self.clock_parameters()}console=ttyS0 loglevel=5 panic=-1 oops=panic log_buf_len=4M "
                       "mitigations=off net.ifnames=0 tsc=reliable no_timer_check kasan_multi_shot "
                       # Only for the debug kernel, which has no ACPI.
                       "pmtmr=0x608 "
                       # A processor that the host does not run is no report: all of them wait for 120 s.
                       "rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 "
                       # Persistent memory, for files on a DAX device; the debug kernel has no driver.
                       "memmap=16M!1G",
            "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
            "-virtfs", f"local,path=/,mount_tag=host,{share}",
            "-virtfs", f"local,path={TOP},mount_tag=exs,{share}",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,fd={agent}", "-device", "virtserialport,chardev=agent,name=exs.agent",
            "-chardev", f"socket,id=qmp,fd={monitor}", "-mon", "chardev=qmp,mode=control",
        ]
        if self.counted:
            # An instruction is 8 ns, about as long as it takes here.
            command += ["-icount", "shift=3,sleep=off"]
        if wire:
            mac = f"52:54:00:77:01:0{'ab'.index(self.name) + 1}"
            command += ["-netdev", f"socket,id=wire,fd={wire}",
                        "-device", f"virtio-net-pci,netdev=wire,id=nic,mac={mac},host_mtu=9000"]
        return command

    def clock_parameters(self):
        """With its ticks a counted clock does not go on by more than one of them at once (COUNTED_PATIENCE)."""
        hung = 120 * (COUNTED_PATIENCE if self.counted else 1)
        return (f"{'nohz=off ' if self.counted else ''}{clock(self.kernel, self.counted)}"
                f"sysctl.kernel.hung_task_timeout_secs={hung} ")

    def wait_boot(self):
        try:
            self.wait_until(lambda: self.ready, BOOT_LIMIT, "the boot")
        except GuestDied as error:
            raise NoBoot(str(error)) from error
        except Timeout as error:
            raise NoBoot(f"{error}\n{self.last_words()}") from error
        finally:
            if not self.ready:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self.console, self.console + ".no-boot")

    def setup(self, kind):
        """Network and RDMA devices, as tests/vm/setup describes them."""
        if self.root != "/":
            self.modules_elsewhere(f"{in_guest(self.root)}/lib/modules/{self.release}")
        kind = self.name if self.name in ("a", "b") else kind
        if kind != "none":
            self.check(f"tests/vm/setup {kind}", timeout=BOOT_LIMIT)

    def modules_elsewhere(self, place):
        """They can be written to, and are not hidden when something is laid over /usr: init has made a link."""
        self.check(f"""set -e; cd /run; mkdir -p modules/upper modules/work modules/{self.release}
            mount -t overlay -o lowerdir={place},upperdir=modules/upper,workdir=modules/work modules modules/{self.release}""")

    def load_module(self, params="", file=None):
        """The log is looked at here: a test's part of it begins when the module is loaded."""
        mark = self.log_mark()
        self.module = file or self.module
        self.check(f"insmod {self.module} {params}")
        reports = kernellog.reports(self.log[mark:self.log_mark()])
        if reports:
            raise AssertionError(f"{self.name}: loading exs.ko: {reports[0].title}\n{reports[0].text}")

    def forget_files(self):
        """Files on the host's disk may have changed since the guest looked."""
        self.check("echo 3 > /proc/sys/vm/drop_caches")

    def close(self):
        """Ends the machine; nothing in it is worth a shutdown."""
        self.kill()
        living.discard(self)
        if self.wire:
            with contextlib.suppress(OSError):
                self.wire.shutdown(socket.SHUT_RDWR)    # swallow() ends
            self.wire.close()
        for file in self.agent, self.monitor, self.log_file:
            file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- commands

    def start(self, command, user="root", pty=None, env=None, echo=None):
        """Starts a command; echo is called with every piece of its output."""
        with self.changed:
            self.next_id += 1
            run = self.runs[self.next_id] = Run(self, self.next_id, command, echo)
        told = {name: value for name, value in os.environ.items() if name.startswith("E2E_")}
        if self.counted:
            told = {"E2E_PATIENCE": str(COUNTED_PATIENCE), "E2E_WATCH": str(WATCH), **told}
        env = {**told, "EXS_SLOW": str(self.slow), "EXS_MODULE": self.module, **(env or {})}
        self.send(op="run", id=run.id, command=command, user=user, pty=pty, env=env)
        return run

    def run(self, command, timeout=60, **how):
        """Runs a command to its end, or kills it at the limit and raises Timeout."""
        run = self.start(command, **how)
        try:
            run.wait(timeout)
        except Timeout:
            run.kill()
            raise
        return run

    def check(self, command, timeout=60, **how):
        """Like run, but a failure is an error; returns the output."""
        run = self.run(command, timeout, **how)
        if run.status:
            raise AssertionError(f"{self.name}: {command}: exit status {run.status}\n{run.output}")
        return run.output

    def log_mark(self, timeout=60):
        """Where the kernel log ends now."""
        with self.changed:
            self.next_id += 1
            ident = self.next_id
        self.send(op="sync", id=ident)
        self.wait_until(lambda: ident in self.synced, timeout, "the kernel log")
        return len(self.log)

    # -- mishaps

    def qmp(self, execute, **arguments):
        with self.qmp_lock:
            if not getattr(self, "qmp_ready", False):
                self.qmp_ready = True
                self.qmp_stream.readline()      # the greeting
                self.qmp_exchange("qmp_capabilities")
            return self.qmp_exchange(execute, **arguments)

    def qmp_exchange(self, execute, **arguments):
        self.qmp_stream.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        self.qmp_stream.flush()
        while True:
            reply = json.loads(self.qmp_stream.readline() or '{"error": "QEMU ended"}')
            if "error" in reply:
                raise GuestDied(f"{self.name}: {execute}: {reply['error']}")
            if "return" in reply:
                return reply["return"]

    def processors_now(self):
        """The state of a guest that does not answer: QEMU's report on its processors."""
        try:
            return self.qmp("human-monitor-command", **{"command-line": "info registers -a"})
        except (OSError, GuestDied) as error:
            return f"QEMU does not answer either: {error}"

    def freeze(self):
        """Stops the processors; to the peer the machine is silent."""
        self.qmp("stop")

    def thaw(self):
        self.qmp("cont")

    def set_link(self, up):
        """Plugs the cable, or pulls it."""
        self.qmp("set_link", name="nic", up=up)

    def kill(self):
        """Power failure."""
        first, self.killed = not self.killed, True
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()
        if self.wire and first:
            threading.Thread(target=self.swallow, daemon=True).start()
        self.reader.join(10)                    # so that the other threads notice at once

    def swallow(self):
        """Packets to a machine that is gone get lost, instead of stuck in the sender's network device."""
        with contextlib.suppress(OSError):
            self.wire.setblocking(True)         # QEMU has changed that
            while self.wire.recv(1 << 16):
                pass

    # -- the agent's messages

    def send(self, **message):
        try:
            self.agent.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise GuestDied(f"{self.name}: {error}") from error

    def read_agent(self):
        try:
            with self.agent.makefile("rb") as stream:
                for line in stream:
                    self.dispatch(json.loads(line))
        except (OSError, ValueError):
            pass
        with self.changed:
            self.dead = True
            self.changed.notify_all()

    def dispatch(self, message):
        with self.changed:
            run = self.runs.get(message.get("id"))
            match message["op"]:
                case "hello":
                    self.ready = True
                case "output":
                    data = base64.b64decode(message["data"])
                    run.data += data
                    if run.echo:
                        run.echo(data)
                case "exit":
                    run.status = message["status"]
                    del self.runs[run.id]
                case "log":
                    self.log.append(message["text"])
                    self.log_file.write(message["text"] + "\n")
                case "synced":
                    self.synced.add(message["id"])
            self.changed.notify_all()

    def wait_until(self, condition, timeout, what):
        timeout *= self.slow
        deadline = time.monotonic() + timeout
        with self.changed:
            while not condition():
                if self.dead:
                    raise GuestDied(f"{self.name}: the guest ended while waiting for {what}\n{self.last_words()}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Timeout(f"{self.name}: timeout after {timeout} s, waiting for {what}")
                self.changed.wait(left)

    def last_words(self, lines=40):
        """The end, from the console: the first report and its trace; else the last lines. Or QEMU's output."""
        said = self.console if os.path.exists(self.console) else self.console.removesuffix("console") + "qemu"
        with open(said, encoding="utf-8", errors="replace") as file:
            text = file.read().splitlines()
        found = kernellog.reports(text)
        said = [line for line in found[0].text.splitlines() if not NOISE.search(line)][:lines] if found else text[-lines:]
        return "\n".join(said) + "\n"


class Pair:
    """Two machines, a and b, joined by a wire."""

    def __init__(self, kernel_name, **how):
        self.wires = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.guests, errors = {}, []

        def boot(name, wire):
            try:
                self.guests[name] = Guest(kernel_name, name, wire, **how)
            except Exception as error:          # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=boot, args=pair) for pair in zip("ab", self.wires)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for wire in self.wires:
            wire.close()
        if errors:
            self.close()
            raise errors[0]
        self.a, self.b = self.guests["a"], self.guests["b"]

    def close(self):
        for guest in self.guests.values():
            guest.close()

    def __enter__(self):
        return self.a, self.b

    def __exit__(self, *_):
        self.close()


def started(make, say):
    """The Guest or Pair that make() starts.

    Some kernels now and then do not come up under emulation. That is reported, and they are started once more: no test
    ran, and our code was not in them.
    """
    try:
        return make()
    except NoBoot as error:
        say(f"note  did not boot, started once more: {error}")
        return make()


def terminal_echo(data):
    """Passes a guest's output on as it is."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
