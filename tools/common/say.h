/* SPDX-License-Identifier: MIT */
/* Messages: on standard error, after the program's name, one printable line each. */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include <stdbool.h>

/* Called before a message, if it is set: a progress bar goes out of the way. */
extern void (*say_hook)(void);

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* With ": ", the text of errno, and file_advice(). */
void say_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What to do about an error of a file or of memory; "": the text of errno says it. */
const char *file_advice(int err);
/* Exit status 2: the command line was wrong. */
void say_usage(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * Text from elsewhere may contain anything: control characters (ASCII, and UTF-8's C1) become '?'.
 */
void make_printable(char *s);

#endif
