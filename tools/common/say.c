// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

void (*say_hook)(void);

#define TEXT_MAX	8192

static void message(const char *fmt, va_list ap)
	__attribute__((format(printf, 1, 0)));

/* The text may contain names from files and from the peer. */
static void message(const char *fmt, va_list ap)
{
	char text[TEXT_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	make_printable(text);
	if (say_hook)
		say_hook();
	fprintf(stderr, "%s: %s", program_invocation_short_name, text);
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* What to do about errors of files and of memory. */
static const struct {
	int err;
	const char *todo;
} advice[] = {
	{ EACCES,  ": check its permissions, or run it as root" },
	{ EDQUOT,  ": the quota is used up: remove files, or ask the administrator" },
	{ EIO,	   ": the device failed: see dmesg" },
	{ EISDIR,  ": it is a directory: name a file" },
	{ ELOOP,   ": check its symbolic links" },
	{ EMFILE,  ": raise the limit of descriptors: ulimit -n" },
	{ ENFILE,  ": the system's limit of descriptors is reached: sysctl fs.file-max" },
	{ ENOENT,  ": check the name" },
	{ ENAMETOOLONG, ": choose a shorter name" },
	{ ENOMEM,  ": free some memory" },
	{ ENOSPC,  ": free some space there" },
	{ ENOTDIR, ": check the name" },
	{ EPERM,   ": check its permissions, or run it as root" },
	{ EROFS,   ": make it writable: mount -o remount,rw" },
};

const char *file_advice(int err)
{
	size_t i;

	for (i = 0; i < sizeof(advice) / sizeof(*advice); i++)
		if (advice[i].err == err)
			return advice[i].todo;
	return ": this is not expected: report it, with the command and the kernel's version";
}

void say_errno(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s%s\n", strerror(err), file_advice(err));
}

void say_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry '%s --help'.\n", program_invocation_short_name);
	exit(2);
}

void make_printable(char *s)
{
	unsigned char *c = (unsigned char *)s;

	for (; *c; c++) {
		if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			*c++ = '?';
		else if (*c >= 0x20 && *c != 0x7f)
			continue;
		*c = '?';
	}
}
