# SPDX-License-Identifier: GPL-2.0
"""Mishaps between two machines, and exs-cp from one to the other. Each function is a test: tests/run calls it with both."""
import contextlib
import re
import signal

A, B = "10.77.1.1", "10.77.1.2"
PORT = 7810
# Errors that may report a peer that is gone; never success, never silence.
LOST = r"^ended (ETIMEDOUT|ECONNRESET|ENODATA|EPIPE|ENETDOWN|ECONNABORTED|EIO)$"
LIMIT = 150


def start_load(a, b, *kinds):
    """Both sides busy, by a connection of each kind: the runs on a, and those on b."""
    clients, servers = [], []
    for port, kind in enumerate(kinds, PORT):
        servers.append(b.start(f"endure serve {kind} {B} {port}"))
        servers[-1].wait_for("^listening$")
        clients.append(a.start(f"endure connect {kind} {B} {port}"))
    for run in clients + servers:
        run.wait_for("^under way$", LIMIT)
    return clients, servers


def ended(runs, pattern=LOST):
    """They report the loss, and one event for each operation."""
    for run in runs:
        run.wait_for(pattern, LIMIT)
        assert run.wait(LIMIT) == 0, f"exit status {run.status}:\n{run.output}"


def lines(run, pattern):
    return len(re.findall(pattern, run.output, re.MULTILINE))


def receive(b):
    receiver = b.start(f"exs-cp --listen --keep -b {B} /run/exs/works")
    receiver.wait_for("listening on")
    return receiver


def works(a, b, receiver=None):
    """A copy from a to b goes through, sooner or later: a link that comes up may need a while."""
    receiver = receiver or receive(b)
    a.check(f"until exs-cp /etc/services {B}; do sleep 0.2; done", LIMIT)
    b.check("cmp /etc/services /run/exs/works")
    receiver.kill()


def peer_frozen(a, b, *kinds):
    clients, servers = start_load(a, b, *kinds)
    b.freeze()
    try:
        ended(clients)
    finally:
        b.thaw()
    ended(servers)
    works(a, b)


def counter(machine, name):
    return int(machine.check(f"awk '$1 == \"{name}\" {{ print $2 }}' /proc/net/exs"))


def peer_frozen_waiting(a, b, kind):
    """It freezes when all that was sent is acknowledged, and nothing more can be sent until its program reads."""
    a.check("echo 6000 > /proc/sys/net/exs/stall_timeout")
    try:
        clients, (server,) = start_load(a, b, kind)
        probes = counter(a, "stall_probes")
        server.signal(signal.SIGSTOP)
        a.check(f"until [ $(awk '/^stall_probes/ {{ print $2 }}' /proc/net/exs) -gt {probes} ]; do sleep 0.1; done", LIMIT)
        b.freeze()
        try:
            ended(clients, "^ended ETIMEDOUT$")     # provokes: exs_send event ETIMEDOUT
        finally:
            b.thaw()
        server.signal(signal.SIGCONT)
        ended([server])
        works(a, b)
    finally:
        a.check("echo 20000 > /proc/sys/net/exs/stall_timeout")


def sends_again(machine):
    """Whether its device sends several times what the other one does not acknowledge, if anything was under way."""
    path = "/sys/class/infiniband/rxe0/ports/1/hw_counters/completer_retry_err"
    command = f"n=$(cat {path}); until [ $(cat {path}) -gt $((n + 2)) ]; do sleep 0.1; done"
    return not machine.run(f"timeout 3 sh -c '{command}'", LIMIT).status


def frozen_for_a_moment(a, b, kind):
    """Shorter than the retries last: the connection goes on. Until it was frozen while something was under way."""
    (client,), (server,) = start_load(a, b, kind)
    again, tries = False, 0
    while not again:
        tries += 1
        assert tries < 30, "nothing was under way whenever it froze"
        b.freeze()
        try:
            again = sends_again(a)
            assert client.status is None, client.output
            seen = lines(client, "^events")
        finally:
            b.thaw()
        a.wait_until(lambda: lines(client, "^events") >= seen + 2 or client.status is not None, LIMIT, "more events")
        assert client.status is None, client.output
    server.kill()
    ended([client])


def lossy_wire(a, b, kind):
    """One packet in a hundred is lost each way, and not one byte."""
    for machine in a, b:
        machine.check("tc qdisc add dev eth0 root netem loss 1%")
    server = b.start(f"transfer --serve {B}")
    server.wait_for("^serving")
    client = a.start(f"transfer --to {B} at_random_apart@{kind}")
    status = client.wait(LIMIT)
    server.kill()
    for machine in a, b:
        machine.check("tc qdisc del dev eth0 root")
    assert status == 0, client.output


@contextlib.contextmanager
def acknowledgments(machine, how):
    """Only acknowledgments of this machine's device go through netem."""
    # 0x11: the opcode of an acknowledgment, in the first byte after the UDP header.
    machine.check("tc qdisc add dev eth0 root handle 1: prio")
    try:
        machine.check(f"tc qdisc add dev eth0 parent 1:3 netem {how} && tc filter add dev eth0 parent 1: protocol ip u32 "
                      "match ip protocol 17 0xff match ip dport 4791 0xffff match u8 0x11 0xff at 28 flowid 1:3")
        yield
    finally:
        machine.check("tc qdisc del dev eth0 root")


def late_acknowledgments(a, b, case, delay):
    """A receiver that has everything closes, and the CM's message overtakes the acknowledgments: no send has failed.

    Its FIN has returned the credits of all transfers, so any delay is allowed. If FIN went earlier (taker_shuts), they
    have half a second. A busy machine needs some of it.
    """
    server = b.start(f"transfer --serve {B}")
    server.wait_for("^serving")
    try:
        with acknowledgments(a, f"delay {delay}"):
            client = a.start(f"transfer --to {B} {case}")
            assert client.wait(LIMIT) == 0, client.output
    finally:
        server.kill()


def perf(a, b, options):
    """exs-perf of messages, from a to b."""
    server = b.start(f"exs-perf --listen --seqpacket {B}:{PORT}")
    try:
        server.wait_for("listening")
        a.check(f"exs-perf --blast --seqpacket {options} {B}:{PORT}", LIMIT)
    finally:
        server.kill()


def requests_and_answers(a, b):
    """Once a CREDIT is sent, two ends that answer each other do not send one with each answer for ever."""
    server = b.start(f"exs-perf --listen --keep {B}:{PORT}")
    try:
        server.wait_for("listening")
        for size in "4K", "16K":
            before = counter(a, "credits_tx"), counter(b, "credits_tx")
            a.check(f"exs-perf --pingpong -s {size} -n 200 {B}:{PORT}", LIMIT)
            sent = counter(a, "credits_tx") - before[0], counter(b, "credits_tx") - before[1]
            assert max(sent) < 50, f"{size}: {sent} CREDITs"
    finally:
        server.kill()


def sends_unacknowledged(a, b):
    """Short messages are ahead of their acknowledgments, as far as the peer gives credits."""
    grown = counter(a, "slots_grown")
    with acknowledgments(b, "delay 100ms"):
        perf(a, b, "-s 64 -d 64 -n 600")
    # Not only once, as the few that an idle connection has.
    assert counter(a, "slots_grown") > grown + 1


def adverts_unacknowledged(a, b):
    """Adverts do not wait for one another's acknowledgments, one by one."""
    names = "adverts_tx", "advert_batches"
    before = [counter(b, name) for name in names]
    with acknowledgments(a, "delay 100ms"):
        perf(a, b, "-s 65536 -d 16 -n 100")
    adverts, batches = (counter(b, name) - value for name, value in zip(names, before))
    assert adverts >= 100 and batches <= adverts / 3, f"{adverts} adverts in {batches} batches"


def lost_acknowledgments(a, b):
    """They never come. FIN's credits show that all arrived; without them, the wait has a limit."""
    server = b.start(f"transfer --serve {B}")
    server.wait_for("^serving")
    try:
        with acknowledgments(a, "loss 100%"):
            for case in "taker_leaves_one", "taker_shuts_unheard":
                a.check(f"transfer --to {B} {case}", LIMIT)
    finally:
        server.kill()


def wait_for_carrier(machine, value):
    machine.check(f"until [ $(cat /sys/class/net/eth0/carrier) = {value} ]; do sleep 0.1; done", LIMIT)


def link_down(a, b, *kinds):
    receiver = receive(b)
    clients, servers = start_load(a, b, *kinds)
    b.set_link(False)
    try:
        ended(clients + servers)
    finally:
        b.set_link(True)
    wait_for_carrier(b, 1)
    # A datagram that the CM sends while there is no link leaves soft-RoCE's QP 1 in error on 6.12, until the device is
    # made anew: see README.
    if "GSI state ERR" in b.check("rdma res show qp"):
        b.check("rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0", LIMIT)
    works(a, b, receiver)


def link_down_idle(a, b):
    """Nothing is sent meanwhile: the listener goes on listening."""
    receiver = receive(b)
    b.set_link(False)
    wait_for_carrier(b, 0)
    b.set_link(True)
    wait_for_carrier(b, 1)
    works(a, b, receiver)


# Waits for data that never come; the other side has nothing to send either.
IDLE = f"""
import errno, socket, sys
kind = int(sys.argv[2])
s = socket.socket(int(open("/sys/module/exs/parameters/family").read()), kind)
# With a family that Python knows the addresses of.
s = socket.socket(socket.AF_INET, kind, 0, fileno=s.detach())
s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
if sys.argv[1] == "serve":
    s.bind(("{B}", {PORT}))
    s.listen(1)
    print("listening", flush=True)
    s = s.accept()[0]
else:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 3000)
    s.connect(("{B}", {PORT}))
print("under way", flush=True)
try:
    s.recv(1)
except OSError as e:
    print("ended", errno.errorcode[e.errno], flush=True)
"""


def peer_frozen_idle(a, b, kind):
    """SO_KEEPALIVE notifies both that the other is gone: one after TCP_USER_TIMEOUT, the other after stall_timeout."""
    # Not b: if b gave up before it is frozen, the connection would end in another way at a.
    a.check("echo 600000 > /proc/sys/net/exs/stall_timeout")
    server = b.start(f"python3 -c '{IDLE}' serve {kind}")
    server.wait_for("^listening$")
    client = a.start(f"python3 -c '{IDLE}' connect {kind}")
    client.wait_for("^under way$", LIMIT)
    server.wait_for("^under way$", LIMIT)
    b.freeze()
    try:
        ended([client], "^ended ETIMEDOUT$")
    finally:
        b.thaw()
        a.check("echo 20000 > /proc/sys/net/exs/stall_timeout")
    ended([server])
    works(a, b)


# A group of connections at a time is closed. Then more of them must be left than workers that are busy with them, and
# another user's work on this machine (hand-shakes, transfers, closes) must end before most of the group are gone.
MANY = f"""
import glob, os, re, resource, signal, socket, struct, sys, time
GROUPS, EACH = 5, 400
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
def tcp(s):
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=s.detach())
def new():
    return tcp(socket.socket(int(open("/sys/module/exs/parameters/family").read()), socket.SOCK_STREAM))
def live():
    return int(re.search("live_endpoints ([0-9]+)", open("/proc/net/exs").read())[1])
def text(path):
    try:
        return open(path).read()
    except OSError:
        return ""
def waits(stack):
    # For a peer; not in a provider or the RDMA core, where the end of a queue pair sleeps for a moment.
    return "exs_verbs_teardown" in stack and not re.search("\\[(rdma_|ib_)", stack)
def busy():
    workers = [p for p in glob.glob("/proc/[0-9]*") if text(p + "/comm").startswith("kworker/u")]
    return sum(waits(text(p + "/stack")) for p in workers)
def share(left):
    # Of those that are dying, how many have a worker; None: too few were left at the end.
    n = busy()
    still = dying(left)
    return n / still if still else None
def dying(left):
    # Closed connections that are still there; too few show nothing.
    n = live() - left
    return n if n >= EACH / 8 else 0
def listen(address):
    s = new()
    s.bind((address, {PORT}))
    s.listen(64)
    return s
def another(left):
    # Return: whether a connection of another user has come and gone while many of a group were there.
    os.seteuid(1000)
    l = listen("{A}")
    with new() as c:
        c.connect(("{A}", {PORT}))
        with l.accept()[0] as s:
            c.sendall(bytes(100))
            assert len(s.recv(100, socket.MSG_WAITALL)) == 100
            went_on = dying(left + 2) > 0
    l.close()
    os.seteuid(0)
    return went_on
if sys.argv[1] == "serve":
    s = listen("{B}")
    print("listening", flush=True)
    kept = [s.accept() for i in range(GROUPS * EACH)]
    print("all here", flush=True)
    signal.pause()
    sys.exit()
all = [new() for i in range(GROUPS * EACH)]
for s in all:
    s.connect(("{B}", {PORT}))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
print("connected", flush=True)
while not os.path.exists("/run/exs/dead"):
    time.sleep(0.01)
shares, rounds = [], 0
for group in range(GROUPS):
    for s in all[group * EACH:][:EACH]:
        s.close()
    left = (GROUPS - group - 1) * EACH
    shares.append(share(left))
    rounds += another(left)
shares = [s for s in shares if s is not None]
print("few workers" if shares and max(shares) < 1 / 4 else "a worker for each, or not seen", shares)
print("others went on" if rounds else "others waited", flush=True)
"""


def many_to_dead_peer(a, b):
    """No worker sleeps for a peer that does not answer: other connections do not wait for such workers."""
    server = b.start(f"python3 -c '{MANY}' serve")
    server.wait_for("^listening$")
    client = a.start(f"python3 -c '{MANY}' connect")
    client.wait_for("^connected$", LIMIT)
    server.wait_for("^all here$", LIMIT)
    # As if b had died: a frozen machine stops the wire, with the packets that are on it.
    a.check("tc qdisc add dev eth0 root netem loss 100%")
    try:
        # The processor has much else to do.
        a.check("echo 120000 > /proc/sys/net/exs/connect_timeout; touch /run/exs/dead")
        client.wait_for("^others went on$", LIMIT)
        assert "few workers" in client.output, client.output
        assert client.wait(LIMIT) == 0, client.output
        a.check("rm /run/exs/dead")
    finally:
        a.check("tc qdisc del dev eth0 root; echo 15000 > /proc/sys/net/exs/connect_timeout")
    server.kill()
    works(a, b)


def power_failure(a, b, *kinds):
    clients, _ = start_load(a, b, *kinds)
    b.kill()
    ended(clients)


# Some idle connections, and the numbers of their queue pairs.
IDLE_ONES = f"""
import re, signal, socket, subprocess, sys
def new():
    s = socket.socket(int(open("/sys/module/exs/parameters/family").read()), socket.SOCK_STREAM)
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=s.detach())
all = [new() for i in range(3)]
if sys.argv[1] == "serve":
    all[0].bind(("{B}", {PORT}))
    all[0].listen(8)
    print("listening", flush=True)
    all += [all[0].accept() for i in range(6)]
else:
    for s in all:
        s.connect(("{B}", {PORT}))
    shown = subprocess.run(["rdma", "res", "show", "qp"], capture_output=True, text=True, check=True).stdout
    print("numbers", *re.findall("lqpn ([0-9]+) .*type RC", shown), flush=True)
signal.pause()
"""


def numbers(client):
    client.wait_for("^numbers .*$", LIMIT)
    return [int(n) for n in re.search("^numbers (.*)$", client.output, re.MULTILINE)[1].split()]


def stale_queue_pairs(a, b):
    """As if a had crashed: its new queue pairs have the numbers of those with which b has connections still."""
    add = "rdma link add rxe0 type rxe netdev eth0"
    a.check(f"rdma link delete rxe0 && {add}", LIMIT)
    server = b.start(f"python3 -c '{IDLE_ONES}' serve")
    server.wait_for("^listening$")
    client = a.start(f"python3 -c '{IDLE_ONES}' connect")
    before = numbers(client)
    # b does not hear of it.
    a.check("tc qdisc add dev eth0 root netem loss 100%")
    try:
        client.kill()
        a.check("rdma link delete rxe0", LIMIT)
    finally:
        a.check(f"tc qdisc del dev eth0 root; {add}", LIMIT)
    again = counter(a, "connects_again")
    client = a.start(f"python3 -c '{IDLE_ONES}' connect")
    after = numbers(client)
    # The old numbers were tried and refused.
    assert counter(a, "connects_again") > again
    assert len(after) == 3 and min(after) > max(before), f"{before} {after}"
    client.kill()
    server.kill()
    works(a, b)


def process_killed(a, b, *kinds):
    clients, servers = start_load(a, b, *kinds)
    for server in servers:
        server.kill()
    ended(clients)
    works(a, b)


def device_deleted(a, b, *kinds):
    clients, servers = start_load(a, b, *kinds)
    b.check("rdma link delete rxe0", LIMIT)
    try:
        ended(servers + clients)
    finally:
        b.check("rdma link add rxe0 type rxe netdev eth0", LIMIT)
    works(a, b)


def nobody_listens(a, _):
    run = a.run(f"endure connect stream {B} {PORT + 1}", LIMIT)
    assert "ended ECONNREFUSED" in run.output, run.output


def frozen_host_connect(a, b):
    server = b.start(f"endure serve stream {B} {PORT}")
    server.wait_for("^listening$")
    a.check("echo 2000 > /proc/sys/net/exs/connect_timeout")
    b.freeze()
    try:
        run = a.run(f"endure connect stream {B} {PORT}", LIMIT)
        assert "ended ETIMEDOUT" in run.output, run.output
    finally:
        b.thaw()
        a.check("echo 15000 > /proc/sys/net/exs/connect_timeout")
    server.kill()


def unload_with_orphan(a, b):
    """A connection that still has something to deliver, to a host that is silent, does not hold up rmmod."""
    # The listener takes the connection; as its process is stopped, the data are not read.
    server = b.start(f"endure serve seqpacket {B} {PORT}")
    server.wait_for("^listening$")
    server.signal(signal.SIGSTOP)
    a.check("echo 3600000 > /proc/sys/net/exs/linger")
    a.check(f"endure leave seqpacket {B} {PORT}", LIMIT)
    b.freeze()
    try:
        a.check("grep -q '^live_orphans 1$' /proc/net/exs")
        a.check("rmmod exs", LIMIT)
    finally:
        b.thaw()
    a.check("insmod $EXS_MODULE")
    server.kill()


def copy(a, b, size="67108864"):
    a.check(f"head -c {size} /dev/urandom > /run/exs/file")
    want = a.check("sha256sum < /run/exs/file", LIMIT)
    b.check("mkdir /run/exs/out")
    receiver = b.start(f"exs-cp --listen -b {B} /run/exs/out")
    receiver.wait_for("listening on")
    a.check(f"exs-cp /run/exs/file {B}", LIMIT)
    assert receiver.wait(LIMIT) == 0, receiver.output
    assert b.check("sha256sum < /run/exs/out/file", LIMIT) == want, "the copy differs"


def sent(machine):
    text = machine.check("cat /proc/net/exs")
    return sum(int(n) for n in re.findall(r"^(?:direct|indirect|eager)_tx_bytes (\d+)$", text, re.MULTILINE))


def stop_half_way(b, total):
    """Whether the receiver has some of the file, at most half, and takes no more: the sender cannot come to its end."""
    b.check("cd /run/exs/out; until [ -s .file.part -o -e file ]; do sleep 0.05; done; kill -STOP $(pidof exs-cp)", LIMIT)
    return int(b.check("stat -c %s /run/exs/out/.file.part 2> /dev/null || echo -1")) in range(1, total // 2 + 1)


def half_a_copy(a, b, options=""):
    """Receiver, which is stopped, and sender. On a busy machine too much may have passed before that: then anew."""
    total = 67108864
    a.check(f"head -c {total} /dev/urandom > /run/exs/file")
    for _ in range(20):
        b.check("rm -rf /run/exs/out; mkdir /run/exs/out")
        receiver = b.start(f"exs-cp --listen {options} -b {B} /run/exs/out")
        receiver.wait_for("listening on")
        sender = a.start(f"exs-cp /run/exs/file {B}")
        if stop_half_way(b, total):
            return receiver, sender, total
        receiver.kill()
        sender.wait(LIMIT)
    raise AssertionError("the receiver was never stopped in time")


def copy_broken_and_resumed(a, b):
    """The sender dies half way: nothing under the final name; the next one sends the rest only."""
    receiver, sender, total = half_a_copy(a, b, "--keep")
    sender.kill()
    receiver.signal(signal.SIGCONT)
    b.check("[ ! -e /run/exs/out/file ]")
    before = sent(a)
    a.check(f"exs-cp /run/exs/file {B}", LIMIT)
    part = total - (sent(a) - before)
    assert b.check("sha256sum < /run/exs/out/file") == a.check("sha256sum < /run/exs/file"), "the copy differs"
    assert part > 0, "all of it was sent again"
    receiver.kill()


def copy_receiver_dies(a, b):
    receiver, sender, _ = half_a_copy(a, b)
    receiver.kill()
    assert sender.wait(LIMIT) == 1, sender.output
    b.check("[ ! -e /run/exs/out/file ]")
