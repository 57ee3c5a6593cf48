/* SPDX-License-Identifier: MIT */
/*
 * Connections for the tools. On failure, they print the reason on standard error, and what
 * to do if that is known.
 */
#ifndef TOOLS_NET_H
#define TOOLS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "parse.h"

/* Check that the module is loaded. Prints the reason if not. */
bool net_init(void);

/* Why there is no AF_EXS, and what to do. */
const char *net_why_missing(void);

int net_listen(const struct endpoint *ep, int type);

/* The next connection that is still there; -1: prints the reason, unless a signal came. */
int net_accept(int listener);

int net_connect(const struct endpoint *ep, int type, const char *listener);

/* What to do about @err of a connect (@remote), or of a bind, listen or accept. */
const char *net_advice(int err, bool remote);

/* The same for @err of any other call, or of a transfer; 0: the other end closed the connection. */
const char *net_call_advice(int err);

/* A socket's own or peer's address, as "10.0.0.1 port 7025". */
typedef int (*net_name_fn)(int, struct sockaddr *, socklen_t *);
const char *net_name(int fd, net_name_fn get, char *buf, size_t len);

/* Transfer all bytes. Return: false and errno (0: the peer closed the connection). */
bool net_send_all(int fd, const void *buf, size_t len, int timeout_s);
bool net_recv_all(int fd, void *buf, size_t len, int timeout_s);

#endif
