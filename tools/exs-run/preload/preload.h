/* SPDX-License-Identifier: MIT */
/*
 * libexs-run.so: socket() of an unmodified program creates EXS sockets if the rules say
 * so. The wrappers call the original functions.
 */
#ifndef EXS_RUN_PRELOAD_H
#define EXS_RUN_PRELOAD_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "../rules.h"

#define WRAPPER __attribute__((visibility("default")))

/* next.c: the wrapped functions. */
int next_socket(int domain, int type, int protocol);
int next_connect(int fd, const struct sockaddr *addr, socklen_t len);
int next_accept(int fd, struct sockaddr *addr, socklen_t *len);
int next_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int next_execve(const char *path, char *const argv[], char *const envp[]);
int next_execv(const char *path, char *const argv[]);
int next_execvp(const char *name, char *const argv[]);
int next_execvpe(const char *name, char *const argv[], char *const envp[]);
int next_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int next_posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int next_listen(int fd, int backlog);
int next_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int next_epoll_ctl(int epfd, int op, int fd, void *event);

/* settings.c: settings from the environment that exs-run has prepared. */
const struct rules *settings_rules(void);
int settings_protocol(void);
/* Print a line for a decision, if verbose. @why may be NULL. Keeps errno. */
void settings_tell(int fd, bool exs, const char *what, const char *why);
/* Print why nothing will be preloaded into a program, if verbose and @why is not NULL. */
void settings_tell_program(const char *path, const char *why);
/* Whether it prints. */
bool settings_tells(void);

/* socket.c: the descriptor, or -1 and errno. */
int make_exs(int domain, int type);

/* exchange.c: whether @fd is a TCP or EXS socket, or another one that looks so. */
bool is_inet_stream(int fd);
/* Whether such a socket is idle, and TCP instead of EXS (@exs), or the reverse. */
bool is_the_other(int fd, bool exs);
/*
 * Change the protocol of such a socket to that of @rule; options and address stay. If
 * EXS is not possible, it stays TCP. Return: false and errno on failure.
 */
bool exchange(int fd, const struct rule *rule);

/* watch.c: remembers the epoll set of a socket, for the socket that replaces it. */
void watch_forget(int fd);
/* Whether it would remember the set of this descriptor. */
bool watch_knows(int fd);
/* Remove @fd from its set, and add it again. */
void watch_suspend(int fd);
void watch_resume(int fd);

#endif
