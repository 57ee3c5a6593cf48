// SPDX-License-Identifier: GPL-2.0
/*
 * Data that cannot be mistaken: byte n of stream s depends on both, so that a
 * byte lost, doubled, moved or from another stream is found where it is.
 */
#include "e2e.h"

#include <fcntl.h>
#include <linux/exs.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* splitmix64's finisher: neighbours have nothing in common. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	return mix(*state);
}

static uint64_t word_at(uint64_t seed, uint64_t pos)
{
	return mix(mix(seed) ^ pos / 8);
}

void data_fill(uint64_t seed, uint64_t pos, void *buf, size_t len)
{
	unsigned char *p = buf;
	uint64_t word;
	size_t n;

	while (len) {
		word = word_at(seed, pos);
		n = 8 - pos % 8;
		if (n > len)
			n = len;
		memcpy(p, (char *)&word + pos % 8, n);
		p += n;
		pos += n;
		len -= n;
	}
}

/* Where the first wrong byte is; @len if there is none. */
static size_t first_wrong(uint64_t seed, uint64_t pos, const unsigned char *p, size_t len)
{
	unsigned char right[4096];
	size_t done, n, i;

	for (done = 0; done < len; done += n) {
		n = len - done < sizeof(right) ? len - done : sizeof(right);
		data_fill(seed, pos + done, right, n);
		if (!memcmp(right, p + done, n))
			continue;
		for (i = 0; right[i] == p[done + i]; i++)
			;
		return done + i;
	}
	return len;
}

bool data_same(uint64_t seed, uint64_t pos, const void *buf, size_t len)
{
	return first_wrong(seed, pos, buf, len) == len;
}

/* Which position of the stream the bytes at @p are, to tell how they got there. */
static long found_at(uint64_t seed, const unsigned char *p, size_t len)
{
	unsigned char window[64];
	uint64_t pos;

	if (len < 16)
		return -1;
	for (pos = 0; pos < 8 * MIB; pos++) {
		data_fill(seed, pos, window, 16);
		if (!memcmp(window, p, 16))
			return pos;
	}
	return -1;
}

void data_check(uint64_t seed, uint64_t pos, const void *buf, size_t len)
{
	const unsigned char *p = buf;
	size_t at = first_wrong(seed, pos, p, len);

	check(at == len,
	      "wrong data at position %llu (%zu of %zu bytes): found what belongs to position %ld",
	      (unsigned long long)pos + at, at, len, found_at(seed, p + at, len - at));
}

void send_all(int fd, uint64_t seed, uint64_t pos, size_t len)
{
	char buf[65536];
	size_t n;

	while (len) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		data_fill(seed, pos, buf, n);
		n = must(send(fd, buf, n, MSG_NOSIGNAL));
		check(n, "send took nothing");
		pos += n;
		len -= n;
	}
}

void recv_all(int fd, uint64_t seed, uint64_t pos, size_t len)
{
	char buf[65536];
	size_t n;

	while (len) {
		n = must(recv(fd, buf, len < sizeof(buf) ? len : sizeof(buf), 0));
		check(n, "end of data at position %llu, %zu bytes early", (unsigned long long)pos, len);
		data_check(seed, pos, buf, n);
		pos += n;
		len -= n;
	}
}

/* Bytes that the peer's ring takes of a stream of AF_EXS without a reader; other sockets: not known. */
static uint64_t ring_of(int fd)
{
	socklen_t len = sizeof(int);
	int ring;

	return getsockopt(fd, SOL_EXS, EXS_SO_RING, &ring, &len) ? 0 : ring;
}

static uint64_t unsent(int fd)
{
	int n;

	return ioctl(fd, SIOCOUTQ, &n) ? 0 : n;
}

/*
 * Full for good: the bytes that the socket buffered have gone as far as they can. A ring's last quarter may be on its
 * way back to us; if less than the rest has gone, the peer's kernel has yet to come to it, and is given time.
 */
static bool stays_full(int fd, uint64_t pos)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	bool early = pos - unsent(fd) < ring_of(fd) / 4 * 3;

	return !must(poll(&p, 1, limit_ms() / (early ? 10 : 100)));
}

size_t send_until_full(int fd, uint64_t seed)
{
	char buf[16384];
	uint64_t pos = 0;
	bool full = false;
	ssize_t n;

	do {
		data_fill(seed, pos, buf, sizeof(buf));
		n = send(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		full = n < 0 && full;
		if (n > 0) {
			pos += n;
			continue;
		}
		check(n < 0 && errno == EAGAIN, "send is %zd (%s), not EAGAIN", n, errno_name(errno));
		check(pos < 256ull * MIB, "256 MiB sent and nobody reads: nothing bounds it");
		/* Once more after a while: TCP takes less than poll() promises. */
		if (full)
			return pos;
		full = stays_full(fd, pos);
	} while (true);
}

void *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED, "mmap of %zu bytes: %s", len, errno_name(errno));
	return p;
}
