#!/bin/bash
# SPDX-License-Identifier: MIT
# make install and uninstall, with no real module, away from the system. Last line: N passed, N failed, N skipped.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
release=0-exs-install-$$		# of no kernel
trap 'rm -rf "$dir" "$top/build/$release"' EXIT
passed=0 failed=0 skipped=0

# Their changes of the system are only recorded.
mkdir "$dir/bin"
for tool in ldconfig depmod; do
	printf '#!/bin/sh\necho %s "$@" >> %s/told\n' $tool "$dir" > "$dir/bin/$tool"
done
chmod +x "$dir"/bin/*
export PATH=$dir/bin:$PATH

# The make that started this may export its own.
unset PREFIX DESTDIR DOCDIR KDIR

# make TARGET VARIABLE=...; the last KDIR counts.
make_quietly()
{
	make -s --no-print-directory -C "$top" KDIR=/nonexistent "$@" > "$dir/log" 2>&1 || { cat "$dir/log"; return 1; }
}

told()
{
	[ "$(cat "$dir/told" 2> /dev/null)" = "$1" ] || { cat "$dir/told"; return 1; }
}

case_staged()
{
	make_quietly install DESTDIR="$dir/stage" PREFIX=/usr && told ""
}

# As on a machine whose kernel has no headers.
case_without_module()
{
	make_quietly install PREFIX="$dir/prefix" && [ -e "$dir/prefix/bin/exs-cp" ] || return
	if [ "$(id -u)" = 0 ]; then told $'ldconfig\nldconfig -p'; else told "ldconfig -p"; fi &&
		[[ $(tail -1 "$dir/log") = "To get them: "*"$(uname -r)"*"make install again" ]] &&
		grep -q "LD_LIBRARY_PATH=$dir/prefix/lib" "$dir/log" &&
		grep -q "PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig" "$dir/log"
}

# A file with the module's name, for a kernel whose headers say no more than its release.
case_with_module()
{
	mkdir -p "$dir/headers/include/generated" "$top/build/$release" &&
		echo "#define UTS_RELEASE \"$release\"" > "$dir/headers/include/generated/utsrelease.h" &&
		echo module > "$top/build/$release/exs.ko" &&
		make_quietly install DESTDIR="$dir/stage" PREFIX=/usr KDIR="$dir/headers" && told "" &&
		cmp "$top/build/$release/exs.ko" "$dir/stage/lib/modules/$release/extra/exs.ko"
}

# The texts are in one folder there.
case_links()
{
	local doc=$dir/stage/usr/share/doc/exs file link bad=0

	make_quietly install DESTDIR="$dir/stage" PREFIX=/usr || return
	for file in "$doc"/*.md; do
		for link in $(grep -oE '\]\([^)# ]+' "$file" | sed 's/..//; /^https\?:/d'); do
			[ -e "$doc/$link" ] || { echo "$file: no $link"; bad=1; }
		done
	done
	[ -s "$doc/README.md" ] && grep -qF '](examples' "$doc/programmers-guide.md" || bad=1
	return $bad
}

# What tests/bare types is taken from the texts.
case_bare_commands()
{
	"$top/tests/bare" --commands > "$dir/log" && grep -q 'sudo make install' "$dir/log" &&
		grep -q '^cc -o first ' "$dir/log"
}

case_every_call_has_its_page()
{
	local name bad=0

	for name in $(sed -n 's/^\t\(exs_[a-z]*\);$/\1/p' "$top/lib/libexs.map"); do
		[ -s "$dir/stage/usr/share/man/man3/$name.3" ] || { echo "$name"; bad=1; }
	done
	return $bad
}

# Those of the programmer's guide, with what pkg-config says. Without the module they must say what to do.
case_examples()
{
	local output

	PKG_CONFIG_PATH=$dir/prefix/lib/pkgconfig make -s -C "$top/Documentation/examples" OUT="$dir/examples" \
		CFLAGS="-O2 -Werror" > "$dir/log" 2>&1 || { cat "$dir/log"; return 1; }
	[ ! -e /proc/net/exs ] || { echo "the module is loaded"; return 77; }
	output=$(LD_LIBRARY_PATH=$dir/prefix/lib "$dir/examples/first" 192.0.2.1 2>&1) && return 1
	[[ $output = *"modprobe exs"* ]] || { echo "$output"; return 1; }
	output=$(LD_LIBRARY_PATH=$dir/prefix/lib "$dir/examples/echo-client" -x 192.0.2.1 7000 2>&1) && return 1
	[[ $output = *"modprobe exs"* ]] || { echo "$output"; return 1; }
}

# The commands that it starts are installed and have these options; systemd, if there is one, checks the rest.
case_unit()
{
	local unit=$dir/prefix/share/doc/exs/examples/exs-system.service command

	[ "$(grep -c '^Exec' "$unit")" = 2 ] || { echo "not one start and one stop"; return 1; }
	while read -ra command; do
		LD_LIBRARY_PATH=$dir/prefix/lib "${command[@]}" --help | grep -q '^Usage: exs-run' || return
	done < <(sed -n 's/^Exec[A-Za-z]*=//p' "$unit")
	command -v systemd-analyze > /dev/null || { echo "there is no systemd-analyze"; return 77; }
	# It also speaks of units that this one names.
	! systemd-analyze verify --man=no "$unit" 2>&1 | grep "${unit##*/}"
}

case_uninstall()
{
	make_quietly uninstall DESTDIR="$dir/stage" PREFIX=/usr && [ -z "$(find "$dir/stage" ! -type d -print)" ]
}

for name in staged with_module without_module links bare_commands every_call_has_its_page examples unit uninstall; do
	output=$("case_$name" 2>&1)
	case $? in
	0) echo "ok   install $name"; passed=$((passed + 1)) ;;
	77) echo "skip install $name: $output"; skipped=$((skipped + 1)) ;;
	*) printf 'FAIL install %s\n%s\n' "$name" "$output"; failed=$((failed + 1)) ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
