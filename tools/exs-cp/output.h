/* SPDX-License-Identifier: MIT */
/*
 * The output file. It is called .NAME.part in its final directory, and renamed when it is
 * complete and on the disk. Other outputs (standard output, a device) are written
 * directly.
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
	uint64_t pos;		/* bytes written, or there before */
	char name[NAME_MAX + 1];
	char part[NAME_MAX + 1];
	char text[OUTPUT_TEXT];	/* the error message */
};

/* Whether the destination can be written, as far as this is known without a name;
 * otherwise out->text has the reason.
 */
bool output_check(struct output *out, const char *dest);
/* @dest: the receiver's argument; @name: the sender's name of the file. */
bool output_open(struct output *out, const char *dest, const char *name);
bool output_restart(struct output *out);
bool output_write(struct output *out, const void *data, size_t len);
/* If it fails, output_abandon() is next. */
bool output_commit(struct output *out, unsigned int mode);
/* @keep: the part stays, for the next copy. */
void output_abandon(struct output *out, bool keep);

#endif
