# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Cases in shell, reported as those in C are (lib/e2e.h). A script sources this, defines functions case_NAME and calls
# run_cases "$@". Each runs in a subshell, in a directory of its own; the processes that it started end with it.

# shellcheck disable=SC2034	# of the scripts
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
NOTHING=			# comes from this descriptor
LIMIT=$((60 * ${EXS_SLOW:-1} * ${E2E_PATIENCE:-1}))
# Of a case: longer than of a wait, and less than tests/run waits for it.
CASE_LIMIT=$((180 * ${EXS_SLOW:-1} > LIMIT + 30 ? 180 * ${EXS_SLOW:-1} : LIMIT + 30))

open_nothing()
{
	local pipe=/run/exs/nothing.$BASHPID

	mkfifo "$pipe" && exec {NOTHING}<> "$pipe" && rm "$pipe"
}

# To start a program takes a tenth of a second in a guest, so frequent steps are done by the shell itself.
pause()
{
	[ -n "$NOTHING" ] || open_nothing
	read -rt "$1" -u "$NOTHING" || :
}

# Ends the case.
fail()
{
	echo "$*" > "$CASE_DIR/.why"
	exit 1
}

skip()
{
	echo "$*" > "$CASE_DIR/.why"
	exit 77
}

# must COMMAND...: it succeeds; its output is kept in $OUT.
must()
{
	OUT=$("$@" 2>&1) || fail "$*: exit status $?: ${OUT//$'\n'/ | }"
}

# must_end STATUS COMMAND...
must_end()
{
	local want=$1 status=0

	shift
	OUT=$("$@" 2>&1) || status=$?
	[ "$status" = "$want" ] || fail "$*: exit status $status, not $want: ${OUT//$'\n'/ | }"
}

# wait_for WHAT COMMAND...: until the command succeeds.
wait_for()
{
	local what=$1 end=$((SECONDS + LIMIT))

	shift
	until "$@" > /dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "waited in vain for $what: $(tail -n 3 ./*.err 2> /dev/null)"
		pause 0.05	# between two looks
	done
}

# ended PID STATUS: waits for a process that the case started.
ended()
{
	local pid=$1 want=$2 status=0

	wait_for "the end of a process" no_process "$pid"
	wait "$pid" || status=$?
	[ "$status" = "$want" ] || fail "a process ended with $status, not $want: $(tail -3 ./*.err 2>/dev/null)"
}

no_process()
{
	local status

	mapfile -t status 2> /dev/null < "/proc/$1/status" || return 0
	[[ ${#status[@]} = 0 || ${status[*]} = *$'State:\tZ'* ]]
}

counter()
{
	local lines line

	mapfile -t lines < /proc/net/exs
	for line in "${lines[@]}"; do
		[ "${line%% *}" != "$1" ] || echo "${line##* }"
	done
}

none_alive()
{
	local lines line

	mapfile -t lines 2> /dev/null < /proc/net/exs || return 0
	for line in "${lines[@]}"; do
		[[ $line != live_* || ${line##* } = 0 ]] || return
	done
}

one_case()
{
	local name=$1 call=case_$1 status pid clock

	declare -F "$call" > /dev/null || call=hand_$name
	declare -F "$call" > /dev/null || { echo "not ok $name: no such case: --list names them"; return 1; }
	CASE_DIR=$(mktemp -d /run/exs/case.XXXXXX)
	# In the background with job control: a process group of its own, so that no process of it stays.
	set -m
	( cd "$CASE_DIR" && "$call" ) > "$CASE_DIR/.out" 2>&1 &
	pid=$!
	pause $CASE_LIMIT &
	clock=$!
	set +m
	wait -n "$pid" "$clock"
	if [ -e "/proc/$pid" ]; then
		echo "did not end within $CASE_LIMIT s" > "$CASE_DIR/.why"
	fi
	kill -KILL -- "-$pid" "-$clock" 2> /dev/null
	wait "$pid"
	status=$?
	wait 2> /dev/null
	case $status in
	0) ( wait_for "objects to go" none_alive ) && echo "ok $name" || { status=1; echo "not ok $name: $(cat "$CASE_DIR/.why")"; } ;;
	77) echo "skip $name: $(cat "$CASE_DIR/.why")"; status=0 ;;
	*) echo "not ok $name: $(cat "$CASE_DIR/.why" 2> /dev/null || tail -1 "$CASE_DIR/.out")" ;;
	esac
	! grep -q "$CASE_DIR/" /proc/self/mounts || umount "$CASE_DIR"/* 2> /dev/null
	rm -rf "$CASE_DIR"
	return "$status"
}

# run_cases [--list | NAME...]: functions case_NAME; hand_NAME only by name.
run_cases()
{
	local all failed=0 name

	all=$(declare -F | sed -n 's/^declare -f case_//p')
	if [ "${1-}" = --list ]; then
		echo "$all"
		return
	fi
	[ $# -gt 0 ] || set -- $all
	open_nothing
	for name; do
		one_case "$name" || failed=1
	done
	return "$failed"
}
