// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cp.h"
#include "digest.h"

struct digest {
	XXH64_state_t *state;
	unsigned char buf[64 << 10];
};

struct digest *digest_new(void)
{
	struct digest *d = malloc(sizeof(*d));

	if (!d)
		return NULL;
	d->state = XXH64_createState();
	if (d->state) {
		digest_reset(d);
		return d;
	}
	free(d);
	return NULL;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	XXH64_freeState(d->state);
	free(d);
}

void digest_reset(struct digest *d)
{
	XXH64_reset(d->state, 0);
}

void digest_add(struct digest *d, const void *data, size_t len)
{
	XXH64_update(d->state, data, len);
}

void digest_get(const struct digest *d, uint8_t out[WIRE_DIGEST])
{
	XXH64_canonical_t c;

	XXH64_canonicalFromHash(&c, XXH64_digest(d->state));
	memcpy(out, c.digest, WIRE_DIGEST);
}

bool digest_add_file(struct digest *d, int fd, uint64_t len)
{
	uint64_t pos = 0, want;
	ssize_t n;

	while (pos < len) {
		want = len - pos;
		if (want > sizeof(d->buf))
			want = sizeof(d->buf);
		n = pread(fd, d->buf, want, pos);
		if (!n)
			errno = 0;
		if (n <= 0 || interrupted)
			return false;
		digest_add(d, d->buf, n);
		pos += n;
	}
	return true;
}
