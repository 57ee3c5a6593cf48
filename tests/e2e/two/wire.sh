#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a program's cases between two namespaces with soft-RoCE, whose wire delays, loses or reorders packets in both
# directions.
#
#   wire.sh 'NETEM ARGUMENTS' PROGRAM [CASE...]
#
# Before Linux 7.1 soft-RoCE is in the initial namespace only.
set -euo pipefail
netem=$1 program=$2
shift 2

packets()
{
	tc -n exs_a -s qdisc show dev rxeadev | sed -n "$1"
}

ip netns exec exs_a ss -Huln 'sport = 4791' | grep -q . || { echo "soft-RoCE is not in namespaces here"; exit 77; }
# shellcheck disable=SC2086	# words
for end in a b; do
	tc -n "exs_$end" qdisc replace dev "rxe${end}dev" root netem limit 10000 $netem
done
status=0
"$program" --topology wire "$@" || status=$?
# Not by another way.
sent=$(packets 's/^ Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p') lost=$(packets 's/.*(dropped \([0-9]*\),.*/\1/p')
for end in a b; do
	tc -n "exs_$end" qdisc del dev "rxe${end}dev" root
done
echo "$sent packets of one way, $lost lost"
[ "$sent" -ge 20 ] || { echo "not ok wire: only $sent packets"; exit 1; }
[[ $netem != *loss* ]] || [ "$lost" -gt 0 ] || { echo "not ok wire: none of $sent packets was lost"; exit 1; }
exit "$status"
