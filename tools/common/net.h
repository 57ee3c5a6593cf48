/* SPDX-License-Identifier: MIT */
/*
 * Connections for the tools. What fails is explained on standard error, with
 * what to do about it where that is known.
 */
#ifndef TOOLS_NET_H
#define TOOLS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "parse.h"

/* Is the module there? Explains if not. */
bool net_init(void);

int net_listen(const struct endpoint *ep, int type);
int net_connect(const struct endpoint *ep, int type, const char *listener);

/* "10.0.0.1 port 7025" of a socket's own or peer's address. */
typedef int (*net_name_fn)(int, struct sockaddr *, socklen_t *);
const char *net_name(int fd, net_name_fn get, char *buf, size_t len);

/* All of it, or false and errno (0: the peer closed the connection). */
bool net_send_all(int fd, const void *buf, size_t len, int timeout_s);
bool net_recv_all(int fd, void *buf, size_t len, int timeout_s);

#endif
