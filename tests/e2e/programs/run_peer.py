#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Programs without any use of EXS, for run.sh.

    run_peer.py serve HOST PORT                 files of this directory, by HTTP
    run_peer.py get URL                         prints the file
    run_peer.py asyncio-server HOST PORT        sends received data back
    run_peer.py asyncio-clients HOST PORT N     so many at the same time, each with a megabyte
    run_peer.py loopback | loopback6            a server and a client on it
    run_peer.py keeps HOST                      options, flags and epoll of a socket outlast connect()
    run_peer.py duplicates HOST                 the effect of connect() on a socket, its duplicate, and a child
    run_peer.py special HOST                    with options that EXS does not have
    run_peer.py once HOST                       an error of TCP after a fallback is reported, a bound socket stays so
    run_peer.py strict HOST                     connects where a filter allows few system calls
    run_peer.py bound HOST PEER PORT            is bound to HOST, without a port, and prints its address when connected
    run_peer.py start PROGRAM ARGUMENT...       starts it by each of the C library's functions, whose name it prints first

Emulated machines take seconds to import Python's larger modules, so only programs that need them do.
"""
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys

BYTES = 1 << 20


def until_end(sock, size=1 << 16):
    while data := sock.recv(size):
        yield data


def get(url):
    host, path = url.removeprefix("http://").split("/", 1)
    host, port = host.split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = b"".join(until_end(sock)).partition(b"\r\n\r\n")
    assert head.split()[1] == b"200", head
    sys.stdout.buffer.write(body)


def serve_files(host, port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen()
    print("Serving", flush=True)
    while True:
        sock, _ = listener.accept()
        with sock:
            request = b""
            while not request.endswith(b"\r\n\r\n") and (data := sock.recv(1 << 16)):
                request += data
            if not request:
                continue
            sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            with open(request.split()[1].decode().lstrip("/"), "rb") as file:
                sock.sendfile(file)


async def echo(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(host, port):
    import asyncio
    server = await asyncio.start_server(echo, host, port)
    print("Serving", flush=True)
    await server.serve_forever()


async def client(host, port):
    import asyncio
    reader, writer = await asyncio.open_connection(host, port)
    data = os.urandom(BYTES)

    async def send():
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    back, _ = await asyncio.gather(reader.read(-1), send())
    assert back == data, f"{len(back)} bytes came back"
    writer.close()


async def clients(host, port, number):
    import asyncio
    await asyncio.gather(*(client(host, port) for _ in range(number)))


def loopback(family, host):
    with socket.socket(family, socket.SOCK_STREAM) as listener, socket.socket(family, socket.SOCK_STREAM) as one:
        listener.bind((host, 0))
        port = listener.getsockname()[1]
        listener.listen()
        assert listener.getsockname()[1] == port
        one.connect((host, port))
        other, _ = listener.accept()
        with other:
            one.sendall(b"hello")
            assert other.recv(5, socket.MSG_WAITALL) == b"hello"


SO_PEEK_OFF, SO_ZEROCOPY, IP_BIND_ADDRESS_NO_PORT = 42, 60, 24
SO_RXQ_OVFL, SO_SELECT_ERR_QUEUE, SO_PREFER_BUSY_POLL, SO_RCVMARK, TCP_INQ = 40, 45, 69, 75, 36

SETTINGS = [
    (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77),
    (socket.SOL_SOCKET, socket.SO_BROADCAST, 1),
    (socket.IPPROTO_IP, socket.IP_RECVTOS, 1),
    (socket.SOL_SOCKET, SO_RXQ_OVFL, 1),
    (socket.SOL_SOCKET, SO_SELECT_ERR_QUEUE, 1),
    (socket.SOL_SOCKET, SO_PREFER_BUSY_POLL, 1),
    (socket.SOL_SOCKET, SO_RCVMARK, 1),
    (socket.IPPROTO_TCP, TCP_INQ, 1),
]
# TCP has the first, and EXS the second.
if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 9):
    SETTINGS += [(socket.SOL_SOCKET, SO_PEEK_OFF, 7), (socket.SOL_SOCKET, SO_ZEROCOPY, 1)]


def is_set(sock, level, name, value):
    got = sock.getsockopt(level, name)
    return got == value if name == SO_PEEK_OFF else bool(got)


def read_settings(sock):
    return [is_set(sock, *setting) for setting in SETTINGS] + [
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), sock.getsockname(),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)] + [
        fcntl.fcntl(sock, what) for what in (fcntl.F_GETFL, fcntl.F_GETFD, fcntl.F_GETOWN, fcntl.F_GETSIG)]


SOL_EXS, EXS_SO_FELL_BACK, EXS_FELL_BACK_RULE = 0x4558, 19, 13


def is_exs(sock):
    """Also one that fell back because its peer has no listener."""
    try:
        return sock.getsockopt(SOL_EXS, EXS_SO_FELL_BACK) != EXS_FELL_BACK_RULE
    except OSError:
        return False


def signals(number):
    """A descriptor from which its signals are read."""
    import ctypes
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    mask = (1 << (number - 1)).to_bytes(128, "little")
    return ctypes.CDLL(None).signalfd(-1, mask, 0)


def signalled(fd):
    """The descriptor that the next signal names."""
    return int.from_bytes(os.read(fd, 128)[20:24], "little")


def keeps(host):
    """The listener is of the other kind at first, and is exchanged in turn: it is bound as it was."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((host, 7061))
    listener.listen()
    assert listener.getsockname() == (host, 7061)
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    for setting in SETTINGS:
        sock.setsockopt(*setting)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\5\0\0\0")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50000)
    fcntl.fcntl(sock, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sock, fcntl.F_SETSIG, signal.SIGUSR1)
    told = signals(signal.SIGUSR1)
    fcntl.fcntl(sock, fcntl.F_SETFL, fcntl.fcntl(sock, fcntl.F_GETFL) | os.O_ASYNC)
    sock.bind((host, 7062))
    was_exs = is_exs(sock)
    before = read_settings(sock)
    poll = select.epoll()
    poll.register(sock, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
    poll.poll(0)
    sock.connect_ex((host, 7063))
    assert is_exs(sock) != was_exs, "it is what it was"
    after = read_settings(sock)
    assert before == after, f"{before} became {after}"
    events = poll.poll(10)
    assert events and events[0][0] == sock.fileno(), f"{events}: nobody listened there"
    assert signalled(told) == sock.fileno(), "the signal names another descriptor"


def is_connected(sock):
    try:
        return bool(sock.getpeername())
    except OSError:
        return False


def duplicates(host):
    """The protocols of both, and whether the duplicate, and a child's, are connected, too."""
    listener, sock = (socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(2))
    listener.bind((host, 0))
    listener.listen()
    twin = sock.dup()
    go, come = os.pipe()
    if not (child := os.fork()):
        os.read(go, 1)
        os._exit(is_connected(sock))
    sock.connect(listener.getsockname())
    os.write(come, b"x")
    of_child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert is_connected(sock)
    print(*(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) for s in (sock, twin)), is_connected(twin), bool(of_child))


def special(host):
    """With a filter; for foreign addresses; of packets from the same link only; with an algorithm of its own."""
    import ctypes
    nothing = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 0, 0]))
    prog = struct.pack("HP", 1, ctypes.addressof(nothing))
    for level, name, value in ((socket.SOL_SOCKET, 26, prog), (socket.IPPROTO_IP, 19, 1), (socket.IPPROTO_IP, 21, 255),
                               (socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(level, name, value)
        sock.connect_ex((host, 7063))
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
        assert not is_exs(sock), "it is EXS"


def once(host):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    assert sock.connect_ex((host, 7063)) == errno.EINPROGRESS
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    poll.poll()
    got = sock.connect_ex((host, 7063))
    assert got == errno.ECONNREFUSED, f"the second connect() says {os.strerror(got)}"
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, "the child cannot listen"
    else:
        listener.listen()
        os._exit(0)


def kill_if(number):
    """From now on that system call kills (seccomp(2): load its number, compare, kill or allow)."""
    import ctypes
    program = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)))
    code = ctypes.create_string_buffer(program)
    filter_ = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.prctl(38, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS"
    assert not libc.prctl(22, 2, filter_, 0, 0), os.strerror(ctypes.get_errno())


def strict(host):
    """Without process_vm_readv(2), which is in few lists; an unreadable address is still an error."""
    import ctypes
    kill_if(310)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((host, 0))
    listener.listen()
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.connect(listener.getsockname())
    libc = ctypes.CDLL(None, use_errno=True)
    other = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    assert libc.connect(other.fileno(), ctypes.c_void_p(8), 16) == -1
    assert ctypes.get_errno() == errno.EFAULT, os.strerror(ctypes.get_errno())


def bound(host, peer, port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    sock.bind((host, 0))
    sock.connect((peer, port))
    print(sock.getsockname()[0])


def strings(words):
    import ctypes
    words = [word.encode() for word in words]
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def start_by(how, program, args):
    """In this process or, by posix_spawn, in a child. Returns the error."""
    import ctypes
    import shutil
    libc = ctypes.CDLL(None, use_errno=True)
    searches = how in ("execvp", "execlp", "execvpe", "posix_spawnp")
    path = (program if searches else shutil.which(program) or program).encode()
    argv = strings([program, *args])
    envp = strings(f"{name}={value}" for name, value in (os.environ | {"A": "given"}).items())
    if how.startswith("posix_spawn"):
        pid = ctypes.c_int()
        error = getattr(libc, how)(ctypes.byref(pid), path, None, None, argv, envp)
        if not error:
            os.waitpid(pid.value, 0)
        return error
    getattr(libc, how)(path, *(argv if how.startswith("execl") else [argv]), *([envp] if "e" in how[4:] else []))
    return ctypes.get_errno()


def start(program, *args):
    """A is "mine" where the function is not given an environment."""
    os.environ["A"] = "mine"
    for how in ("execv", "execvp", "execl", "execlp", "execve", "execvpe", "execle", "posix_spawn", "posix_spawnp"):
        print(how, flush=True)
        if not (pid := os.fork()):
            if error := start_by(how, program, args):
                print(os.strerror(error), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


def main(args):
    match args:
        case ["get", url]:
            get(url)
        case ["serve", host, port]:
            serve_files(host, int(port))
        case ["asyncio-server", host, port]:
            import asyncio
            asyncio.run(serve(host, int(port)))
        case ["asyncio-clients", host, port, number]:
            import asyncio
            asyncio.run(clients(host, int(port), int(number)))
        case ["loopback"]:
            loopback(socket.AF_INET, "127.0.0.1")
        case ["loopback6"]:
            loopback(socket.AF_INET6, "::1")
        case ["keeps", host]:
            keeps(host)
        case ["duplicates", host]:
            duplicates(host)
        case ["special", host]:
            special(host)
        case ["once", host]:
            once(host)
        case ["strict", host]:
            strict(host)
        case ["bound", host, peer, port]:
            bound(host, peer, int(port))
        case ["start", program, *words]:
            start(program, *words)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
