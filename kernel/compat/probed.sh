#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probed.sh DIR OUT - turn the probes' results in DIR into the header OUT
#
# NAME.c tries an interface as new kernels have it, NAME-old.c the same as old
# kernels have it. Exactly one of them must compile. Anything else means that a
# probe failed for another reason than the one it asks about (a header that
# moved, a compiler that is missing), and then no build is better than a wrong
# one. control.c must compile and control-broken.c must not.

set -eu
dir=$1
out=$2

die()
{
	echo "exs: compile probe $1: $2" >&2
	for log in "$dir/$1.log" "$dir/$1-old.log"; do
		[ -f "$log" ] && sed 's/^/  /' "$log" | head -n 20 >&2
	done
	exit 1
}

result()
{
	cat "$dir/$1.res" 2>/dev/null || echo missing
}

[ "$(result control)" = y ] || die control 'does not compile: no probe can be believed'
[ "$(result control-broken)" = n ] || die control-broken 'compiles: no probe can be believed'

{
	echo '/* Made by kernel/compat/probed.sh from kernel/compat/probe/. */'
	for old in "$dir"/*-old.res; do
		name=$(basename "$old" -old.res)
		define=EXS_HAVE_$(echo "$name" | tr a-z A-Z)
		case "$(result "$name")$(result "$name-old")" in
		yn) echo "#define $define 1" ;;
		ny) echo "/* not $define */" ;;
		yy) die "$name" 'compiles both ways' ;;
		*) die "$name" 'compiles neither way' ;;
		esac
	done
} >"$out.tmp"
for res in "$dir"/*.res; do
	name=$(basename "$res" .res)
	case $name in
	control|*-old|*-broken) ;;
	*) [ -f "$dir/$name-old.res" ] || die "$name" "has no $name-old.c" ;;
	esac
done
mv "$out.tmp" "$out"
