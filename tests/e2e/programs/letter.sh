#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sets up in a guest what README.md and the programmer's guide assume: a machine where nothing of EXS is installed, the
# repository, a user with sudo, eth0 with the addresses of the texts, and their names. Then letter.py types.
#
#   unshare -m letter.sh [CHAPTER...]
#
# Both hosts are this machine: host-a is 10.0.0.1, host-b 10.0.0.2. Installed and written files go with the namespace of
# mounts; the network is restored at the end.
set -euo pipefail
top=$(cd "$(dirname "$0")/../../.." && pwd)
dir=/run/exs/letter
release=$(uname -r)

# layer PLACE LOWER: the lower directories are seen at the place, and may be written to.
layer()
{
	local own=$dir/layers/${1//\//-}

	mkdir -p "$own/upper" "$own/work" "$1"
	mount -t overlay -o "lowerdir=$2,upperdir=$own/upper,workdir=$own/work" overlay "$1"
}

# With redis and curl, where this system does not have them. Another test may have laid them over /usr already.
make_system()
{
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	mount -t tmpfs -o mode=1777 tmpfs /tmp
	! mountpoint -q /usr || umount -l /usr
	layer /usr "$top/build/programs/root/usr:/usr"
	layer /etc /etc
	printf '%s\n' '10.0.0.1 host-a' '10.0.0.2 host-b' >> /etc/hosts
}

# Only the modules that are used: depmod takes minutes in an emulated machine with all of them. As the module was built
# before, kbuild would only find that out, which takes a minute, so the headers have a Makefile that does nothing.
make_modules()
{
	local modules=/lib/modules/$release needed headers=$dir/modules/build

	needed=$(modprobe -a --show-depends rdma_rxe rdma_cm | awk '$1 == "insmod" && !seen[$2]++ { print $2 }')
	mkdir -p "$headers/include/generated"
	# shellcheck disable=SC2086	# words
	(cd "$modules" && cp --parents modules.order modules.builtin* ${needed//$modules\//} "$dir/modules")
	echo "#define UTS_RELEASE \"$release\"" > "$headers/include/generated/utsrelease.h"
	echo "modules:" > "$headers/Makefile"
	touch "$headers/.config"
	mount --bind "$dir/modules" "$modules"
	depmod
}

# As much of sudo as the texts need, for an ordinary user who has built the files to be installed.
make_user()
{
	mkdir -p "$dir/bin"
	cp /usr/bin/setpriv "$dir"
	chmod u+s "$dir/setpriv"
	printf '#!/bin/sh\nexec %s --reuid=0 --regid=0 --clear-groups "$@"\n' "$dir/setpriv" > "$dir/bin/sudo"
	chmod +x "$dir/bin/sudo"
	chown nobody "$dir/exs/build"
	chown -R nobody "$dir/exs/build/"{examples,lib,tools,"$release"}
}

# wait_for WHAT COMMAND...: until it succeeds.
wait_for()
{
	local what=$1 end=$((SECONDS + 20 * ${EXS_SLOW:-1} * ${E2E_PATIENCE:-1}))

	shift
	until "$@" 2> /dev/null; do
		[ "$SECONDS" -lt "$end" ] || { echo "waited in vain for $what" >&2; exit 1; }
		sleep 0.05
	done
}

# A host without RDMA, in a network namespace of its own: 10.0.0.9, with a server of files.
without_rdma()
{
	wait_for "peer0, which is on its way" ip link set peer0 up
	ip link set peer0 mtu 9000
	ip addr add 10.0.0.9/24 dev peer0
	mkdir -p "$dir/served"
	echo "a file" > "$dir/served/file"
	exec python3 -m http.server -d "$dir/served" 80 > "$dir/served.log" 2>&1
}

has_own_network()
{
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# Instead of rxe0dev, which has an address of the guide; rxe0 goes with it.
make_network()
{
	local address

	modprobe veth
	ip link delete rxe0dev
	ip link add eth0 type veth peer name peer0 address 02:00:00:10:00:09
	export dir
	export -f without_rdma wait_for
	unshare -n bash -euc without_rdma &
	other=$!
	wait_for "a network namespace" has_own_network $other
	ip link set peer0 netns "$other"
	ip link set eth0 mtu 9000 up
	for address in 10.0.0.1 10.0.0.2 10.77.0.1; do
		ip addr add "$address/24" dev eth0
	done
	ip neigh replace 10.0.0.9 lladdr 02:00:00:10:00:09 dev eth0 nud permanent
	wait_for "the server of 10.0.0.9" timeout 2 bash -c ': < /dev/tcp/10.0.0.9/80'
}

make_cgroup()
{
	mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mkdir -p /sys/fs/cgroup/user.slice
}

# tests/vm/settle loads the module again.
restore()
{
	set +e
	ip link delete eth0
	[ -z "$other" ] || kill "$other"
	wait
	rmdir /sys/fs/cgroup/user.slice
	[ ! -e /sys/module/exs ] || rmmod exs
	nsenter --mount=/proc/1/ns/mnt "$top/tests/vm/setup" one
}

rmmod exs
other=
trap restore EXIT
make_network
make_cgroup
make_system
make_modules
layer "$dir/exs" "$top"
make_user
export EXS_SCRATCH=$dir
"$top/tests/e2e/programs/letter.py" "$@"
