/* SPDX-License-Identifier: GPL-2.0 */
/* Files to be sent; files that fail; files that take their time: fanotify asks us whether they may be read. */
#ifndef E2E_FILE_H
#define E2E_FILE_H

#include <sys/fanotify.h>

#include "e2e.h"

/* Polls of it by other processes than the caller, and by the kernel, have no answer until the server is gone. May
 * skip the case. fuse.c
 */
struct silent_file { int fd; pid_t server; };
struct silent_file file_without_answers(void);

/* Of the stream @seed of lib/data.c; without a name. */
int file_new(uint64_t seed, size_t len);

/* Reads of it fail with @err. May skip the case. fuse.c */
int file_that_fails(int err);

/* One that can be written; reads of it are zeros. May skip the case. fuse.c */
int file_of_zeros(void);

struct guard {
	int fd;
};

/* *@file is opened again: some kernels ask only of those opened under guard. May skip the case. */
struct guard guard_open(int *file);
/* Wait for a reader. Return: the number for the answer. */
int guard_wait(const struct guard *g);
/*
 * FAN_ALLOW, FAN_DENY. The last answer but for FAN_DENY: some kernels ask twice, and
 * without a guard all is allowed.
 */
void guard_answer(const struct guard *g, int asked, unsigned int response);

#endif
