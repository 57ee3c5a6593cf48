// SPDX-License-Identifier: GPL-2.0
/*
 * proto_ops.accept in the shape that this kernel wants.
 */
#include "compat.h"

#ifdef EXS_HAVE_PROTO_ACCEPT_ARG
int exs_compat_accept(struct socket *sock, struct socket *newsock,
		      struct proto_accept_arg *arg)
{
	return exs_accept(sock, newsock, arg);
}
#else
int exs_compat_accept(struct socket *sock, struct socket *newsock, int flags, bool kern)
{
	struct proto_accept_arg arg = { .flags = flags, .kern = kern };

	return exs_accept(sock, newsock, &arg);
}
#endif
