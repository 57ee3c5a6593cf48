/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads of Linux AIO (aio.c); exs_aio_read() is declared in core/sock.h.
 */
#ifndef EXS_ASYNC_AIO_H
#define EXS_ASYNC_AIO_H

int exs_aio_init(void);
void exs_aio_exit(void);

#endif
