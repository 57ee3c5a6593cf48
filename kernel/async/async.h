/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous operations, as the module's beginning and end see them. Sockets see
 * them as struct exs_async (core/sock.h).
 *
 * This layer has the asynchronous calls of programs. It knows descriptors and pages, and
 * has transfers made by sockets. Each folder has its page. They are in layers: a folder
 * includes only those above it in this list, in which order they are best read, too.
 *
 *   memory/	region.h	pages that an operation sends from or receives into
 *   queue/	queue.h	event queues, their rings, threads that wait there, operations in flight
 *   file/	feed.h	sends whose bytes are in files
 *   op/	op.h	submission, and the kinds of operations
 *   ordinary/	foreign.h	operations on sockets of other families
 *
 *   ioctl.c	what a program asks of a queue's descriptor
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
