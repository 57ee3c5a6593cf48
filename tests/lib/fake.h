/* SPDX-License-Identifier: MIT */
/*
 * A kernel for the library's unit tests: the ioctls of AF_EXS on queues that
 * are memory files, so that mappings, dup, fork and passing them are real.
 */
#ifndef TESTS_LIB_FAKE_H
#define TESTS_LIB_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/exs.h>

#define FAKE_CAPACITY	4096

struct fake_state {
	unsigned long ioctls;		/* how many were made                */
	unsigned long waits;		/* of these, EXS_IOC_WAIT            */
	unsigned long looks;		/* of these, without waiting         */
	int submit_errno;		/* error of SUBMIT                   */
	int claim_errno;		/* error of CLAIM                    */
	int listener;			/* whose connection is claimed, an
					   ordinary one; 0: another          */
	int again_errno;		/* error of EXS_CLAIM_AGAIN          */
	struct exs_cqe claimed;		/* entry that EXS_CLAIM_BACK posts   */
	int cancel_errno;		/* error of CANCEL                   */
	unsigned int cancelled;		/* how many CANCEL is to find        */
	struct exs_ioc_cancel cancel;	/* the last one                      */
	struct exs_sqe sqe;		/* the last one submitted            */
	unsigned int submits;		/* calls that submitted              */
	unsigned int submitted;		/* operations that were accepted     */
	unsigned int room;		/* for so many; 0: for any number    */
	struct exs_sqe_msg msg;		/* of SENDMSG, RECVMSG, SENDFILE     */
	struct exs_sqe_iovec iov[EXS_IOV_MAX];
	size_t send_max;		/* of one sendmsg(2); 0: all         */
	int eventfd;			/* every queue's; 0: none yet        */
	bool eventfd_raced;		/* another thread makes it first     */
	unsigned int made_with;		/* flags of the last queue or region */
	bool family_gone;		/* family 25 answers no probe        */
	bool native;			/* every socket is of the family     */
	int family;			/* the number that does; 0: 25       */
	unsigned int abi;		/* 0: the right one                  */
	bool device;			/* there is EXS_DEVICE               */
	unsigned int device_opens;	/* how often it was opened           */
	unsigned int sockets;		/* how many were made                */
	unsigned int getsockopts;	/* calls                             */
	void (*on_close)(void);		/* before a queue's descriptor goes  */
	void (*on_munmap)(void);	/* before the next                   */
};
extern struct fake_state fake;

/* Start of head and tail: the sequence has no end, so it may begin anywhere. */
int fake_queue(uint64_t first);
void fake_post(int q, const struct exs_cqe *cqe);
void fake_post_n(int q, uint64_t first_handle, unsigned int n);
uint64_t fake_head(int q);
void fake_set_head(int q, uint64_t head);
uint64_t fake_tail(int q);
void fake_set_entry_size(int q, uint32_t size);
/* As ->flush; for dup2(2), which is not intercepted. */
void fake_flush(int q);

#endif
