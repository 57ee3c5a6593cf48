// SPDX-License-Identifier: MIT
/*
 * How an event finds the structure that its call was given: the operation
 * carries its address through the kernel, some bits of the call's own in those
 * that its alignment leaves free, and the process in those that no user address
 * has. A queue may be shared, and an address means nothing in another process.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib.h"

#define ARG_BITS	3ULL
#define ARG_NONCE_SHIFT	48
#define ARG_ADDR	(((1ULL << ARG_NONCE_SHIFT) - 1) & ~ARG_BITS)

static uint32_t nonce;	/* atomic; bit 16: it was chosen */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child draws its own: not its parent's, nor its siblings'. */
static void forked(void)
{
	nonce = 0;
}

static void nonce_init(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static uint16_t process_nonce(void)
{
	uint32_t have = __atomic_load_n(&nonce, __ATOMIC_RELAXED);
	uint32_t made = 0;

	if (have)
		return have;
	pthread_once(&once, nonce_init);
	if (getrandom(&made, 2, GRND_NONBLOCK) != 2)
		made = getpid();
	made = (made & 0xffff) | 0x10000;
	if (__atomic_compare_exchange_n(&nonce, &have, made, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return made;
	return have;
}

int exs_arg_make(const void *addr, unsigned int bits, __u64 *arg)
{
	uint64_t a = (uintptr_t)addr;

	if (a & ~ARG_ADDR) {
		errno = EFAULT;
		return -1;
	}
	*arg = a | bits | (uint64_t)process_nonce() << ARG_NONCE_SHIFT;
	return 0;
}

void *exs_arg_addr(uint64_t arg)
{
	if (arg >> ARG_NONCE_SHIFT != process_nonce())
		return NULL;
	return (void *)(uintptr_t)(arg & ARG_ADDR);
}
