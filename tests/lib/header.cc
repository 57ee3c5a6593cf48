// SPDX-License-Identifier: MIT
/*
 * Compiled as C and as C++: the header needs nothing before it, and declares all calls, with these types.
 */
#include <exs.h>
#include <assert.h>

exs_event_t header_event;
exs_evt_xfer_t header_xfer;
exs_evt_accept_t header_accept;
exs_acceptaddr_t header_acceptaddr;
exs_op_t header_op;
exs_fdvec_t header_fdvec;
exs_iovec_t header_iovec;
exs_msghdr_t header_msghdr;
exs_pollfd_t header_pollfd;
exs_signal_t header_signal;
exs_timeout_t header_timeout;
exs_xferfile_t header_xferfile;
exs_evt_poll_t header_evt_poll;
exs_evt_xferfile_t header_evt_xferfile;
exs_evt_xfermsg_t header_evt_xfermsg;
exs_qhandle_t header_queue = EXS_QHANDLE_INVALID;
exs_mhandle_t header_regions[] = { EXS_MHANDLE_INVALID, EXS_MHANDLE_UNREGISTERED };
exs_ahandle_t header_handle = UINT64_MAX;

static_assert(sizeof(exs_ahandle_t) == 8, "handles are 64-bit scalars");
static_assert(sizeof(exs_event_t) == 64, "the size of an event is fixed");
static_assert(EXS_VERSION == EXS_VERSION1, "there is one version");

int header_constants[] = {
	EXS_MRF_SHARED, EXS_ACCESS_READ, EXS_ACCESS_WRITE,
	EXS_QATTR_DEPTH, EXS_QATTR_EVENTS, EXS_QATTR_EVENTFD,
	EXS_QATTR_SIGNAL, EXS_QATTR_WAIT, EXS_SIG_ENABLE, EXS_SIG_DISABLE,
	EXS_WAIT_ADAPTIVE, EXS_WAIT_NOTIFY, EXS_WAIT_BUSY_POLL,
	EXS_POLLIN, EXS_POLLOUT, EXS_IOVEC, EXS_FDVEC,
	SO_ASYNC_RECV_ORDERED, SO_ASYNC_SEND_TIMEOUT, SO_ASYNC_RECV_TIMEOUT,
	EXS_TIMEOUT_ONCE,
	EXS_EVTVEC_MAX, EXS_SHUT_WR, EXS_CAF_FILDES, EXS_CAF_AHANDLE,
	EXS_EVT_CONNECT, EXS_EVT_ACCEPT, EXS_EVT_SEND, EXS_EVT_RECV,
	EXS_EVT_CLOSE, EXS_EVT_SHUTDOWN, EXS_EVT_POLL, EXS_EVT_SENDMSG,
	EXS_EVT_RECVMSG, EXS_EVT_SENDFILE, EXS_EVT_SENDTIMEOUT, EXS_EVT_RECVTIMEOUT,
};

/* The arguments in their order, and that the names are functions. */
struct header_calls {
	int (*init)(int);
	int (*family)(void);
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*shutdown)(int, int, exs_qhandle_t, exs_ahandle_t);
	int (*close)(int, int, exs_qhandle_t, exs_ahandle_t);
	exs_qhandle_t (*qcreate)(int);
	int (*qdelete)(exs_qhandle_t);
	int (*qdequeue)(exs_qhandle_t, exs_event_t *, int, const struct timeval *);
	int (*qmodify)(exs_qhandle_t, int, const void *);
	int (*qstatus)(exs_qhandle_t, int, void *);
	int (*cancel)(exs_qhandle_t, int, exs_ahandle_t, int);
	exs_mhandle_t (*mregister)(void *, size_t, int);
	int (*mderegister)(exs_mhandle_t);
	int (*connect)(int, const struct sockaddr *, socklen_t, int,
		       exs_qhandle_t, exs_ahandle_t);
	int (*accept)(int, exs_acceptaddr_t *, int, exs_qhandle_t, exs_ahandle_t);
	int (*send)(int, const void *, size_t, int, exs_qhandle_t,
		    exs_ahandle_t, exs_mhandle_t);
	int (*recv)(int, void *, size_t, int, exs_qhandle_t, exs_ahandle_t,
		    exs_mhandle_t);
	int (*submit)(exs_qhandle_t, const exs_op_t *, int);
	int (*sendmsg)(int, const exs_msghdr_t *, int, exs_qhandle_t, exs_ahandle_t);
	int (*recvmsg)(int, exs_msghdr_t *, int, exs_qhandle_t, exs_ahandle_t);
	int (*sendfile)(int, exs_xferfile_t *, int, exs_qhandle_t, exs_ahandle_t);
	int (*poll)(exs_pollfd_t *, int, int, exs_qhandle_t, exs_ahandle_t);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*fcntl)(int, int, ...);
};

struct header_calls header_calls = {
	exs_init, exs_family, exs_socket, exs_bind, exs_listen,
	exs_getsockname, exs_getpeername, exs_shutdown, exs_close,
	exs_qcreate, exs_qdelete, exs_qdequeue, exs_qmodify, exs_qstatus,
	exs_cancel, exs_mregister, exs_mderegister,
	exs_connect, exs_accept, exs_send, exs_recv, exs_submit, exs_sendmsg, exs_recvmsg,
	exs_sendfile, exs_poll, exs_setsockopt, exs_getsockopt, exs_fcntl,
};

int header_fields(void);
int header_fields(void)
{
	return header_event.exs_evt_type + header_event.exs_evt_socket +
	       header_event.exs_evt_errno + header_event.exs_evt_flags +
	       (int)header_event.exs_evt_ahandle +
	       (int)header_event.exs_evt_union.exs_evt_xfer.exs_evt_length +
	       header_event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
}
