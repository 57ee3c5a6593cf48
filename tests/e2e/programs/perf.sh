#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# exs-perf: both ends end, and the client prints what was asked for.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
HOST=10.77.0.1

serve()
{
	rm -f server.err			# output of the last one
	exs-perf --listen "$@" $HOST 2> server.err &
	SERVER=$!
	wait_for "the server" grep -q "listening on" server.err
}

# says WORD: in the client's result.
says()
{
	[[ " $OUT " = *" $1 "* ]] || fail "no $1: $OUT"
}

# pingpongs [--seqpacket]
pingpongs()
{
	local size

	for size in 1 65537; do
		serve "$@"
		must exs-perf --pingpong "$@" -s $size -w 3 -n 20 $HOST
		ended $SERVER 0
		says size=$size
		says rounds=20
	done
}

# blasts [--seqpacket]
blasts()
{
	local size

	for size in 64 1048576; do
		serve "$@"
		must exs-perf --blast "$@" -s $size -d 3 -n 20 $HOST
		ended $SERVER 0
		says depth=3
		says bytes=$((20 * size))
	done
}

# within NAME MIN MAX: of a count in the client's result.
within()
{
	local value

	value=$(sed -nE "s/.* $1=([0-9.]+).*/\\1/p" <<< "$OUT ")
	[ -n "$value" ] || fail "no $1: $OUT"
	awk "BEGIN { exit !($value >= $2 && $value <= $3) }" || fail "$1 is $value, not $2 to $3"
}

# counts SIZE MIN MAX [--seqpacket]: the share of bytes that go direct, and what it takes.
counts()
{
	local size=$1 min=$2 max=$3

	shift 3
	serve "$@"
	must exs-perf --blast "$@" -s "$size" -d 4 -n 400 $HOST
	ended $SERVER 0
	within direct_percent "$min" "$max"
	# Up to 16 messages that wait together are one packet.
	within client_packets 0.05 1000
	within client_switches 0 100
	within client_cpu_usec 0.01 10000000
}

case_counts_direct() { counts 262144 1 100 --seqpacket; }
case_counts_eager() { counts 64 0 0 --seqpacket; }
case_pingpong_busy() { pingpongs --busy; }
case_pingpong_plain() { pingpongs --plain; }
case_pingpong_plain_messages() { pingpongs --plain --busy --seqpacket; }
case_pingpong() { pingpongs; }
case_pingpong_messages() { pingpongs --seqpacket; }
case_blast() { blasts; }
case_blast_messages() { blasts --seqpacket; }

# The client reports that the server has the other type of socket.
case_other_type()
{
	serve
	must_end 1 exs-perf --pingpong --seqpacket $HOST
	[[ $OUT = *"other socket type"* ]] || fail "it says: $OUT"
	kill $SERVER
}

# A client that says nothing is no reason to say nothing.
case_no_request()
{
	serve
	must exs-run bash -c ": < /dev/tcp/$HOST/7026"
	wait_for "the server" grep -q "a client without a request: .*: see what the other end says" server.err
	ended $SERVER 1
}

posted()
{
	[ "$(counter ops_posted)" -ge "$1" ]
}

# server_killed MODE: the client fails with its server.
server_killed()
{
	local client before

	serve
	before=$(counter ops_posted)
	exs-perf "$1" -t 1000 $HOST 2> client.err &
	client=$!
	wait_for "traffic" posted $((before + 500))
	kill -KILL $SERVER
	ended $SERVER 137
	ended $client 1
}

case_server_killed_pingpong() { server_killed --pingpong; }
case_server_killed_blast() { server_killed --blast; }

run_cases "$@"
