/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PROTO_TEST_EXPLORE_H
#define PROTO_TEST_EXPLORE_H

#include "world.h"

struct explored {
	u64 states, transitions;
	double seconds;
};

bool explore(const char *text, struct explored *result, bool verbose);

#endif
