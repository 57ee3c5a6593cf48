// SPDX-License-Identifier: MIT
/*
 * Socket options, with their own calls and with exs_fcntl(). The ES-API's SO_ASYNC_* belong
 * to SOL_SOCKET, but the kernel passes no options of this level to a family: the library
 * uses the family's own level. For ordinary sockets, only this library knows them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "lib.h"

#define OPTION_OF(cmd)	((cmd) & 0xffff)

#define NSEC_PER_SEC	1000000000LL
#define SECONDS_MAX	(INT64_MAX / 2 / NSEC_PER_SEC)

/* The option at the family's level, or 0. */
static int exs_name(int level, int name)
{
	if (level != SOL_SOCKET)
		return 0;
	switch (name) {
	case SO_ASYNC_RECV_ORDERED:
		return EXS_SO_RECV_ORDERED;
	case SO_ASYNC_SEND_TIMEOUT:
		return EXS_SO_SEND_TIMEOUT;
	case SO_ASYNC_RECV_TIMEOUT:
		return EXS_SO_RECV_TIMEOUT;
	default:
		return 0;
	}
}

/* The kernel keeps them, also if the socket fell back to TCP. */
static bool has_timeouts(int fd)
{
	int why;
	socklen_t len = sizeof(why);

	return exs_is_native(fd) || !getsockopt(fd, SOL_EXS, EXS_SO_FELL_BACK, &why, &len);
}

static int set_timeout(int fd, int option, const void *value, socklen_t len)
{
	struct exs_opt_timeout opt = { 0 };
	exs_timeout_t t = { .exs_flags = 0 };

	if (exs_check_addr(value, sizeof(t.exs_time)))
		return -1;
	if (len < sizeof(t.exs_time)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&t, value, len < sizeof(t) ? sizeof(t.exs_time) : sizeof(t));
	if (t.exs_time.tv_sec < 0 || t.exs_time.tv_sec >= SECONDS_MAX ||
	    t.exs_time.tv_usec < 0 || t.exs_time.tv_usec >= 1000000) {
		errno = EDOM;
		return -1;
	}
	opt.ns = t.exs_time.tv_sec * NSEC_PER_SEC + t.exs_time.tv_usec * 1000LL;
	opt.flags = t.exs_flags;
	if (!has_timeouts(fd))
		return exs_timeout_set(fd, option, &opt);
	return setsockopt(fd, SOL_EXS, option, &opt, sizeof(opt));
}

static int get_timeout(int fd, int option, void *value, socklen_t *len)
{
	struct exs_opt_timeout opt = { 0 };
	socklen_t size = sizeof(opt);
	exs_timeout_t t = { .exs_flags = 0 };

	if (exs_check_addr(value, sizeof(t.exs_time)) || exs_check_addr(len, sizeof(*len)))
		return -1;
	if (*len < sizeof(t.exs_time)) {
		errno = EINVAL;
		return -1;
	}
	if (has_timeouts(fd) ? getsockopt(fd, SOL_EXS, option, &opt, &size) :
			       exs_timeout_get(fd, option, &opt))
		return -1;
	t.exs_time.tv_sec = opt.ns / NSEC_PER_SEC;
	t.exs_time.tv_usec = opt.ns % NSEC_PER_SEC / 1000;
	t.exs_flags = opt.flags;
	*len = *len < sizeof(t) ? sizeof(t.exs_time) : sizeof(t);
	memcpy(value, &t, *len);
	return 0;
}

/* Receives of ordinary sockets are filled in order, too. */
static int set_ordered(int fd, const void *value, socklen_t len)
{
	if (exs_is_native(fd) || exs_int_option(fd, SO_TYPE) < 0)
		return setsockopt(fd, SOL_EXS, EXS_SO_RECV_ORDERED, value, len);
	if (exs_check_addr(value, sizeof(int)))
		return -1;
	if (len >= sizeof(int))
		return 0;
	errno = EINVAL;
	return -1;
}

/* An option that always exists, and has the same size. */
static int get_ordered(int fd, void *value, socklen_t *len)
{
	int ret;

	if (exs_is_native(fd))
		return getsockopt(fd, SOL_EXS, EXS_SO_RECV_ORDERED, value, len);
	ret = getsockopt(fd, SOL_SOCKET, SO_TYPE, value, len);
	if (!ret && *len < sizeof(int)) {
		errno = EINVAL;
		return -1;
	}
	if (!ret)
		memcpy(value, &(int){ 1 }, sizeof(int));
	return ret;
}

int exs_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int option = exs_name(level, name);

	if (option == EXS_SO_RECV_ORDERED)
		return set_ordered(fd, value, len);
	if (option)
		return set_timeout(fd, option, value, len);
	return setsockopt(fd, level, name, value, len);
}

int exs_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int option = exs_name(level, name);

	if (option == EXS_SO_RECV_ORDERED)
		return get_ordered(fd, value, len);
	if (option)
		return get_timeout(fd, option, value, len);
	return getsockopt(fd, level, name, value, len);
}

/* The C library's fcntl() takes its third argument in the same way. */
int exs_fcntl(int fd, int cmd, ...)
{
	socklen_t len = sizeof(int);
	va_list args;
	void *arg;
	int value;

	va_start(args, cmd);
	if (cmd == EXS_F_SET(OPTION_OF(cmd))) {
		value = va_arg(args, int);
		va_end(args);
		return exs_setsockopt(fd, SOL_EXS, OPTION_OF(cmd), &value, len);
	}
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == EXS_F_GET(OPTION_OF(cmd)))
		return exs_getsockopt(fd, SOL_EXS, OPTION_OF(cmd), arg, &len);
	return fcntl(fd, cmd, arg);
}
