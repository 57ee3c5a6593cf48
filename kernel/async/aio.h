/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads of Linux AIO (aio.c); exs_aio_read() is declared in core/sock.h.
 */
#ifndef EXS_ASYNC_AIO_H
#define EXS_ASYNC_AIO_H

struct kiocb;

/* Whether the socket was given it by exs_aio_read(). */
bool exs_iocb_is_aio(const struct kiocb *iocb);

int exs_aio_init(void);
void exs_aio_exit(void);

#endif
