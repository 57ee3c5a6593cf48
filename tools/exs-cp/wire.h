/* SPDX-License-Identifier: MIT */
/*
 * One connection carries any number of files, one after the other.
 *
 *	sender				receiver
 *	------				--------
 *	hello		-->
 *			<--		reply: yes, or an error
 *   for each file
 *	file		-->
 *			<--		reply: offset and digest of the part
 *	start		-->		start of the data: that offset, or 0
 *	data		-->		raw, exactly size - offset bytes
 *	trailer		-->		digest of the whole file
 *			<--		reply: the file has its name, or an error
 *   at the end
 *	file: end	-->
 *
 * If the size is not known (a pipe), the sender shuts down its side after the trailer, so
 * such a file is the last one. The receiver may send its last reply early, if it cannot
 * continue.
 *
 * Numbers are little-endian. Reserved bytes are zero.
 */
#ifndef EXS_CP_WIRE_H
#define EXS_CP_WIRE_H

#include <endian.h>
#include <stdint.h>

#define WIRE_MAGIC	"EXSCP\0\0\1"
#define WIRE_TRAILER	"EXSCPEND"
#define WIRE_DIGEST	8
#define WIRE_NAME	256
#define WIRE_TEXT	256

#define WIRE_VERIFY	1	/* hello, reply: digests are used */

#define WIRE_FILE	1
#define WIRE_END	2

struct wire_hello {
	char magic[8];
	uint32_t size;		/* of the sender's buffers */
	uint32_t flags;
	uint8_t reserved[16];
};

struct wire_file {
	uint32_t type;
	uint32_t mode;		/* permissions */
	uint64_t size;		/* SIZE_UNKNOWN: until the end */
	uint8_t reserved[16];
	char name[WIRE_NAME];	/* ends with 0 */
};

struct wire_start {
	uint64_t offset;
	uint64_t reserved;
};

struct wire_trailer {
	char magic[8];
	uint64_t total;
	uint8_t digest[WIRE_DIGEST];
};

struct wire_reply {
	uint32_t failed;	/* 1: text has the reason */
	uint32_t flags;
	uint64_t offset;
	uint8_t digest[WIRE_DIGEST];
	char text[WIRE_TEXT];	/* ends with 0 */
};

#endif
