/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous operations, as the module's beginning and end see them. Sockets see
 * them as struct exs_async (core/sock.h).
 *
 * This layer has the asynchronous calls of programs. It knows descriptors and pages, and
 * has transfers made by sockets. Each folder has its page; in the order in which to
 * read them:
 *
 *   queue/	queue.h	event queues, their rings, and threads that wait there
 *   op/	op.h	operations, from submission to the event
 *   memory/	region.h	pages that an operation sends from or receives into
 *   file/	feed.h	sends whose bytes are in files
 *   ordinary/	foreign.h	operations on sockets of other families
 *
 *   ioctl.h, ioctl.c	what a program asks of a queue's descriptor
 *   aio.h, aio.c	reads of Linux AIO, which become operations
 *
 * Locks: see the pages. Their order is in Documentation/design.md.
 */
#ifndef EXS_ASYNC_ASYNC_H
#define EXS_ASYNC_ASYNC_H

int exs_async_init(void);
void exs_async_exit(void);

/* EXS_DEVICE, by which programs get here. */
int exs_device_init(void);
void exs_device_exit(void);

#endif
