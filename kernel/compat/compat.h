/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One source for all kernels.
 *
 * Code is written for the newest kernel's interfaces. Where an older one
 * differs, this file offers the new shape. Whether it differs is found out by
 * compiling probe/NAME.c and probe/NAME-old.c, of which exactly one must
 * compile (probed.sh), never from a version number: stable trees backport.
 *
 * Functions that cannot be inline are in ubuf.c (struct ubuf_info). There are no
 * objects and no locks.
 */
#ifndef EXS_COMPAT_H
#define EXS_COMPAT_H

#include <linux/backing-dev.h>
#include <linux/bpf-cgroup.h>
#include <linux/eventfd.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pagemap.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/sysctl.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <compat/probed.h>

#ifndef EXS_HAVE_PROTO_ACCEPT_ARG
/* The arguments of proto_ops.accept. */
struct proto_accept_arg {
	int flags;
	int err;
	int is_empty;
	bool kern;
};
#endif

static inline int exs_compat_call_accept(struct socket *sock, const struct proto_ops *ops,
					 struct socket *newsock, struct proto_accept_arg *arg)
{
#ifdef EXS_HAVE_PROTO_ACCEPT_ARG
	return ops->accept(sock, newsock, arg);
#else
	return ops->accept(sock, newsock, arg->flags, arg->kern);
#endif
}

#ifndef EXS_HAVE_COPY_SPLICE_READ
/* Such kernels give sockets pages by ->sendpage(), too. */
static inline ssize_t copy_splice_read(struct file *file, loff_t *pos,
				       struct pipe_inode_info *pipe, size_t len,
				       unsigned int flags)
{
	return generic_file_splice_read(file, pos, pipe, len, flags);
}
#endif

#ifndef EXS_HAVE_SOCKADDR_UNSIZED
#define sockaddr_unsized sockaddr
#endif

#ifdef CONFIG_CGROUP_BPF
/* The verdict of the BPF programs of @sk's cgroup on an address to bind or connect to. */
static inline int exs_cgroup_bpf_sock_addr(struct sock *sk, struct sockaddr *addr, int *len,
					   enum cgroup_bpf_attach_type type, u32 *flags)
{
#ifdef EXS_HAVE_SOCK_ADDR_LEN
	return __cgroup_bpf_run_filter_sock_addr(sk, (struct sockaddr_unsized *)addr, len, type,
						 NULL, flags);
#else
	return __cgroup_bpf_run_filter_sock_addr(sk, addr, type, NULL, flags);
#endif
}
#endif

#ifdef EXS_HAVE_IPV6_PINFO_OFFSET
#if IS_ENABLED(CONFIG_IPV6)
#define EXS_IPV6_PINFO(type, member)	.ipv6_pinfo_offset = offsetof(type, member),
#else
#define EXS_IPV6_PINFO(type, member)
#endif
#else
/* IPv6's part of a socket is at the end. */
#define EXS_IPV6_PINFO(type, member)
#endif

/*
 * AF_UNIX: messages that @sk receives or sends carry the sender's credentials. @sock is its
 * socket, or was a moment ago.
 */
static inline bool exs_wants_creds(const struct sock *sk, const struct socket *sock)
{
#ifdef EXS_HAVE_SK_SCM_CREDENTIALS
	return sk->sk_scm_credentials || sk->sk_scm_pidfd;
#else
	bool pidfd = false;

#ifdef SOCK_PASSPIDFD
	pidfd = test_bit(SOCK_PASSPIDFD, &sock->flags);
#endif
	return pidfd || test_bit(SOCK_PASSCRED, &sock->flags);
#endif
}

/* One more reference on @memcg, perhaps NULL, of which the caller has one. */
static inline struct mem_cgroup *exs_memcg_get(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		css_get(&memcg->css);
#endif
	return memcg;
}

#ifndef EXS_HAVE_REGISTER_NET_SYSCTL_SZ
/* Tables end with an empty entry that @size does not count. */
static inline struct ctl_table_header *
register_net_sysctl_sz(struct net *net, const char *path,
		       struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

/* The table as a sysctl handler gets it. */
#ifdef EXS_HAVE_CTL_TABLE_CONST
#define EXS_CTL_TABLE const struct ctl_table
#else
#define EXS_CTL_TABLE struct ctl_table
#endif

#ifndef EXS_HAVE_VM_FLAGS_CLEAR
static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifndef EXS_HAVE_WQ_PERCPU
/* Workqueues are per processor unless they are made unbound. */
#define WQ_PERCPU 0
#endif

#ifndef EXS_HAVE_EVENTFD_SIGNAL_ONE
#define eventfd_signal(ctx) eventfd_signal(ctx, 1)
#endif

/* receive_fd() that writes the number to @ufd, if any, before the descriptor is there. */
static inline int exs_receive_fd(struct file *file, int __user *ufd, unsigned int flags)
{
#ifdef EXS_HAVE_RECEIVE_FD_UFD
	return receive_fd(file, ufd, flags);
#else
	/* Here the descriptor is there first, and closed again if the number cannot be written. */
	int fd = receive_fd(file, flags);

	if (fd < 0 || !ufd || !put_user(fd, ufd))
		return fd;
	close_fd(fd);
	return -EFAULT;
#endif
}

#ifndef EXS_HAVE_GET_FILE_ACTIVE
/* Files are freed by RCU, and not reused before. */
static inline struct file *get_file_active(struct file **f)
{
	struct file *file;

	rcu_read_lock();
	file = READ_ONCE(*f);
	if (file && !get_file_rcu(file))
		file = NULL;
	rcu_read_unlock();
	return file;
}
#endif

/* Drop a reference that is not the last. Return: whether; if not, the caller still has it. */
static inline bool exs_fput_unless_last(struct file *file)
{
#ifndef EXS_HAVE_FILE_REF
	return atomic_long_add_unless(&file->f_count, -1, 1);
#elif defined(CONFIG_64BIT)
	return atomic64_add_unless(&file->f_ref.refcnt, -1, FILE_REF_ONEREF);
#else
	return atomic_add_unless(&file->f_ref.refcnt, -1, FILE_REF_ONEREF);
#endif
}

/*
 * A long-term pin for reading that lasts through the program's own writes. Where
 * pinning does not see to it, the page may be one that the next write replaces
 * (the zero page, a page shared by fork()): pin it as if to write. Memory that
 * may only be read is forced, if it can be read; shared memory cannot be, and
 * has no need to be.
 */
#ifdef EXS_HAVE_PIN_UNSHARES
static inline int exs_pin_to_read(unsigned long at, int n, struct page **pages)
{
	return pin_user_pages_fast(at, n, FOLL_LONGTERM, pages);
}
#else
static inline int exs_pin_to_read(unsigned long at, int n, struct page **pages)
{
	int got = pin_user_pages_fast(at, n, FOLL_LONGTERM | FOLL_WRITE, pages);

	if (got > 0)
		return got;
	n = pin_user_pages_fast(at, n, FOLL_LONGTERM, pages);
	if (n <= 0)
		return n;
	unpin_user_pages(pages, n);
	got = pin_user_pages_fast(at, n, FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE, pages);
	if (got > 0)
		return got;
	return pin_user_pages_fast(at, n, FOLL_LONGTERM, pages);
}
#endif

/*
 * A long-term pin for writing. Not of pages that a file system writes back: marking one
 * dirty needs its lock, and may wait for a server of the file system, as with FUSE.
 */
#ifdef EXS_HAVE_PIN_USER_PAGES_NOVMAS
/* It refuses such pages itself. */
static inline int exs_pin_to_write(unsigned long at, int n, struct page **pages)
{
	return pin_user_pages_fast(at, n, FOLL_LONGTERM | FOLL_WRITE, pages);
}
#else
static inline bool exs_page_is_written_back(struct page *page)
{
	struct address_space *mapping;

	mapping = PageAnon(page) ? NULL : folio_mapping(page_folio(page));
	return mapping && mapping_can_writeback(mapping);
}

static inline int exs_pin_to_write(unsigned long at, int n, struct page **pages)
{
	int i, got = pin_user_pages_fast(at, n, FOLL_LONGTERM | FOLL_WRITE, pages);

	for (i = 0; i < got; i++) {
		if (!exs_page_is_written_back(pages[i]))
			continue;
		unpin_user_pages(pages, got);
		return -EFAULT;
	}
	return got;
}
#endif

#ifndef EXS_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#ifndef ITER_SOURCE
/* Macros wherever they exist, so no probe is needed. */
#define ITER_SOURCE	WRITE
#define ITER_DEST	READ
#endif

#ifndef iter_iov_addr
static inline void __user *iter_iov_addr(const struct iov_iter *iter)
{
	return iter->iov->iov_base + iter->iov_offset;
}
#endif

#ifndef MSG_SPLICE_PAGES
/* Without it sockets take pages by reference only by ->sendpage(). */
#define MSG_SPLICE_PAGES	0
#endif

/*
 * Of a call to the family's own sendmsg(): its memory is pages that have to be referenced. Where
 * ->sendpage() makes such calls, no other call has this bit together with an ITER_BVEC.
 */
#define EXS_MSG_SPLICE_PAGES	(MSG_SPLICE_PAGES ?: 0x8000000)

/*
 * Have SOL_SOCKET's options come to exs_setsockopt(), as SO_ZEROCOPY knows TCP alone. Without
 * it that is EOPNOTSUPP.
 */
static inline void exs_take_sol_socket(struct socket *sock)
{
#ifdef EXS_HAVE_CUSTOM_SOCKOPT
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
#endif
}

/* A notification of MSG_ZEROCOPY; NULL: no memory. Its pages are charged elsewhere. */
static inline struct ubuf_info *exs_msg_zerocopy_alloc(struct sock *sk)
{
#ifdef EXS_HAVE_ZEROCOPY_DEVMEM
	return msg_zerocopy_realloc(sk, 0, NULL, false);
#else
	return msg_zerocopy_realloc(sk, 0, NULL);
#endif
}

/* A ubuf_info is known for ours by the function that it names. */
void exs_ubuf_complete(struct sk_buff *skb, struct ubuf_info *ubuf, bool success);

#ifdef EXS_HAVE_UBUF_INFO_OPS
extern const struct ubuf_info_ops exs_ubuf_ops;
#endif

static inline void exs_ubuf_mark(struct ubuf_info *ubuf)
{
#ifdef EXS_HAVE_UBUF_INFO_OPS
	ubuf->ops = &exs_ubuf_ops;
#else
	ubuf->callback = exs_ubuf_complete;
#endif
}

static inline bool exs_ubuf_is_marked(const struct ubuf_info *ubuf)
{
#ifdef EXS_HAVE_UBUF_INFO_OPS
	return ubuf->ops == &exs_ubuf_ops;
#else
	return ubuf->callback == exs_ubuf_complete;
#endif
}

#ifndef IOCB_AIO_RW
/* Without it a kiocb of Linux AIO cannot be recognised: then none is queued. */
#define IOCB_AIO_RW	0
#endif

/* EXS_FEATURE_*: those that not every kernel can have. */
#ifdef EXS_HAVE_MSG_IOCB
#define EXS_COMPAT_FEATURES	EXS_FEATURE_AIO_READ
#else
#define EXS_COMPAT_FEATURES	0
#endif

/* The kiocb of a read of Linux AIO; NULL where recvmsg() does not get it. */
static inline struct kiocb *exs_msg_aio(const struct msghdr *msg)
{
#ifdef EXS_HAVE_MSG_IOCB
	if (msg->msg_iocb && msg->msg_iocb->ki_flags & IOCB_AIO_RW)
		return msg->msg_iocb;
#endif
	return NULL;
}

#endif
