#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The programs of the programmer's guide behave as it says, also where it shows no command: counters, files,
# clients that leave. letter.sh types the commands that it shows.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
HOST=10.77.0.1
PORT=7000

# serve PROGRAM ARGUMENT...: starts it, with $INPUT, and waits until it listens; its process is $SERVER.
INPUT=/dev/null
serve()
{
	command -v "$1" > /dev/null || fail "no $1: make examples"
	"$@" < $INPUT > server.out 2> server.err 9>&- &
	SERVER=$!
	wait_for "$1" grep -q listening server.err
}

make_file()
{
	head -c "$2" /dev/urandom > "$1"
}

# remember COUNTER...; then grew COUNTER prints by how much.
declare -A before
remember()
{
	local name

	for name; do
		before[$name]=$(counter "$name")
	done
}

grew()
{
	echo $(($(counter "$1") - before[$1]))
}

# grew_by COUNTER NUMBER: by exactly that.
grew_by()
{
	[ "$(grew "$1")" = "$2" ] || fail "$1 grew by $(grew "$1"), not $2"
}

# How many descriptors the server has.
descriptors()
{
	find "/proc/$SERVER/fd" -mindepth 1 | wc -l
}

# has_descriptors NUMBER: as when its clients are gone, and counted.
has_descriptors()
{
	[ "$(descriptors)" = "$1" ]
}

# served NUMBER LINE: that so many lines of the server's output begin so.
served()
{
	[ "$(grep -c "^$2" server.out)" = "$1" ]
}

# echoes CLIENT...: its data come back from the server.
echoes()
{
	# shellcheck disable=SC2016
	must sh -c 'file=$1; shift; "$@" < "$file" | cmp - "$file"' - file "$@"
}

case_echo_tcp()
{
	make_file file 300000
	serve echo-server $HOST $PORT
	remember connects
	echoes echo-client $HOST $PORT
	echoes echo-client $HOST $PORT
	grew_by connects 0
}

case_echo_exs()
{
	make_file file 300000
	serve echo-server -x fd77::1 $PORT
	remember connects indirect_tx_bytes direct_tx_bytes
	echoes echo-client -x fd77::1 $PORT
	echoes echo-client -x fd77::1 $PORT
	grew_by connects 2
	grew_by indirect_tx_bytes 1200000
	grew_by direct_tx_bytes 0
}

case_queue_server()
{
	local client

	make_file file 100000
	serve queue-server $HOST $PORT
	for client in 1 2 3 4; do
		echo-client -x $HOST $PORT < file > out.$client &
		clients+=($!)
	done
	for client in 1 2 3 4; do
		ended "${clients[client - 1]}" 0
		must cmp file out.$client
	done
}

# All of it goes from registered memory into registered memory.
case_blast()
{
	serve blast -l $HOST $PORT
	remember direct_tx_bytes oneshot_regions copied_sends
	must blast $HOST $PORT 8
	[[ $OUT = "8388608 bytes, "*" MB/s" ]] || fail "it says: $OUT"
	ended $SERVER 0
	[ "$(cat server.out)" = "8388608 bytes" ] || fail "the receiver says: $(cat server.out)"
	grew_by direct_tx_bytes 8388608
	grew_by oneshot_regions 0
	grew_by copied_sends 0
}

case_ping_pong()
{
	local mode

	for mode in notify busy adaptive; do
		serve ping-pong -l $HOST $PORT $mode
		remember eager_tx_bytes
		must ping-pong $HOST $PORT $mode 20
		[[ $OUT = "20 round trips, $mode: "*" microseconds each" ]] || fail "it says: $OUT"
		ended $SERVER 0
		grew_by eager_tx_bytes 2560
	done
}

# fetched COUNT BYTES COMMAND...: so many at the same time get the file whole, and none of it is copied; their requests
# go with their headers, and have so many bytes.
fetched()
{
	local count=$1 requests=$2 i fetchers=()

	shift 2
	remember direct_tx_bytes eager_tx_bytes
	for ((i = 0; i < count; i++)); do
		"$@" > out.$i 2> fetch.err &
		fetchers+=($!)
	done
	for ((i = 0; i < count; i++)); do
		ended "${fetchers[i]}" 0
		must cmp file out.$i
	done
	grew_by direct_tx_bytes $((count * $(stat -c %s file)))
	grew_by eager_tx_bytes "$requests"
}

case_publish()
{
	make_file file 500000
	INPUT="file" serve publish $HOST $PORT 3
	fetched 3 0 fetch $HOST $PORT
	ended $SERVER 0
}

# The other subscribers get everything when one leaves.
case_publish_to_fewer()
{
	make_file file 500000
	mkfifo pipe
	exec 9<> pipe
	INPUT=pipe serve publish $HOST $PORT 2
	fetch $HOST $PORT > out 9>&- &
	reader=$!
	echo-client -x $HOST $PORT < /dev/null	# connects, and leaves
	cat file >&9
	exec 9>&-
	ended $reader 0
	must cmp file out
}

case_epoll_server()
{
	local idle

	make_file file 100000
	serve epoll-server $HOST $PORT
	idle=$(descriptors)
	echoes echo-client -x $HOST $PORT
	echoes echo-client $HOST $PORT
	echoes echo-client -x $HOST $PORT
	wait_for "the server to notice" has_descriptors "$idle"
	kill $SERVER
	ended $SERVER 0
	[ "$(cat server.out)" = "1 by TCP, 2 by AF_EXS" ] || fail "it says: $(cat server.out)"
}

case_prefork()
{
	: > empty
	must_end 1 prefork empty $HOST $PORT 2
	[[ $OUT = *"empty: the file is empty"* ]] || fail "it says: $OUT"
	make_file file 1000000
	serve prefork file $HOST $PORT 2
	[ "$(counter live_regions)" = 1 ] || fail "$(counter live_regions) regions"
	fetched 2 0 fetch $HOST $PORT
	kill $SERVER
	ended $SERVER 143
}

# Neither side copies.
case_file_server()
{
	mkdir dir
	make_file file 1000000
	cp file dir
	: > dir/empty
	serve file-server dir $HOST $PORT
	remember file_bytes
	fetched 2 10 fetch $HOST $PORT file
	grew_by file_bytes 2000000
	must fetch $HOST $PORT empty
	must_end 1 fetch $HOST $PORT nothing-there
	must_end 1 fetch $HOST $PORT ../file
	mkfifo dir/pipe
	must_end 1 fetch $HOST $PORT pipe
	wait_for "empty to be served" served 1 "empty: 0 bytes"
	wait_for "file to be served twice" served 2 "file: 1000000 bytes"
}

# The first errors that users meet.
case_no_server()
{
	must_end 1 first $HOST
	[[ $OUT = *"$HOST: Connection refused (is the server running there?"* ]] || fail "it says: $OUT"
	must_end 1 echo-client -x $HOST $PORT
	[[ $OUT = *"$HOST: Connection refused"* ]] || fail "it says: $OUT"
	must_end 1 fetch $HOST nowhere
	[[ $OUT = *"$HOST, port nowhere: "*"(check them, or give"* ]] || fail "it says: $OUT"
}

case_cannot_listen()
{
	must_end 1 queue-server 127.0.0.1 $PORT
	[[ $OUT = *"127.0.0.1: No such device ("*"rdma link)" ]] || fail "it says: $OUT"
	serve queue-server $HOST $PORT
	must_end 1 queue-server $HOST $PORT
	[[ $OUT = *"$HOST: Address already in use ("*"choose another one)" ]] || fail "it says: $OUT"
}

run_cases "$@"
