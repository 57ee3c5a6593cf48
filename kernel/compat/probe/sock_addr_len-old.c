// SPDX-License-Identifier: GPL-2.0
#include <linux/bpf-cgroup.h>
#include <linux/socket.h>

#ifndef CONFIG_CGROUP_BPF
#error "does not matter"
#endif

int probe(struct sock *sk, void *addr, u32 *flags);
int probe(struct sock *sk, void *addr, u32 *flags)
{
	return __cgroup_bpf_run_filter_sock_addr(sk, addr, CGROUP_INET4_BIND, NULL, flags);
}
