// SPDX-License-Identifier: GPL-2.0
/* The cases of calls/, call by call: see calls/calls.h. */
#include "calls.h"

static const struct e2e_case *const tables[] = {
	exs_init_cases, exs_family_cases, exs_socket_cases, exs_bind_cases, exs_listen_cases,
	exs_getsockname_cases, exs_getpeername_cases,
	exs_setsockopt_cases, exs_getsockopt_cases, exs_fcntl_cases,
	exs_qcreate_cases, exs_qdelete_cases, exs_qdequeue_cases, exs_qmodify_cases, exs_qstatus_cases,
	exs_mregister_cases, exs_mderegister_cases, exs_connect_cases, exs_accept_cases,
	exs_send_cases, exs_recv_cases, exs_sendmsg_cases, exs_recvmsg_cases, exs_sendfile_cases,
	exs_submit_cases, exs_poll_cases, exs_cancel_cases, exs_shutdown_cases, exs_close_cases,
};

static struct e2e_case cases[256];

int main(int argc, char **argv)
{
	const struct e2e_case *c;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		for (c = tables[i]; c->name; c++) {
			check(n < ARRAY_SIZE(cases) - 1, "more than %zu cases", n);
			cases[n++] = *c;
		}
	}
	return e2e_main(argc, argv, cases);
}
