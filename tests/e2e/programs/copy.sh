#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# exs-cp on one machine: the file arrives unchanged, or not at all.
set -u
# shellcheck source=../lib/cases.sh
. "$(dirname "$0")/../lib/cases.sh"
HOST=10.77.0.1

# make_file NAME BYTES: not compressible, another one each time.
make_file()
{
	head -c "$2" /dev/urandom > "$1"
}

# Starts a receiver and waits until it listens; its process is $RECEIVER.
receive()
{
	rm -f receiver.err			# output of the last one
	exs-cp --listen "$@" 2> receiver.err > receiver.out &
	RECEIVER=$!
	wait_for "the receiver" grep -q "listening on" receiver.err
}

# copy BYTES: one file, there and compared.
copy()
{
	mkdir in out
	make_file in/file "$1"
	receive -b $HOST out
	must exs-cp in/file $HOST
	ended $RECEIVER 0
	must cmp in/file out/file
	[ "$(ls -A out)" = file ] || fail "left behind: $(ls -A out)"
}

case_size_0() { copy 0; }

case_sizes()
{
	local size

	mkdir in out
	for size in 0 1 65535 65536 65537 262143 262144 262145 1048576 5000001; do
		make_file in/$size $size
	done
	receive -b $HOST out
	must exs-cp in/* $HOST
	ended $RECEIVER 0
	must diff -r in out
}

case_ipv6()
{
	mkdir out
	make_file file 300000
	receive -b fd77::1 out
	must exs-cp file '[fd77::1]'
	ended $RECEIVER 0
	must cmp file out/file
}

case_stdin()
{
	mkdir out
	make_file file 1234567
	receive -b $HOST out
	# shellcheck disable=SC2016
	must sh -c 'cat file | exs-cp --name piped - '$HOST
	ended $RECEIVER 0
	must cmp file out/piped
}

case_stdin_empty()
{
	mkdir out
	receive -b $HOST out
	must sh -c 'exs-cp --name nothing - '$HOST' < /dev/null'
	ended $RECEIVER 0
	[ -f out/nothing ] && [ ! -s out/nothing ] || fail "no empty file"
}

case_to_stdout()
{
	make_file file 400000
	receive -b $HOST -
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file receiver.out
}

case_to_file()
{
	make_file file 100000
	receive -b $HOST other
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file other
}

# The link stays, and its file has the sent bytes.
case_to_link()
{
	mkdir far
	make_file file 100000
	echo old > far/target
	ln -s far/target link
	receive -b $HOST link
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file far/target
	[ -L link ] || fail "the link was replaced"
	[ "$(ls -A far)" = target ] || fail "left behind: $(ls -A far)"
	ln -s far/nothing nowhere
	must_end 1 exs-cp --listen -b $HOST nowhere
	says "leads to no file"
}

# In a directory where all may write, the kernel does not follow links of other users.
case_to_link_of_other()
{
	echo 1 > /proc/sys/fs/protected_symlinks
	chmod 755 .
	mkdir -m 1777 all
	make_file file 1000
	echo precious > target
	must setpriv --reuid nobody --regid nogroup --clear-groups ln -s ../target all/link
	must_end 1 exs-cp --listen -b $HOST all/link
	says "cannot be followed"
	[ "$(cat target)" = precious ] || fail "written through a link"
	# It follows a link of the own user.
	ln -s ../target all/own
	receive -b $HOST all/own
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file target
}

case_small_buffers()
{
	mkdir out
	make_file file 3000001
	receive -b $HOST -B 1 out
	must exs-cp -B 2 -s 8192 file $HOST
	ended $RECEIVER 0
	must cmp file out/file
}

case_many_buffers()
{
	mkdir out
	make_file file 20000000
	receive -b $HOST -B 16 out
	must exs-cp -B 16 -s 1M file $HOST
	ended $RECEIVER 0
	must cmp file out/file
}

case_part_of_file()
{
	make_file file 100000
	mkdir out
	receive -b $HOST out
	must exs-cp -c 70000 file $HOST
	ended $RECEIVER 0
	must cmp -n 70000 file out/file
	[ "$(stat -c %s out/file)" = 70000 ] || fail "$(stat -c %s out/file) bytes, not 70000"
}

case_overwrites()
{
	mkdir out
	make_file file 50000
	make_file out/file 90000
	receive -b $HOST out
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file out/file
}

case_keep()
{
	mkdir out
	make_file a 100000
	make_file b 200000
	receive -b $HOST --keep out
	must exs-cp a $HOST
	must exs-cp b $HOST
	must exs-cp a $HOST
	must cmp a out/a
	must cmp b out/b
	kill $RECEIVER
	ended $RECEIVER 143
}

case_as_user()
{
	mkdir out
	chmod 777 . out
	make_file file 2000000
	receive -b $HOST out
	must setpriv --reuid nobody --regid nogroup --clear-groups env "PATH=$PATH" exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file out/file
}

case_zero_copy()
{
	local direct

	direct=$(counter direct_tx_bytes)
	copy 16777216
	# How much depends on which side is faster; only one buffer is certain.
	[ $(($(counter direct_tx_bytes) - direct)) -ge 262144 ] ||
		fail "only $(($(counter direct_tx_bytes) - direct)) of 16777216 bytes went directly"
}

# With a pipe only errors are printed.
case_quiet_in_pipe()
{
	mkdir out
	make_file file 1000000
	receive -b $HOST out
	must exs-cp file $HOST
	[ -z "$OUT" ] || fail "it said: $OUT"
	ended $RECEIVER 0
}

case_progress()
{
	mkdir out
	make_file file 1000000
	receive -b $HOST out
	must exs-cp --progress file $HOST
	case $OUT in
	*100%*) ;;
	*) fail "no 100% in: $OUT" ;;
	esac
	ended $RECEIVER 0
}

# -- mishaps

case_usage()
{
	must_end 2 exs-cp
	must_end 2 exs-cp --nonsense
	must_end 2 exs-cp file
	must_end 2 exs-cp -B 0 file $HOST
	must_end 0 exs-cp --help
	must_end 0 exs-cp --version
}

case_no_receiver()
{
	make_file file 10
	must_end 1 exs-cp file $HOST
	case $OUT in
	*refused*) ;;
	*) fail "it says: $OUT" ;;
	esac
}

case_no_file()
{
	mkdir out
	receive -b $HOST --keep out
	must_end 1 exs-cp nothing-there $HOST
	says "nothing-there: No such file or directory: check the name"
	must_end 1 exs-cp / $HOST
	[ -z "$(ls -A out)" ] || fail "the receiver has: $(ls -A out)"
}

# Files after one that cannot be sent whole are not copied, and the sender says so.
case_others_named()
{
	mkdir out
	make_file file 100000
	receive -b $HOST --keep out
	must_end 1 env FAIL=read LD_PRELOAD="$TOP"/build/tests/e2e/failing.so exs-cp file file2 file3 $HOST
	says "file2: not copied: copy it again"
	says "file3: not copied"
}

# says TEXT: the last command did.
says()
{
	[[ $OUT = *"$1"* ]] || fail "it says: $OUT"
}

# Errors that affect every sender are reported before the first one comes.
case_no_such_directory()
{
	must_end 1 exs-cp --listen -b $HOST no/such/directory
	says "no/such"
	must_end 1 exs-cp --listen -b $HOST no/such/directory/
}

case_little_memory()
{
	mkdir out
	chmod 777 . out
	must_end 1 setpriv --reuid nobody --regid nogroup --clear-groups env "PATH=$PATH" bash -c \
		"ulimit -l 64 && exs-cp --listen -b $HOST out"
	says "ulimit -l"
	must_end 1 setpriv --reuid nobody --regid nogroup --clear-groups env "PATH=$PATH" bash -c \
		"ulimit -l 64 && exs-cp --listen -b $HOST -B 100 -s 4K out"
	says "ulimit -l"
}

case_no_such_port()
{
	must_end 2 exs-cp --listen :65536
	says "65535"
	must_end 2 exs-cp --listen :65536 .
	must_end 2 exs-cp --listen --port 65536
	must_end 2 exs-cp /etc/hostname $HOST:99999
	must_end 2 exs-perf --listen :70000
}

case_port_taken()
{
	mkdir out
	receive -b $HOST out
	must_end 1 exs-cp --listen -b $HOST out
	says "choose another port"
	kill $RECEIVER
}

case_loopback()
{
	must_end 1 exs-cp /etc/hostname 127.0.0.1
	says "loopback"
	must_end 1 exs-cp /etc/hostname '[::1]'
	says "loopback"
}

case_bad_names()
{
	local name

	mkdir out
	make_file file 10
	receive -b $HOST --keep out
	for name in .. . a/b /etc/x .bashrc .file.part; do
		must_end 1 exs-cp --name "$name" file $HOST
	done
	[ -z "$(ls -A out)" ] || fail "the receiver has: $(ls -A out)"
	[ ! -e b ] || fail "written outside"
}

case_disk_full()
{
	mkdir out
	mount -t tmpfs -o size=1m tmpfs out
	make_file file 4000000
	receive -b $HOST out
	must_end 1 exs-cp file $HOST
	case $OUT in
	*"No space left"*) ;;
	*) fail "the sender says: $OUT" ;;
	esac
	ended $RECEIVER 1
	[ ! -e out/file ] || fail "a file under its final name"
}

# It cannot be resumed, so no part stays.
case_disk_full_of_stdin()
{
	mkdir out
	mount -t tmpfs -o size=64k tmpfs out
	make_file file 100000
	receive -b $HOST out
	must_end 1 sh -c "cat file | exs-cp - $HOST"
	ended $RECEIVER 1
	[ -z "$(ls -A out)" ] || fail "left: $(ls -A out)"
}

# nohup(1) keeps it running when its terminal is closed.
case_ignored_signal()
{
	mkdir out
	make_file file 1000
	(trap '' HUP && receive -b $HOST out && echo $RECEIVER > pid)
	kill -HUP "$(cat pid)"
	must exs-cp file $HOST
	must cmp file out/file
	wait_for "the end of the receiver" no_process "$(cat pid)"
}

# A sender that is still busy when it is killed: its input is a pipe that stays open.
start_endless_sender()
{
	mkfifo pipe
	exs-cp --name file - $HOST < pipe 2> sender.err &
	SENDER=$!
	exec 9> pipe
	head -c 3000000 /dev/urandom >&9
}

case_sender_killed()
{
	mkdir out
	receive -b $HOST out
	start_endless_sender
	kill -KILL $SENDER
	ended $RECEIVER 1
	[ ! -e out/file ] || fail "half a file under its final name"
}

read_by() { [ "$(awk '/^rchar/ { print $2 }' "/proc/$2/io")" -gt "$1" ]; }

# It has not read its part yet: that stays.
case_receiver_interrupted()
{
	mkdir out
	truncate -s 40G file
	truncate -s 30G out/.file.part
	chmod 600 out/.file.part
	receive -b $HOST out
	exs-cp file $HOST 2> sender.err &
	SENDER=$!
	wait_for "the receiver to read its part" read_by 10000000 $RECEIVER
	kill -TERM $RECEIVER
	ended $RECEIVER 143
	ended $SENDER 1
	[ "$(stat -c %s out/.file.part)" = $((30 << 30)) ] || fail "the part is lost"
}

case_receiver_killed()
{
	mkdir out
	receive -b $HOST out
	start_endless_sender
	kill -KILL $RECEIVER
	# It notices at the latest when it has something to send.
	head -c 3000000 /dev/urandom >&9 2> /dev/null
	exec 9>&-
	ended $SENDER 1
	[ ! -e out/file ] || fail "half a file under its final name"
}

case_sender_interrupted()
{
	mkdir out
	receive -b $HOST out
	start_endless_sender
	kill -TERM $SENDER
	ended $RECEIVER 1
	[ ! -e out/file ] || fail "half a file under its final name"
}

# The old file stays when its successor does not arrive whole.
case_old_file_stays()
{
	mkdir out
	make_file out/file 5000
	cp out/file old
	receive -b $HOST out
	start_endless_sender
	kill -KILL $SENDER
	ended $RECEIVER 1
	must cmp out/file old
}

# The part that a broken copy left is used, if it is the beginning of the file.
resume()
{
	local before

	mkdir -p out
	make_file file 8000000
	make_part
	receive -b $HOST out
	before=$(sent)
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file out/file
	SENT=$(($(sent) - before))
	[ "$(ls -A out)" = file ] || fail "left behind: $(ls -A out)"
}

sent()
{
	awk '/^(direct|indirect|eager)_tx_bytes/ { n += $2 } END { printf "%.0f\n", n }' /proc/net/exs
}

case_resumes()
{
	make_part() { head -c 6000000 file > out/.file.part; chmod 600 out/.file.part; }
	resume
	[ "$SENT" -lt 3000000 ] || fail "$SENT bytes were sent though 6000000 of 8000000 were there"
}

case_resumes_nothing_wrong()
{
	make_part() { head -c 6000000 /dev/urandom > out/.file.part; chmod 600 out/.file.part; }
	resume
	[ "$SENT" -ge 8000000 ] || fail "only $SENT bytes were sent: the part was another file's"
}

case_resumes_longer()
{
	make_part() { head -c 9000000 /dev/urandom > out/.file.part; chmod 600 out/.file.part; }
	resume
}

case_part_is_a_link()
{
	mkdir out
	make_file file 1000
	echo precious > target
	ln -s ../target out/.file.part
	receive -b $HOST out
	must_end 1 exs-cp file $HOST
	[ "$(cat target)" = precious ] || fail "written through a link"
}

# Two files with the same destination: neither is lost without a message.
case_same_name_twice()
{
	mkdir out a b
	make_file a/file 1000
	make_file b/file 2000
	receive -b $HOST out
	must_end 1 exs-cp a/file b/file $HOST
	ended $RECEIVER 1
	must cmp a/file out/file
	[ "$(ls -A out)" = file ] || fail "left behind: $(ls -A out)"
}

case_two_to_one_file()
{
	make_file a 1000
	make_file b 2000
	receive -b $HOST other
	must_end 1 exs-cp a b $HOST
	ended $RECEIVER 1
	must cmp a other
}

# stat(2) says that its size is 0.
case_proc_file()
{
	mkdir out
	receive -b $HOST out
	must exs-cp /proc/version $HOST
	ended $RECEIVER 0
	must cmp /proc/version out/version
}

# stat(2) says that its size is a page. Later bytes are copied, too.
case_sys_file()
{
	mkdir out
	make_file file 1000
	receive -k -b $HOST out
	must exs-cp /sys/kernel/fscaps $HOST
	must exs-cp file $HOST
	kill $RECEIVER
	ended $RECEIVER 143
	must cmp /sys/kernel/fscaps out/fscaps
	must cmp file out/file
}

case_part_of_stdin()
{
	mkdir out
	make_file file 100000
	receive -b $HOST out
	must sh -c "exs-cp -c 70000 - $HOST < file"
	ended $RECEIVER 0
	head -c 70000 file > beginning
	must cmp beginning out/stdin
}

case_stdin_shorter_than_bytes()
{
	mkdir out
	make_file file 100000
	receive -b $HOST out
	must sh -c "cat file | exs-cp -c 1M - $HOST"
	ended $RECEIVER 0
	must cmp file out/stdin
}

# receive_failing CALL ARGUMENT...: a receiver whose CALL fails with EIO: see preload/failing.c.
receive_failing()
{
	local call=$1

	shift
	FAIL=$call LD_PRELOAD=$TOP/build/tests/e2e/failing.so receive "$@"
}

case_flush_fails()
{
	make_file file 1000
	receive_failing fsync -b $HOST -
	must_end 1 exs-cp file $HOST
	ended $RECEIVER 1
}

# The content of the disk is unknown, although the part can be read.
case_flush_of_part_fails()
{
	mkdir out
	make_file file 1000
	receive_failing fsync -b $HOST out
	must_end 1 exs-cp file $HOST
	ended $RECEIVER 1
	[ -z "$(ls -A out)" ] || fail "there is $(ls -A out)"
}

case_cannot_lock()
{
	mkdir out
	make_file file 1000
	receive_failing flock -b $HOST out
	must_end 1 exs-cp file $HOST
	case $OUT in
	*"cannot be locked"*) ;;
	*) fail "the sender says: $OUT" ;;
	esac
	ended $RECEIVER 1
	[ -z "$(ls -A out)" ] || fail "there is $(ls -A out)"
}

case_directory_flush_fails()
{
	mkdir out
	make_file file 1000
	receive_failing fsync-dir -b $HOST out
	must_end 1 exs-cp file $HOST
	case $OUT in
	*"is there"*) ;;
	*) fail "the sender says: $OUT" ;;
	esac
	ended $RECEIVER 1
	must cmp file out/file
}

# As on file systems whose directories have no fsync.
case_directory_without_flush()
{
	mkdir out
	make_file file 1000
	receive_failing fsync-none -b $HOST out
	must exs-cp file $HOST
	ended $RECEIVER 0
	must cmp file out/file
}

case_restart_fails()
{
	mkdir out
	make_file file 8000000
	head -c 6000000 /dev/urandom > out/.file.part
	chmod 600 out/.file.part
	receive_failing ftruncate -b $HOST out
	must_end 1 exs-cp file $HOST
	case $OUT in
	*"Input/output error"*) ;;
	*) fail "the sender says: $OUT" ;;
	esac
	ended $RECEIVER 1
	[ ! -e out/file ] || fail "a file under its final name"
}

# -- peers that are not exs-cp (cp_peer.c)

# A part that was not offered cannot be resumed: it is longer than the file, or there is no checksum.
case_start_not_offered()
{
	local hello size

	mkdir out
	for hello in "verify 1000" "plain 2000000"; do
		size=${hello#* }
		make_file out/.file.part 1048576
		chmod 600 out/.file.part
		receive -b $HOST out
		must cp_peer $HOST hello "${hello% *}" file file "$size" start 1048576 end
		ended $RECEIVER 1
		grep -q "Protocol error" receiver.err || fail "the receiver says: $(cat receiver.err)"
	done
}

# silent_peer PORT STEP...: a receiver gives up on a peer that sends nothing after these steps, and serves the next one.
silent_peer()
{
	local port=$1

	shift
	mkdir -p "$port/out" && cd "$port" || exit
	receive -p "$port" -b $HOST --keep -t 20 out
	must cp_peer "$HOST:$port" "$@"
	must exs-cp -p "$port" ../file $HOST
	must cmp ../file out/file
	kill "$RECEIVER"
	ended "$RECEIVER" 143
}

# A peer that sends nothing does not keep the next one waiting for ever.
case_silent_peers()
{
	local pids pid

	make_file file 1000
	# At the same time, because some have ten times as long. The last one must be faster, although everything takes
	# long.
	silent_peer 7031 end & pids=$!
	silent_peer 7032 hello verify end & pids+=" $!"
	silent_peer 7033 hello verify file x unknown start 0 end & pids+=" $!"
	for pid in $pids; do
		wait "$pid" || exit 1
	done
}

# A name may contain control characters; a terminal must not get them.
case_escapes_in_name()
{
	local name=$'\e]0;x\a\xc2\x9b31m'

	mkdir out
	receive -b $HOST out
	must cp_peer $HOST hello verify file "$name" 100 start 0
	ended $RECEIVER 1
	grep -q lost receiver.err || fail "the receiver says nothing"
	! LC_ALL=C grep -q $'[\e\a\x9b]' receiver.err || fail "raw: $(od -c receiver.err)"
}

run_cases "$@"
