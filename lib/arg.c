// SPDX-License-Identifier: MIT
/*
 * The event must find the structure that its call was given. The operation carries the
 * address through the kernel: all of it, because upper bits may be a tag, with flags of the
 * call in the low bits that are 0 by alignment. It also carries a number of the process,
 * because a queue may be shared, and an address is valid in one process only. This guards
 * against mistakes: processes that share a queue trust each other (exs_qcreate(3)).
 */
#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib.h"

#define ARG_BITS	3ULL

static uint32_t nonce;	/* atomic; 0: not chosen yet */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child chooses a number of its own. */
static void forked(void)
{
	nonce = 0;
}

static void nonce_init(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static uint32_t process_nonce(void)
{
	uint32_t have = __atomic_load_n(&nonce, __ATOMIC_RELAXED);
	uint32_t made = 0;

	if (have)
		return have;
	pthread_once(&once, nonce_init);
	if (getrandom(&made, sizeof(made), GRND_NONBLOCK) != sizeof(made) || !made)
		made = getpid();
	if (__atomic_compare_exchange_n(&nonce, &have, made, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return made;
	return have;
}

int exs_arg_make(const void *addr, unsigned int bits, struct exs_sqe *sqe)
{
	uint64_t a = (uintptr_t)addr;

	if (a & ARG_BITS) {
		errno = EFAULT;
		return -1;
	}
	sqe->user_arg = a | bits;
	sqe->user_tag = process_nonce();
	return 0;
}

void *exs_arg_addr(const struct exs_cqe *cqe)
{
	if (cqe->user_tag != process_nonce())
		return NULL;
	return (void *)(uintptr_t)(cqe->user_arg & ~ARG_BITS);
}
