#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# exs-run: unmodified programs. Data arrive unchanged, and counters show by which protocol.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
HOST=10.77.0.1
PORT=7060
MODULE=$EXS_MODULE
PEER=$TOP/tests/e2e/programs/run_peer.py
WHICH='import socket; print(socket.socket().getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))'
MULTIPATH='from socket import *; s = socket(AF_INET, SOCK_STREAM, 262); s.listen(); print(s.getsockopt(SOL_SOCKET, 38))'

# serve COMMAND...: a file server in this directory, on $PORT, that exs-run or nothing starts; its process is $SERVER.
serve()
{
	head -c 1000000 /dev/urandom > file
	"$@" > server.out 2> server.err &
	SERVER=$!
}

serve_python()
{
	serve "$@" python3 "$PEER" serve $HOST $PORT
	wait_for "the server" grep -q "^Serving" server.out
}

# gets COMMAND...: a client, which gets the URL, prints the file.
gets()
{
	"$@" "http://$HOST:$PORT/file" > got 2> client.err || fail "$*: $(tail -n 3 client.err)"
	must cmp got file
}

# Nothing uses the module then.
end_server()
{
	kill "$SERVER"
	ended "$SERVER" 143
	wait_for "the module to be unused" grep -qx 0 /sys/module/exs/refcnt
}

# connected COMMAND...: prints how many connections of EXS came up meanwhile.
connected()
{
	local before

	before=$(counter connects)
	"$@"
	CONNECTED=$(($(counter connects) - before))
}

must_connect()
{
	local want=$1

	shift
	connected "$@"
	[ "$CONNECTED" = "$want" ] || fail "$CONNECTED connections of EXS, not $want: $(cat ./*.err)"
}

err_has()
{
	grep -q -e "$2" "$1" || fail "no '$2' in $1: $(cat "$1")"
}

# Python's own server; a small one does for what follows.
case_http()
{
	serve exs-run -v python3 -u -m http.server -b $HOST $PORT
	wait_for "the server" grep -q "^Serving" server.out
	must_connect 1 gets exs-run -v python3 "$PEER" get
	err_has client.err 'socket [0-9]*: EXS: exs$'
	err_has server.err 'socket [0-9]*: EXS: exs$'
	err_has server.err 'socket [0-9]*: EXS: accepted$'
}

case_asyncio()
{
	serve exs-run python3 "$PEER" asyncio-server $HOST $PORT
	wait_for "the server" grep -q "^Serving" server.out
	must_connect 8 must exs-run python3 "$PEER" asyncio-clients $HOST $PORT 8
	# And without EXS.
	must_connect 0 must python3 "$PEER" asyncio-clients $HOST $PORT 8
}

case_children()
{
	serve_python exs-run
	must_connect 1 gets exs-run sh -c 'python3 "$1" get "$2"; exit $?' - "$PEER"
}

# With -v, a child without preload is reported.
case_static_child()
{
	must exs-run -v sh -c 'busybox true; exec busybox true'
	[[ $OUT = *"busybox: nothing is preloaded: it is statically linked"*"busybox: nothing is"* ]] ||
		fail "it says: $OUT"
	must exs-run sh -c 'busybox true'
	[ -z "$OUT" ] || fail "it says: $OUT"
}

# starts_all PROGRAM LINE: by each function that starts programs LINE is printed. The program then has its arguments, and
# the environment that it was given.
starts_all()
{
	local how value

	# shellcheck disable=SC2016
	must exs-run -v python3 "$PEER" start "$1" sh -c 'echo "$A $1"' - word
	for how in execv execvp execl execlp execve execvpe execle posix_spawn posix_spawnp; do
		value=mine
		[[ $how = execv || $how = execvp || $how = execl || $how = execlp ]] || value=given
		[[ $OUT$'\n' =~ (^|$'\n')$how$'\n'$2$value\ word$'\n' ]] || fail "by $how it says: $OUT"
	done
}

case_static_child_by_each()
{
	starts_all busybox "exs-run: python3[^ ]*: [^ ]*busybox: nothing is preloaded: it is statically linked"$'\n'
	mkdir -p bin
	# Neither of them has a line.
	printf '#!/bin/sh\nexec "$@"\n' > bin/run-it
	chmod +x bin/run-it
	PATH=$PATH:$PWD/bin starts_all run-it ""
	must exs-run -v python3 "$PEER" start nothing-there
	[ "$(grep -c "No such file" <<< "$OUT")" = 9 ] && [[ $OUT != *"is preloaded"* ]] || fail "it says: $OUT"
}

case_client_alone()
{
	serve_python
	must_connect 0 gets exs-run -v python3 "$PEER" get
	err_has client.err 'EXS: exs$'
	err_has client.err 'TCP: fell back: the peer refused'
}

case_server_alone()
{
	local tcp

	tcp=$(counter accepts_tcp)
	serve_python exs-run -v
	must_connect 0 gets python3 "$PEER" get
	must_connect 1 gets exs-run python3 "$PEER" get
	[ $(($(counter accepts_tcp) - tcp)) = 1 ] || fail "no connection of TCP's was accepted"
	if grep "fell back" server.err; then fail "the server fell back"; fi
}

# One that does not wait in connect().
case_asyncio_alone()
{
	serve python3 "$PEER" asyncio-server $HOST $PORT
	wait_for "the server" grep -q "^Serving" server.out
	must_connect 0 must exs-run -v python3 "$PEER" asyncio-clients $HOST $PORT 8
	[[ $OUT = *"fell back: the peer refused"* ]] || fail "it says: $OUT"
}

# Without the module, and while it is off, everything goes on by TCP.
case_no_module()
{
	sysctl -qw net.exs.enabled=0
	serve_python exs-run -v
	must_connect 0 gets exs-run -v python3 "$PEER" get
	sysctl -qw net.exs.enabled=1
	err_has server.err 'TCP: fell back: net.exs.enabled is 0'
	err_has client.err 'TCP: fell back: net.exs.enabled is 0'
	must_connect 0 gets python3 "$PEER" get
	end_server
	must rmmod exs
	serve_python exs-run
	gets exs-run -v python3 "$PEER" get
	must insmod "$MODULE"
	err_has client.err 'TCP: exs: .*not loaded'
}

# A number that is not the default.
case_other_number()
{
	must rmmod exs
	must insmod "$MODULE" protocol=258
	serve_python exs-run
	must_connect 1 gets exs-run python3 "$PEER" get
	end_server
	# The tests that follow have the default.
	must rmmod exs
	must insmod "$MODULE"
}

case_rule_connect()
{
	serve_python
	must_connect 0 gets exs-run -v -r "tcp connect address 10.77.0.0/24 port $PORT" python3 "$PEER" get
	err_has client.err 'EXS: exs$'
	err_has client.err "TCP: tcp connect address 10.77.0.0/24 port $PORT"
}

# TCP at first, and EXS where a rule says so.
case_rule_exception()
{
	printf '# one port\nexs port %s\ntcp\n' $PORT > rules
	serve_python exs-run -v -f rules
	err_has server.err 'TCP: tcp$'
	err_has server.err "EXS: exs port $PORT"
	must_connect 1 gets exs-run -f rules python3 "$PEER" get
}

case_rule_listen()
{
	serve_python exs-run -r 'tcp listen port 7000-7100'
	must_connect 0 gets python3 "$PEER" get
}

case_rule_program()
{
	serve_python exs-run -v -r 'tcp program python3*'
	must_connect 0 gets python3 "$PEER" get
	err_has server.err 'TCP: tcp program'
}

# There is no RDMA device.
case_loopback()
{
	must_connect 0 must exs-run python3 "$PEER" loopback
	must_connect 0 must exs-run python3 "$PEER" loopback6
}

# A listener that is bound, and exchanged for the other kind, has its port.
case_exchange_bound()
{
	must_connect 0 must exs-run -r 'exs listen' -r tcp python3 "$PEER" loopback
	must_connect 0 must exs-run -r 'tcp listen' -r 'tcp connect' python3 "$PEER" loopback
	must_connect 0 must exs-run -r exs python3 "$PEER" loopback6
}

# The address cannot be bound again: it stays TCP.
case_exchange_unprivileged()
{
	must exs-run -v -r 'exs listen' -r tcp python3 -c '
import os, socket
sock = socket.socket()
sock.bind(("10.77.0.1", 77))
os.setuid(65534)
sock.listen()
socket.create_connection(("10.77.0.1", 77), 10).close()
sock.accept()'
	[[ $OUT = *"TCP"*"cannot have its address"* ]] || fail "it says: $OUT"
}

# Options that were set stay set, and epoll sets that had the old socket have the new one.
case_exchange_keeps()
{
	must exs-run -r 'tcp connect' python3 "$PEER" keeps $HOST
	must exs-run -r 'exs connect' -r tcp python3 "$PEER" keeps $HOST
}

# Of the socket: the kernel makes TCP of it for all that have it, but another takes its place for one descriptor only.
case_exchange_duplicates()
{
	must exs-run python3 "$PEER" duplicates $HOST
	[ "$OUT" = "261 261 True True" ] || fail "it is $OUT"
	must exs-run -r 'tcp connect' python3 "$PEER" duplicates $HOST
	[ "$OUT" = "6 6 True True" ] || fail "to TCP it is $OUT"
	must exs-run -r 'exs connect' -r 'exs listen' -r tcp python3 "$PEER" duplicates $HOST
	[ "$OUT" = "261 6 False False" ] || fail "to EXS it is $OUT"
}

# After a fallback it is TCP's.
case_fallback_is_final()
{
	must exs-run python3 "$PEER" once $HOST
}

case_few_calls()
{
	must exs-run -v python3 "$PEER" strict $HOST
	[[ $OUT = *"EXS: exs"* ]] || fail "it says: $OUT"
}

# Sockets with options that only TCP has stay TCP.
case_special()
{
	must exs-run -v -r 'exs connect' -r tcp python3 "$PEER" special $HOST
	[[ $OUT = *"TCP"*"EXS does not have one of its options"* ]] || fail "it says: $OUT"
}

# If the epoll set of a descriptor is not known, the socket does not change.
case_high_descriptor()
{
	must exs-run -v -r 'exs connect' -r tcp python3 -c '
import fcntl, os, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (80000, 80000))
sock = socket.socket(fileno=fcntl.fcntl(socket.socket(), fcntl.F_DUPFD, 70000))
sock.connect_ex(("10.77.0.1", 7063))'
	[[ $OUT = *"socket 70000: TCP"*"epoll set is not known"* ]] || fail "it says: $OUT"
}

# Nor does one in two sets; it stays in both.
case_several_sets()
{
	must exs-run -v -r 'exs connect' -r tcp python3 -c '
import select, socket
sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
sets = [select.epoll() for i in range(2)]
for one in sets:
    one.register(sock, select.EPOLLOUT)
sock.connect_ex(("10.77.0.1", 7063))
for one in sets:
    assert one.poll(10)[0][0] == sock.fileno()'
	[[ $OUT = *": TCP"*"it is in several"* ]] || fail "it says: $OUT"
}

# An address alone, of two: the port comes with the connection.
case_exchange_address()
{
	must ip addr add 10.77.0.5/24 dev rxe0dev
	serve_python exs-run
	must_connect 1 must exs-run -r 'exs connect address 10.77.0.0/24' -r tcp python3 "$PEER" bound 10.77.0.5 $HOST $PORT
	[ "$OUT" = 10.77.0.5 ] || fail "it is $OUT"
	must ip addr del 10.77.0.5/24 dev rxe0dev
}

# All rules are one list, which has an end.
case_too_many_rules()
{
	seq -f 'exs port %g' 150 > rules
	must_end 2 exs-run -f rules -f rules true
	[[ $OUT = *"too many rules"* ]] || fail "it says: $OUT"
	must exs-run -f rules true
}

# It has a linker, which preloads; but a mark of Go's programs makes it one of those.
make_go()
{
	must objcopy --add-section .go.buildinfo=/dev/null "$(command -v python3)" go
}

# For an ordinary user none is changed, and each is reported with the reason.
case_not_preloaded()
{
	chmod a+rx .
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run busybox true
	[[ $OUT = *"statically linked, so its sockets stay TCP"* ]] || fail "it says: $OUT"
	make_go
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./go -c ''
	[[ $OUT = *"written in Go, so its sockets stay TCP"* ]] || fail "it says: $OUT"
	cp "$(command -v python3)" python
	chmod u+s,a+rx python
	stays_tcp "it is set-user-ID"
	printf '#!%s/python\n' "$PWD" > script
	chmod +x script
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./script
	[[ $OUT = *"set-user-ID"* ]] || fail "it says: $OUT"
	chmod u-s,g+s python
	stays_tcp "it is set-group-ID"
	chmod g-s python
	must setcap cap_chown+ep python
	stays_tcp "it has file capabilities"
	must setcap -r python
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./python -c "$WHICH"
	[ "$OUT" = 261 ] || fail "of an ordinary program it says: $OUT"
}

# stays_tcp WHY: the program of an ordinary user, in which the linker preloads nothing, and which has more rights than
# the user.
stays_tcp()
{
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./python -c "$WHICH"
	[[ $OUT = *"./python: $1, so its sockets stay TCP: see --cgroup"*6 ]] || fail "it says: $OUT"
}

# It is the library that reads these.
case_environment()
{
	local library

	# shellcheck disable=SC2016
	library=$(exs-run sh -c 'echo "$LD_PRELOAD"')
	must env LD_PRELOAD="$library" EXS_DEBUG=1 python3 -c "$WHICH"
	[[ $OUT = *"EXS: exs"*261 ]] || fail "it says: $OUT"
	must env LD_PRELOAD="$library" EXS_DEBUG=0 python3 -c "$WHICH"
	[ "$OUT" = 261 ] || fail "with EXS_DEBUG=0 it says: $OUT"
	must env LD_PRELOAD="$library" EXS_PROTOCOL=258 EXS_DEBUG= python3 -c "$WHICH"
	[ "$OUT" = 6 ] || fail "with a number that nobody has it says: $OUT"
	must env LD_PRELOAD="$library" EXS_RULES=$'exs port 1\ntcp' python3 -c "$WHICH"
	[ "$OUT" = 6 ] || fail "with rules it says: $OUT"
}

case_usage()
{
	must_end 2 exs-run
	must_end 2 exs-run -r 'tcp port 70000' true
	[[ $OUT = *"'port'"* ]] || fail "it says: $OUT"
	must_end 2 exs-run --system -r tcp
	must_end 2 exs-run --cgroup=/sys/fs/cgroup true
	must_end 1 exs-run -f nothing-there true
	must_end 127 exs-run ./nothing-there
	[[ $OUT = *"nothing-there: No such file or directory: check the name" ]] || fail "it says: $OUT"
	must_end 3 exs-run -v sh -c 'exit 3'
}

# -- whole cgroups

has_hook()
{
	grep -q ' update_socket_protocol$' /proc/kallsyms
}

# A cgroup, $CGROUP, where the kernel can do that.
use_cgroups()
{
	mountpoint -q /sys/fs/bpf || must mount -t bpf bpf /sys/fs/bpf
	mountpoint -q /sys/fs/cgroup || must mount -t cgroup2 cgroup2 /sys/fs/cgroup
	has_hook || skip "this kernel has no hook for BPF programs in socket(2)"
	[ -e /sys/kernel/btf/vmlinux ] || skip "this kernel does not describe its types (BTF)"
	CGROUP=/sys/fs/cgroup/$1
	mkdir -p "$CGROUP/below"
	trap 'exs-run --off' EXIT
}

in_cgroup()
{
	# shellcheck disable=SC2016
	sh -c 'echo 0 > "$1/cgroup.procs"; shift; exec "$@"' - "$@"
}

# The effect on IPPROTO_MPTCP.
case_multipath()
{
	must exs-run python3 -c "$MULTIPATH"
	[ "$OUT" = 261 ] || fail "it is $OUT"
	must exs-run -r 'exs listen' -r tcp python3 -c "$MULTIPATH"
	[ "$OUT" = 261 ] || fail "with rules it is $OUT"
}

# Without options: exs-run takes the way that works. It ends with the program.
case_static()
{
	use_cgroups static-alone
	serve exs-run -v busybox httpd -f -p $HOST:$PORT
	wait_for "the server" exs-run busybox nc $HOST $PORT -e true
	err_has server.err "busybox: it is statically linked, so BPF makes all its sockets EXS"
	must_connect 1 gets exs-run busybox wget -q -O -
	must_connect 0 gets busybox wget -q -O -
	must exs-run --status
	[[ $OUT != *exs-run-* ]] || fail "it says: $OUT"
	# Rules do not apply, wherever they come from.
	must_connect 0 gets exs-run -r exs busybox wget -q -O -
	err_has client.err "so its sockets stay TCP: rules need a preloaded library"
	must_connect 0 gets env EXS_RULES=exs exs-run busybox wget -q -O -
	err_has client.err "so its sockets stay TCP: rules need a preloaded library"
	must_connect 1 gets env EXS_RULES= exs-run busybox wget -q -O -
	make_go
	must_connect 1 gets exs-run ./go "$PEER" get
	cp "$(command -v python3)" python
	must chgrp nogroup python
	must chmod g+s,a+rx python
	must exs-run -v ./python -c "$WHICH"
	[[ $OUT = *"it is set-group-ID, so BPF makes all its sockets EXS"*261 ]] || fail "it says: $OUT"
	[ "$(own_groups)" = 1 ] || wait_for "the cgroups of the clients to go" groups_are 1
	end_server
	wait_for "the server's cgroup to go" groups_are 0
}

own_groups()
{
	find /sys/fs/cgroup -name 'exs-run-*' | wc -l
}

groups_are()
{
	[ "$(own_groups)" = "$1" ]
}

# A program that starts others so, one of which stays: a cgroup ends with the last process in it, whichever process
# started that.
case_static_nested()
{
	use_cgroups static-nested
	mkfifo fifo
	# It inherits EXS, so it needs no cgroup of its own.
	must exs-run busybox sh -c 'exs-run -v busybox sh -c "read x < fifo" > nested.err 2>&1 &'
	wait_for "the nested start" grep "BPF makes all its sockets EXS" nested.err
	groups_are 1 || fail "$(own_groups) cgroups, not one"
	echo > fifo
	wait_for "the cgroup to go" groups_are 0
}

# However exs-run was started, and whichever cgroups the program leaves behind.
case_static_leaves()
{
	local make='d=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup) && mkdir -p $d/of/its && ls -d $d/of/its'

	use_cgroups static-leaves
	OUT=$(trap '' CHLD; exs-run -v busybox sh -c "$make" 2>&1) || fail "it says: $OUT"
	[[ $OUT = *"so BPF makes all its sockets EXS"*/of/its ]] || fail "it says: $OUT"
	wait_for "the cgroups to go" groups_are 0
	OUT=$(unshare --pid --fork exs-run busybox true 2>&1) || fail "it says: $OUT"
	[[ $OUT = *"run exs-run --cgroup outside of the container"* ]] || fail "it says: $OUT"
}

# A program that cannot be run leaves no cgroup; one that can have no cgroup runs all the same.
case_static_fails()
{
	use_cgroups static-fails
	cp "$(command -v busybox)" no-program
	chmod a-x no-program
	must_end 126 exs-run -v ./no-program
	[[ $OUT = *"so BPF makes all its sockets EXS"* ]] || fail "it says: $OUT"
	wait_for "the cgroup to go" groups_are 0
	echo 0 > "$CGROUP/cgroup.max.descendants"
	must in_cgroup "$CGROUP" exs-run busybox true
	[[ $OUT = *"so its sockets stay TCP: see --cgroup"* ]] || fail "it says: $OUT"
	groups_are 0 || fail "$(own_groups) cgroups are left"
}

# The kernel has room for a number of them: the next one fails with the reason, and with advice.
hand_static_many()
{
	local i

	use_cgroups static-many
	for i in {1..60}; do
		mkdir -p "$CGROUP/$i"
		exs-run --cgroup="$CGROUP/$i" 2> many.err || break
	done
	[ "$i" -lt 60 ] || fail "there is room for 60"
	err_has many.err "the kernel has no room for more at update_socket_protocol"
	err_has many.err "use --cgroup once"
	must exs-run busybox true
	[[ $OUT = *"no room for more"*"so its sockets stay TCP: see --cgroup"* ]] || fail "it says: $OUT"
	groups_are 0 || fail "$(own_groups) cgroups are left"
	must exs-run --off
}

# Both are one static program.
case_static_in_cgroup()
{
	use_cgroups static
	must exs-run --cgroup="$CGROUP"
	must exs-run --status
	[[ $OUT = *ready*exs-run-cgroup-*": $CGROUP" ]] || fail "it says: $OUT"
	must chmod 700 /sys/fs/bpf			# as systemd mounts it
	must_end 1 setpriv --reuid nobody --regid nogroup --clear-groups exs-run --status
	[[ $OUT = *"run it as root"* ]] || fail "it says: $OUT"
	serve in_cgroup "$CGROUP/below" busybox httpd -f -p $HOST:$PORT
	wait_for "the server" in_cgroup "$CGROUP" busybox nc $HOST $PORT -e true
	must_connect 1 gets in_cgroup "$CGROUP" busybox wget -q -O -
	# Programs outside have TCP, as all have after the end.
	must_connect 0 gets busybox wget -q -O -
	must exs-run --off
	must_connect 0 gets in_cgroup "$CGROUP" busybox wget -q -O -
	must exs-run --status
	[[ $OUT != *exs-run-* ]] || fail "it says: $OUT"
	echo 0 > /proc/sys/net/exs/enabled
	OUT=$(exs-run --status)
	echo 1 > /proc/sys/net/exs/enabled
	[[ $OUT = *"switched off: sysctl net.exs.enabled=1"* ]] || fail "it says: $OUT"
}

is_in()
{
	must in_cgroup "$2" python3 -c "$WHICH"
	[ "$OUT" = "$1" ] || fail "in $2 it is $OUT, not $1"
}

# For one cgroup only. When the cgroup is gone, it can be turned off only for all.
case_off_for_one()
{
	use_cgroups off
	mkdir "$CGROUP/gone"
	must exs-run --cgroup="$CGROUP/below"
	must exs-run --cgroup="$CGROUP/gone"
	must exs-run --off --system
	is_in 261 "$CGROUP/below"
	must exs-run --off --cgroup="$CGROUP/below"
	is_in 6 "$CGROUP/below"
	is_in 261 "$CGROUP/gone"
	must exs-run --off --cgroup="$CGROUP/below"
	must_end 1 exs-run --off --cgroup="$CGROUP/nowhere"
	must exs-run --status
	[[ $OUT = *": $CGROUP/gone" && $OUT != *"$CGROUP/below"* ]] || fail "it says: $OUT"
	wait_for "the cgroup to be empty" rmdir "$CGROUP/gone"
	must exs-run --status
	[[ $OUT = *"exs-run-cgroup-"*"no cgroup below"* ]] || fail "it says: $OUT"
	must exs-run --off
	must exs-run --status
	[[ $OUT != *exs-run-* ]] || fail "it says: $OUT"
}

# Without the module, sockets are TCP.
case_system_without_module()
{
	use_cgroups system
	must exs-run --system
	must exs-run --system
	serve busybox httpd -f -p $HOST:$PORT
	wait_for "the server" busybox nc $HOST $PORT -e true
	must_connect 1 gets busybox wget -q -O -
	end_server
	must rmmod exs
	must exs-run --status
	[[ $OUT = "protocol 261: module exs is not loaded: modprobe exs"* ]] || fail "it says: $OUT"
	must exs-run --system
	[[ $OUT = *"sockets stay TCP: module exs is not loaded: modprobe exs" ]] || fail "it says: $OUT"
	serve busybox httpd -f -p $HOST:$PORT
	wait_for "the server" busybox nc $HOST $PORT -e true
	gets busybox wget -q -O -
	must insmod "$MODULE"
	must exs-run --off --system
	must_connect 0 gets busybox wget -q -O -
}

# The rules that the guide has for a service: EXS on one port only.
case_rule_service()
{
	serve_python exs-run -r "exs listen port $PORT" -r tcp
	must_connect 1 gets exs-run -v curl -s
	must_connect 0 gets curl -s
}

case_multipath_in_cgroup()
{
	use_cgroups multipath
	must exs-run --cgroup="$CGROUP"
	must in_cgroup "$CGROUP" python3 -c "$MULTIPATH"
	[ "$OUT" = 261 ] || fail "it is $OUT"
}

case_cgroup_refused()
{
	mountpoint -q /sys/fs/bpf || must mount -t bpf bpf /sys/fs/bpf
	must_end 1 exs-run --cgroup=/tmp
	[[ $OUT = *"not a cgroup"* ]] || fail "it says: $OUT"
	if ! has_hook; then
		must_end 1 exs-run --system
		[[ $OUT = *"Linux 6.6"* ]] || fail "it says: $OUT"
		return
	fi
	must_end 1 setpriv --reuid nobody --regid nogroup --clear-groups env "PATH=$PATH" exs-run --system
	[[ $OUT = *CAP_SYSLOG* ]] || fail "it says: $OUT"
}

run_cases "$@"
