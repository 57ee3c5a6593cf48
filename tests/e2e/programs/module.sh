#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module: loading, unloading, its number. tests/vm/settle loads it again afterwards.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
MODULE=$EXS_MODULE
TESTS=$TOP/build/tests/e2e

loaded()
{
	[ -d /sys/module/exs ]
}

unused()
{
	[ "$(cat /sys/module/exs/refcnt)" = 0 ]
}

# An object that is gone may hold the module for a moment more.
unload()
{
	loaded || return 0
	wait_for "the module to be unused" unused
	rmmod exs
}

reload()
{
	must unload
	must insmod "$MODULE" "$@"
}

# rounds N: so often; less where everything is slow.
rounds()
{
	seq $(($1 > EXS_SLOW ? $1 / EXS_SLOW : 1))
}

case_loops()
{
	for _ in $(rounds 10); do
		reload
	done
	must "$TESTS/sockets" connect_blocking@stream
}

# Work right before each unloading: deferred work must be over.
case_loops_with_work()
{
	for _ in $(rounds 3); do
		reload
		must "$TESTS/data" close_delivers@stream half_close@seqpacket
		must "$TESTS/transfer" direct@stream direct@seqpacket
		must "$TESTS/queue" process_killed@stream
	done
	must unload
}

case_in_use_refused()
{
	reload
	exs-cp --listen -b 10.77.0.1 out 2> receiver.err &
	wait_for "the receiver" grep -q "listening on" receiver.err
	must_end 1 rmmod exs
	loaded || fail "unloaded while in use"
	kill $!
	wait_for "unloading" rmmod exs
}

case_other_number()
{
	reload family=26
	must "$TESTS/sockets" create@stream connect_blocking@stream
	must "$TESTS/transfer" direct@stream
	[ "$(cat /sys/module/exs/parameters/family)" = 26 ] || fail "family is not 26"
}

# AF_INET, AF_UNIX: taken. The module reports that and does not load.
case_number_taken()
{
	local number

	must unload
	for number in 1 2 10; do
		must_end 1 insmod "$MODULE" family=$number
		loaded && fail "loaded with family=$number"
	done
	reload
	must "$TESTS/sockets" create@stream
}

case_number_wrong()
{
	local number

	must unload
	for number in -1 0 46 1000 99999999; do
		must_end 1 insmod "$MODULE" "family=$number"
		loaded && fail "loaded with family=$number"
	done
	reload
}

case_other_protocol()
{
	reload protocol=257
	must python3 -c 'import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 257)'
	must_end 1 python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 261)'
	reload protocol=0
	must_end 1 python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 261)'
	must exs-run -v python3 -c 'import socket; socket.socket()'
	[[ $OUT = *"protocol=0"* ]] || fail "exs-run says: $OUT"
	must "$TESTS/sockets" create@stream
}

# Programs that try meanwhile get no socket of a module that is going away again.
try_sockets()
{
	exec python3 -c '
import socket
while True:
    for args in (25, socket.SOCK_STREAM, 0), (socket.AF_INET, socket.SOCK_STREAM, 261):
        try:
            socket.socket(*args).close()
        except OSError:
            pass'
}

# RAW, SMC, MPTCP and numbers that are no protocol.
case_protocol_wrong()
{
	local number trying

	must unload
	try_sockets &
	trying=$!
	for number in -1 6 255 256 262 263 1000; do
		must_end 1 insmod "$MODULE" "protocol=$number"
		loaded && fail "loaded with protocol=$number"
	done
	kill $trying
	reload
	must "$TESTS/sockets" create@inet
}

# An unprivileged socket() must not load code.
case_no_autoload()
{
	must unload
	must_end 1 python3 -c 'import socket; socket.socket(25, socket.SOCK_STREAM)'
	must_end 1 python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 261)'
	loaded && fail "socket() loaded the module"
	must_end 1 exs-cp /etc/hostname 10.77.0.1
	case $OUT in
	*"not loaded"*) ;;
	*) fail "exs-cp says: $OUT" ;;
	esac
	return 0
}

case_without_device()
{
	must unload
	must rdma link delete rxe0
	must insmod "$MODULE"
	OUT=$("$TESTS/sockets" create@stream 2>&1) || { restore_device; fail "$OUT"; }
	restore_device
	must "$TESTS/sockets" connect_blocking@stream
}

restore_device()
{
	must rdma link add rxe0 type rxe netdev rxe0dev
}

# The device is gone when the module is.
case_device_and_module()
{
	for _ in $(rounds 3); do
		reload
		must "$TESTS/sockets" connect_blocking@stream
		wait_for "the module to be unused" unused
		rdma link delete rxe0 &
		must rmmod exs
		wait $!
		restore_device
	done
}

case_cleans_up()
{
	reload
	must unload
	[ ! -e /proc/net/exs ] || fail "/proc/net/exs is still there"
	[ ! -e /proc/sys/net/exs ] || fail "/proc/sys/net/exs is still there"
	! grep -q '^exs' /proc/slabinfo || fail "a slab cache is still there"
}

run_cases "$@"
