/* SPDX-License-Identifier: MIT */
/*
 * libexs-run.so: in a program that knows nothing of it, socket() makes EXS sockets
 * where the rules want them. Calls go on to whoever would have had them.
 */
#ifndef EXS_RUN_PRELOAD_H
#define EXS_RUN_PRELOAD_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../rules.h"

#define WRAPPER __attribute__((visibility("default")))

/* next.c: the function of that name that comes after ours. */
int next_socket(int domain, int type, int protocol);
int next_connect(int fd, const struct sockaddr *addr, socklen_t len);
int next_listen(int fd, int backlog);
int next_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int next_epoll_ctl(int epfd, int op, int fd, void *event);

/* settings.c: what exs-run has put into the environment. */
const struct rules *settings_rules(void);
int settings_protocol(void);
/* A line for each decision, if that was asked for: @why may be NULL. errno stays. */
void settings_tell(int fd, bool exs, const char *what, const char *why);
/* Whether there will be any. */
bool settings_tells(void);

/* socket.c: the descriptor, or -1 and errno. */
int make_exs(int domain, int type);

/* exchange.c: @fd is an idle TCP socket, and should be EXS; or the other way round. */
bool is_the_other(int fd, bool exs);
/*
 * Such a socket becomes what @rule says, with the same options, bound where it was. One
 * that can only be TCP stays that. False, and errno: it could not be.
 */
bool exchange(int fd, const struct rule *rule);

/* watch.c: the epoll set that a socket is in, as another socket would not be. */
void watch_forget(int fd);
/* Takes @fd out of its set, and puts it back. */
void watch_suspend(int fd);
void watch_resume(int fd);

#endif
