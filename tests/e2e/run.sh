#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# exs-run: programs that nobody changed. What arrives is what was sent, and the counters tell how.
set -u
# shellcheck source=lib/cases.sh
. "$(dirname "$0")/lib/cases.sh"
HOST=10.77.0.1
PORT=7060
MODULE=$TOP/build/$(uname -r)/exs.ko
PEER=$TOP/tests/e2e/run_peer.py

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

# gets COMMAND...: a client, which is told the URL, prints the file.
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
}

case_asyncio()
{
	serve exs-run python3 "$PEER" asyncio-server $HOST $PORT
	wait_for "the server" grep -q "^Serving" server.out
	must_connect 8 must exs-run python3 "$PEER" asyncio-clients $HOST $PORT 8
}

case_children()
{
	serve_python exs-run
	must_connect 1 gets exs-run sh -c 'python3 "$1" get "$2"; exit $?' - "$PEER"
}

# A peer that has no EXS is reached by TCP, and reaches us.
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

# What was set before stays set, and epoll sets that had the old one have the new one.
case_exchange_keeps()
{
	must exs-run -r 'tcp connect' python3 "$PEER" keeps $HOST
	must exs-run -r 'exs connect' -r tcp python3 "$PEER" keeps $HOST
}

# Neither is touched, and both say why.
case_not_preloaded()
{
	must_connect 0 must exs-run busybox true
	[[ $OUT = *"statically linked"* ]] || fail "it says: $OUT"
	cp "$(command -v python3)" python
	chmod u+s,a+rx python && chmod a+rx .
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./python -c ''
	[[ $OUT = *"set-user-ID"* ]] || fail "it says: $OUT"
	printf '#!%s/python\n' "$PWD" > script
	chmod +x script
	must setpriv --reuid nobody --regid nogroup --clear-groups exs-run ./script
	[[ $OUT = *"set-user-ID"* ]] || fail "it says: $OUT"
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

# Both are one static program.
case_static_in_cgroup()
{
	use_cgroups static
	must exs-run --cgroup="$CGROUP"
	must exs-run --status
	[[ $OUT = *ready*exs-run-cgroup-* ]] || fail "it says: $OUT"
	serve in_cgroup "$CGROUP/below" busybox httpd -f -p $HOST:$PORT
	wait_for "the server" in_cgroup "$CGROUP" busybox nc $HOST $PORT -e true
	must_connect 1 gets in_cgroup "$CGROUP" busybox wget -q -O -
	# Who is outside has TCP, as all have after the end.
	must_connect 0 gets busybox wget -q -O -
	must exs-run --off
	must_connect 0 gets in_cgroup "$CGROUP" busybox wget -q -O -
	must exs-run --status
	[[ $OUT != *exs-run-* ]] || fail "it says: $OUT"
}

# While the module is not there sockets are TCP's.
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
	serve busybox httpd -f -p $HOST:$PORT
	wait_for "the server" busybox nc $HOST $PORT -e true
	gets busybox wget -q -O -
	must insmod "$MODULE"
	must exs-run --off --system
	must_connect 0 gets busybox wget -q -O -
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
