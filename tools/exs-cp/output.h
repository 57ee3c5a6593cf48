/* SPDX-License-Identifier: MIT */
/*
 * The file that is written. It grows as .NAME.part in the directory that it
 * will stand in, and gets its name when it is whole and on the disk. What is
 * no regular file (standard output, a device) is written directly.
 */
#ifndef EXS_CP_OUTPUT_H
#define EXS_CP_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_TEXT	256

struct output {
	int dir;		/* descriptor */
	int fd;
	bool direct;
	uint64_t pos;		/* written, or there before */
	char name[NAME_MAX + 1];
	char part[NAME_MAX + 1];
	char text[OUTPUT_TEXT];	/* what went wrong */
};

/* Whether anything can be written there, as far as that can be told without a name;
 * out->text says why not.
 */
bool output_check(struct output *out, const char *dest);
/* @dest: the receiver's argument; @name: what the sender calls the file. */
bool output_open(struct output *out, const char *dest, const char *name);
bool output_restart(struct output *out);
bool output_write(struct output *out, const void *data, size_t len);
bool output_commit(struct output *out, unsigned int mode);
/* What is there stays for the next time if @keep. */
void output_abandon(struct output *out, bool keep);

#endif
