// SPDX-License-Identifier: GPL-2.0
/* BPF programs of cgroups may change the length of an address. */
#include <linux/bpf-cgroup.h>
#include <linux/socket.h>

#ifdef CONFIG_CGROUP_BPF
int probe(struct sock *sk, void *addr, int *len, u32 *flags);
int probe(struct sock *sk, void *addr, int *len, u32 *flags)
{
	return __cgroup_bpf_run_filter_sock_addr(sk, addr, len, CGROUP_INET4_BIND, NULL, flags);
}
#endif
