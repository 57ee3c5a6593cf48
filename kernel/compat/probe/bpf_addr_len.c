// SPDX-License-Identifier: GPL-2.0
#include <linux/bpf-cgroup.h>
#include <net/sock.h>

int probe(struct sock *sk, void *addr, int *len);

int probe(struct sock *sk, void *addr, int *len)
{
	return BPF_CGROUP_RUN_PROG_INET4_CONNECT(sk, addr, len);
}
