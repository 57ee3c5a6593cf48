#!/bin/bash
# SPDX-License-Identifier: MIT
# The messages of scripts and make when something is missing. Last line: N passed, N failed, N skipped.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
unset EXS_DEPS		# of make check

# A path with only these programs; dpkg-query knows no package.
only()
{
	local program

	rm -rf "${dir:?}/bin"
	mkdir "$dir/bin"
	for program in bash dirname "$@"; do
		ln -s "$(type -P "$program")" "$dir/bin/" || return
	done
}

add_debian()
{
	printf '#!/bin/bash\nexit 1\n' | tee "$dir/bin/dpkg-query" > "$dir/bin/apt-get"
	chmod +x "$dir"/bin/{dpkg-query,apt-get}
}

# says TEXT COMMAND...: the command fails, and says TEXT.
says()
{
	local text=$1 output
	shift
	output=$(PATH=$dir/bin "$@" 2>&1) && { echo "succeeded: $output"; return 1; }
	[[ $output = *"$text"* ]] || { echo "$output"; return 1; }
}

debian=(comm printf sort awk id)

# user [sudo]: id names an ordinary one, with a sudo or without.
user()
{
	printf '#!/bin/bash\necho 1000\n' > "$dir/id"
	chmod +x "$dir/id"
	ln -sf "$dir/id" "$dir/bin/id"
	[ -z "${1-}" ] || printf '#!/bin/bash\nexec "$@"\n' > "$dir/bin/sudo"
	[ -z "${1-}" ] || chmod +x "$dir/bin/sudo"
}

case_packages()
{
	only "${debian[@]}" && add_debian || return
	says "make deps" "$top/scripts/deps" build && says "libxxhash-dev" "$top/scripts/deps" build
}

case_packages_as_user()
{
	only "${debian[@]}" && add_debian && user sudo || return
	says $'them:\n    sudo apt install ' "$top/scripts/deps" build
}

# It neither names sudo nor tries it.
case_packages_without_sudo()
{
	only "${debian[@]}" env && add_debian && user || return
	says "as root: apt install " "$top/scripts/deps" build &&
		says "as root: apt install " env EXS_DEPS=install "$top/scripts/deps" build
}

# Lists without the suite that has Linux 6.12.
case_packages_unknown()
{
	only "${debian[@]}" env mktemp grep cat rm sleep true && add_debian || return
	printf '#!/bin/bash\nexec "$@"\n' > "$dir/bin/sudo"
	printf '#!/bin/bash\n[[ $* != *install* ]] || { echo "E: Unable to locate package x" >&2; exit 100; }\n' \
		> "$dir/bin/apt-get"
	chmod +x "$dir/bin/sudo"
	says "bookworm-security" env EXS_DEPS=install "$top/scripts/deps" vm
}

# offline: apt-get finds no mirror. An update without lists is no error for it, unless it is told so.
offline()
{
	cat > "$dir/bin/apt-get" << 'EOF'
#!/bin/bash
echo "W: Failed to fetch http://deb.debian.org/debian/dists/x/InRelease  Could not resolve 'deb.debian.org'" >&2
case $* in
*Error-Mode=any*) exit 100 ;;
*install*) echo "E: Unable to locate package x" >&2; exit 100 ;;
*download*) exit 100 ;;
esac
EOF
	printf '#!/bin/bash\nexec "$@"\n' > "$dir/bin/sudo"
	chmod +x "$dir"/bin/{apt-get,sudo}
}

case_packages_offline()
{
	only "${debian[@]}" env mktemp grep cat rm sleep true && add_debian && offline || return
	says "Is there a network" env EXS_DEPS=install "$top/scripts/deps" vm
}

# It asks again the next time.
case_lists_offline()
{
	only "${debian[@]}" mkdir touch && add_debian && offline || return
	says "is there a network" "$top/scripts/apt-of" "$dir/lists" trixie apt-get download x &&
		says "is there a network" "$top/scripts/apt-of" "$dir/lists" trixie apt-get download x
}

# The lists are there, the package is not.
case_source_offline()
{
	only "${debian[@]}" env mkdir touch flock rm && add_debian && offline || return
	mkdir -p "$dir/cache/linux-source-6.99/lists" && touch "$dir/cache/linux-source-6.99/lists/.done" || return
	says "is there a network" env EXS_CACHE="$dir/cache" EXS_DEBUG_KERNEL=6.99 "$top/tests/debug-kernel/source"
}

case_elsewhere()
{
	only rsync || return
	says "gcc pkg-config python3. README.md" "$top/scripts/deps" build
}

case_elsewhere_complete()
{
	only gcc rsync pkg-config python3 || return
	PATH=$dir/bin "$top/scripts/deps" build && says "Missing: g++." "$top/scripts/deps" build library || return
	only gcc g++ rsync pkg-config python3 || return
	PATH=$dir/bin "$top/scripts/deps" build library
}

case_elsewhere_machines()
{
	only gcc rsync pkg-config python3 || return
	says "needs Debian" "$top/scripts/deps" build vm
}

# Headers are in the archive before the image of the same kernel is: neither is taken.
case_image_missing()
{
	local at=$top/build/image-missing

	only "${debian[@]}" env sed mkdir rm flock tail grep && add_debian || return
	cat > "$dir/bin/apt-cache" << 'EOF'
#!/bin/bash
case $* in
pkgnames) printf 'linux-headers-6.99.0-%s-amd64\n' 8 10 9 ;;
"madison linux-image-6.99.0-10-amd64" | depends*) ;;
show*) echo "Version: 6.99.1" ;;
madison*) echo "$2 | 6.99.1 | here" ;;
esac
EOF
	printf '#!/bin/bash\necho "$@"; exit 1\n' > "$dir/bin/apt-get"
	chmod +x "$dir"/bin/apt-{cache,get}
	says "download linux-image-6.99.0-9-amd64 linux-headers-6.99.0-9-amd64=6.99.1" \
		env EXS_CACHE="$at" "$top/tests/vm/stock" 6.99
	set -- $?
	rm -rf "$at"
	return "$1"
}

case_headers()
{
	only uname "${debian[@]}" && add_debian || return
	says "apt install linux-headers-$(uname -r)" "$top/scripts/build-module" "$dir/nowhere"
}

case_headers_elsewhere()
{
	only uname || return
	says "install the headers of $(uname -r) (README.md)" "$top/scripts/build-module" "$dir/nowhere"
}

case_inside_needs_root()
{
	only id && user || return
	says "this needs root" "$top/scripts/inside" "$dir" true
}

case_demo_without_file()
{
	only env || return
	says "$dir/no file: no such file" "$top/tests/demo" 6.12 "$dir/no file"
}

# Root may write everywhere, so it runs this as another user.
case_may_not_install()
{
	local other=()

	[ "$(id -u)" != 0 ] || other=(setpriv --reuid 65534 --clear-groups)
	"${other[@]}" test -x "$top/scripts/install" || return 77
	chmod 755 "$dir" && mkdir "$dir/closed" && chmod 555 "$dir/closed" && only env setpriv || return
	says "use sudo" "${other[@]}" env PREFIX=/usr DESTDIR="$dir/closed" "$top/scripts/install" --may
}

case_may_install()
{
	DESTDIR=$dir/stage PREFIX=/usr "$top/scripts/install" --may && [ ! -e "$dir/stage" ]
}

for name in packages packages_as_user packages_without_sudo packages_unknown packages_offline lists_offline source_offline \
	elsewhere elsewhere_complete elsewhere_machines image_missing headers headers_elsewhere inside_needs_root \
	demo_without_file may_not_install may_install; do
	output=$("case_$name" 2>&1)
	case $? in
	0) echo "ok   deps $name"; passed=$((passed + 1)) ;;
	77) echo "skip deps $name: another user cannot read this directory"; skipped=$((skipped + 1)) ;;
	*) printf 'FAIL deps %s\n%s\n' "$name" "$output"; failed=$((failed + 1)) ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
