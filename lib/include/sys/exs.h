/* SPDX-License-Identifier: MIT */
/*
 * Extended Sockets (ES-API) over the kernel's AF_EXS: link with -lexs.
 *
 * A call starts an operation and returns 0; exactly one event in its queue
 * reports success or failure. If the call fails (-1 and errno), there is no
 * event. See exs(7).
 */
#ifndef _SYS_EXS_H
#define _SYS_EXS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where addresses have 32 bits, compile with -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64, as libexs is. */
typedef char exs_off_t_and_time_t_have_64_bits[sizeof(off_t) == 8 && sizeof(time_t) == 8 ? 1 : -1];

#define EXS_VERSION1	1
#define EXS_VERSION	EXS_VERSION1

/* The address family, found at run time; see exs_family(3). */
#define AF_EXS		(exs_family())
#define PF_EXS		AF_EXS

/* Queues and regions are file descriptors; exs_ahandle_t is any number of the program. */
typedef int		exs_qhandle_t;
typedef int		exs_mhandle_t;
typedef uint64_t	exs_ahandle_t;

#define EXS_QHANDLE_INVALID		(-1)	/* as queue: synchronous */
#define EXS_MHANDLE_INVALID		(-1)
#define EXS_MHANDLE_UNREGISTERED	(-2)	/* memory without a region */

/* exs_mregister(): what operations may do; 0 means both. */
#define EXS_ACCESS_READ		0x1	/* exs_send() from it */
#define EXS_ACCESS_WRITE	0x2	/* exs_recv() into it */
#define EXS_MRF_SHARED		0x4	/* no effect: regions always are shared */

/* exs_qmodify(), exs_qstatus(): the value is an int, except for SIGNAL. */
#define EXS_QATTR_DEPTH		1
#define EXS_QATTR_EVENTS	2	/* status only: unread events */
#define EXS_QATTR_EVENTFD	3
#define EXS_QATTR_SIGNAL	4	/* exs_signal_t               */
#define EXS_QATTR_WAIT		5	/* EXS_WAIT_*                 */

/* How exs_qdequeue() waits. */
#define EXS_WAIT_NOTIFY		0	/* sleeps                              */
#define EXS_WAIT_BUSY_POLL	1	/* polls all the time                  */
#define EXS_WAIT_ADAPTIVE	2	/* polls for a short time, then sleeps */

#define EXS_SIG_DISABLE		0
#define EXS_SIG_ENABLE		1

/* EXS_QATTR_SIGNAL: the process that sets it gets a signal for each event. */
typedef struct exs_signal {
	int		exs_sig_mode;	/* EXS_SIG_ENABLE, EXS_SIG_DISABLE */
	int		exs_sig_number;	/* SIGIO, SIGRTMIN + 1, ...        */
} exs_signal_t;

/* Options of AF_EXS sockets; the values are an int: see exs-options(7). */
#define SOL_EXS		0x4558
#define EXS_SO_EAGER_MAX	1	/* largest message sent with its header     */
#define EXS_SO_RING		2	/* bytes of the receive ring; 0: none       */
#define EXS_SO_ADVERTS		3	/* receives offered to the peer at once     */
#define EXS_SO_CPU		4	/* where completions are processed; -1: any  */
#define EXS_SO_INLINE_MAX	5	/* largest data inside a work request       */
#define EXS_SO_BUSY_POLL	6	/* microseconds of polling before a call sleeps */

/* Level SOL_SOCKET, by exs_setsockopt() and exs_getsockopt() */
#define SO_ASYNC_RECV_ORDERED	0x4510	/* int: always 1                            */
#define SO_ASYNC_SEND_TIMEOUT	0x4511	/* exs_timeout_t, or a struct timeval:      */
#define SO_ASYNC_RECV_TIMEOUT	0x4512	/* report an operation that takes long      */

typedef struct exs_timeout {
	struct timeval	exs_time;	/* 0: never                          */
	int		exs_flags;	/* EXS_TIMEOUT_ONCE                  */
} exs_timeout_t;
#define EXS_TIMEOUT_ONCE	1

/* exs_fcntl(fd, EXS_F_SET(EXS_SO_CPU), 1); EXS_F_GET() takes an int * */
#define EXS_F_GET(option)	(0x45580000 + (option))
#define EXS_F_SET(option)	(0x45590000 + (option))

/* exs_shutdown(): how, or SHUT_RDWR; exs_sendfile(): flag */
#define EXS_SHUT_WR		SHUT_WR

/* exs_cancel(): which operations; 0: all of the queue */
#define EXS_CAF_FILDES		0x1	/* of this socket    */
#define EXS_CAF_AHANDLE		0x2	/* with this handle  */

/* exs_qdequeue(): a sensible number of events for one call, but not a limit */
#define EXS_EVTVEC_MAX		256

/* exs_evt_type */
#define EXS_EVT_CONNECT		1
#define EXS_EVT_ACCEPT		2
#define EXS_EVT_SEND		3
#define EXS_EVT_RECV		4
#define EXS_EVT_CLOSE		5
#define EXS_EVT_SHUTDOWN	6
#define EXS_EVT_SENDMSG		7
#define EXS_EVT_RECVMSG		8
#define EXS_EVT_SENDFILE	9
#define EXS_EVT_POLL		10
#define EXS_EVT_SENDTIMEOUT	11	/* the operation takes long, and continues */
#define EXS_EVT_RECVTIMEOUT	12

/* exs_accept(): exs_qdequeue() writes the peer's address here. */
typedef struct exs_acceptaddr {
	struct sockaddr	*exs_addr;	/* or NULL                           */
	socklen_t	exs_addrlen;	/* in: room at exs_addr, out: length */
} exs_acceptaddr_t;

typedef struct exs_evt_accept {
	exs_acceptaddr_t *exs_evt_addr;	/* the argument of exs_accept()      */
	int		exs_evt_newfd;	/* the connection; -1 after an error */
} exs_evt_accept_t;

/* exs_poll(): revents may have other bits of poll(2), too. */
#define EXS_POLLIN		POLLIN
#define EXS_POLLOUT		POLLOUT

typedef struct pollfd exs_pollfd_t;

typedef struct exs_evt_poll {
	exs_pollfd_t	*exs_evt_fds;	/* the argument of exs_poll()        */
	int		exs_evt_nfds;	/* the number of descriptors         */
	int		exs_evt_ready;	/* the number of ready ones          */
} exs_evt_poll_t;

typedef struct exs_evt_xfer {
	size_t		exs_evt_length;	/* bytes transferred */
} exs_evt_xfer_t;

/* exs_sendmsg(), exs_recvmsg(): like struct iovec and struct msghdr, with regions. */
typedef struct exs_iovec {
	void		*iov_base;
	size_t		iov_len;
	exs_mhandle_t	iov_mhandle;	/* or EXS_MHANDLE_UNREGISTERED       */
} exs_iovec_t;

/* Part of a file. */
typedef struct exs_fdvec {
	int		fd_file;
	off_t		fd_offset;
	size_t		fd_len;		/* at most; or EXS_TO_EOF            */
} exs_fdvec_t;
#define EXS_TO_EOF		((size_t)-1)

typedef struct exs_msghdr {
	void		*msg_name;
	socklen_t	msg_namelen;
	int		msg_iovtype;	/* EXS_IOVEC, EXS_FDVEC              */
	__extension__ union {		/* also in C99 */
		exs_iovec_t	*msg_iov;
		exs_fdvec_t	*msg_fdvec;
	};
	size_t		msg_iovlen;
	void		*msg_control;
	size_t		msg_controllen;
	int		msg_flags;
} exs_msghdr_t;

/* msg_iovtype */
#define EXS_IOVEC		0
#define EXS_FDVEC		1	/* exs_sendmsg()                     */

typedef struct exs_evt_xfermsg {
	size_t		exs_evt_length;	/* bytes transferred                 */
	exs_msghdr_t	*exs_evt_msg;	/* the argument of the call          */
} exs_evt_xfermsg_t;

/* exs_sendfile(): memory, part of a file, memory. */
typedef struct exs_xferfile {
	exs_iovec_t	*xf_header;	/* or NULL                           */
	size_t		xf_headerlen;	/* number of pieces                  */
	exs_fdvec_t	xf_file;
	exs_iovec_t	*xf_trailer;
	size_t		xf_trailerlen;
} exs_xferfile_t;

typedef struct exs_evt_xferfile {
	size_t		exs_evt_length;	/* bytes transferred: the sum        */
	size_t		exs_evt_header;	/* of the header,                    */
	size_t		exs_evt_file;	/* the file                          */
	size_t		exs_evt_trailer; /* and the trailer                  */
	exs_xferfile_t	*exs_evt_xfile;	/* the argument of the call          */
} exs_evt_xferfile_t;

typedef struct exs_event {
	int		exs_evt_type;	/* EXS_EVT_*                         */
	int		exs_evt_socket;	/* the descriptor in the call        */
	int		exs_evt_errno;	/* 0, or the error of the operation  */
	int		exs_evt_flags;	/* MSG_TRUNC, MSG_EOR                */
	exs_ahandle_t	exs_evt_ahandle;
	union {
		exs_evt_xfer_t	 exs_evt_xfer;		/* SEND, RECV */
		exs_evt_accept_t exs_evt_accept;	/* ACCEPT     */
		exs_evt_xfermsg_t exs_evt_xfermsg;	/* SENDMSG, RECVMSG */
		exs_evt_xferfile_t exs_evt_xferfile;	/* SENDFILE   */
		exs_evt_poll_t	 exs_evt_poll;		/* POLL       */
		uint64_t	 exs_evt_reserved[5];
	} exs_evt_union;
} exs_event_t;

/* exs_submit(): one operation. Unused members are 0. */
typedef struct exs_op {
	int		exs_op_type;	/* EXS_EVT_SEND, RECV, ACCEPT, CLOSE   */
	int		exs_op_fd;
	int		exs_op_flags;	/* as for the call                     */
	exs_mhandle_t	exs_op_region;
	void		*exs_op_buf;	/* ACCEPT: exs_acceptaddr_t * or NULL  */
	size_t		exs_op_len;
	exs_ahandle_t	exs_op_handle;
	uint64_t	exs_op_reserved[2];
} exs_op_t;

int exs_init(int version);
int exs_family(void);

int exs_socket(int domain, int type, int protocol);
int exs_bind(int fd, const struct sockaddr *addr, socklen_t len);
int exs_listen(int fd, int backlog);
int exs_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int exs_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int exs_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int exs_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int exs_fcntl(int fd, int cmd, ...);
int exs_shutdown(int fd, int how, exs_qhandle_t queue, exs_ahandle_t handle);
int exs_close(int fd, int flags, exs_qhandle_t queue, exs_ahandle_t handle);

exs_qhandle_t exs_qcreate(int depth);
int exs_qdelete(exs_qhandle_t queue);
int exs_qdequeue(exs_qhandle_t queue, exs_event_t *vec, int count,
		 const struct timeval *timeout);
int exs_cancel(exs_qhandle_t queue, int fd, exs_ahandle_t handle, int flags);
int exs_qmodify(exs_qhandle_t queue, int attr, const void *value);
int exs_qstatus(exs_qhandle_t queue, int attr, void *value);

exs_mhandle_t exs_mregister(void *addr, size_t len, int flags);
int exs_mderegister(exs_mhandle_t region);

int exs_connect(int fd, const struct sockaddr *addr, socklen_t len, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle);
int exs_accept(int fd, exs_acceptaddr_t *addr, int flags,
	       exs_qhandle_t queue, exs_ahandle_t handle);
int exs_send(int fd, const void *buf, size_t len, int flags,
	     exs_qhandle_t queue, exs_ahandle_t handle, exs_mhandle_t region);
int exs_recv(int fd, void *buf, size_t len, int flags,
	     exs_qhandle_t queue, exs_ahandle_t handle, exs_mhandle_t region);
int exs_sendmsg(int fd, const exs_msghdr_t *msg, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle);
int exs_recvmsg(int fd, exs_msghdr_t *msg, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle);
int exs_sendfile(int fd, exs_xferfile_t *xfer, int flags, exs_qhandle_t queue,
		 exs_ahandle_t handle);
int exs_submit(exs_qhandle_t queue, const exs_op_t *ops, int count);
int exs_poll(exs_pollfd_t *fds, int nfds, int flags, exs_qhandle_t queue,
	     exs_ahandle_t handle);

#ifdef __cplusplus
}
#endif

#endif
