// SPDX-License-Identifier: GPL-2.0
/* What an AF_UNIX socket asks for is in its struct sock. */
#include <net/sock.h>

bool probe(const struct sock *sk);
bool probe(const struct sock *sk)
{
	return sk->sk_scm_credentials || sk->sk_scm_pidfd;
}
