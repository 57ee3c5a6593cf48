/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads of Linux AIO (aio.c); core calls exs_aio_read() by struct exs_async (core/sock.h).
 */
#ifndef EXS_ASYNC_AIO_H
#define EXS_ASYNC_AIO_H

#include <linux/types.h>

struct exs_conn;
struct msghdr;
struct sock;

/* exs_async.aio_read */
int exs_aio_read(struct exs_conn *conn, struct sock *sk, struct msghdr *msg, size_t len);

int exs_aio_init(void);
void exs_aio_exit(void);

#endif
