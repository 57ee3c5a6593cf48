// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_family"

static void family(void)
{
	int fd;

	must_be(exs_family(), exs_family_number());
	must_be(AF_EXS, PF_EXS);
	fd = must(socket(AF_EXS, SOCK_STREAM, 0));
	must(close(fd));
}

const struct e2e_case exs_family_cases[] = {
	CASE(family, ON_EXS),
	{}
};
