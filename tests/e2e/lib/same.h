/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One body on TCP over loopback, on IPPROTO_EXS, and on a socket of that which fell back. Return values, errnos, poll
 * masks and data are recorded and must be the same, except for a table of differences, which exs(7) explains; these
 * must be different. A socket that fell back is TCP's: there are no differences.
 */
#ifndef E2E_SAME_H
#define E2E_SAME_H

#include "e2e.h"

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
long say_result(const char *what, long result);	/* @result */

#define SAY(call)	say_result(#call, call)

/* @name: of the case, as it is in the table. */
void same_on_all_sides(const char *name, void (*one_side)(const void *arg), const void *arg);

/* The table and the list in exs(7) name the same differences. */
void same_is_explained(void);

#endif
