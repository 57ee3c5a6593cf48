// SPDX-License-Identifier: MIT
/*
 * The BPF program: it runs in each socket(2), before the protocol is looked at.
 *
 *	if ((type & SOCK_TYPE_MASK) != SOCK_STREAM || (protocol && protocol != IPPROTO_TCP))
 *		return 0;		// leave it as it is
 *	list = family == AF_INET ? inet : family == AF_INET6 ? inet6 : none;
 *	if (!list || !bpf_current_task_under_cgroup(cgroups, 0))
 *		return 0;
 *	for (p = list->next, n = 0; p != list && n < LIST_MAX; p = p->next, n++)
 *		if (p->protocol == ours)
 *			return ours;
 *	return 0;
 *
 * The list is the kernel's list of SOCK_STREAM protocols (inetsw, inetsw6): while our
 * module is not loaded, sockets stay TCP.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "run.h"

#define LIST_MAX	16	/* protocols that are looked at */
#define JUMPS_MAX	64
#define CODE_MAX	256
#define SOCK_TYPE_MASK	0xf

/* The beginning of the kernel's struct inet_protosw, since 2.4. */
struct protosw {
	uint64_t next, prev;
	uint16_t type, protocol;
};

#define NODE		(-(int)sizeof(struct protosw))	/* on the stack */

/* Offsets of the arguments in the context, as of any traced function's. */
enum { FAMILY = 0, TYPE = 8, PROTOCOL = 16 };

struct code {
	struct bpf_insn insn[CODE_MAX];
	int len;
	int jumps[JUMPS_MAX], jumps_len;	/* to the end that leaves it as it is */
};

static void emit(struct code *c, int code, int dst, int src, int off, int imm)
{
	c->insn[c->len++] = (struct bpf_insn){
		.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm,
	};
}

static void load(struct code *c, int size, int dst, int src, int off)
{
	emit(c, BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}

static void move(struct code *c, int dst, int src)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void set(struct code *c, int dst, int value)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static void set_long(struct code *c, int dst, int kind, uint64_t value)
{
	emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, kind, 0, (uint32_t)value);
	emit(c, 0, 0, 0, 0, value >> 32);
}

/* 32 bits: the upper half of a register with an int is undefined. */
static void skip_if(struct code *c, int jump, int reg, int value, int instructions)
{
	emit(c, BPF_JMP32 | jump | BPF_K, reg, 0, instructions, value);
}

static void leave_if(struct code *c, int jump, int reg, int value)
{
	c->jumps[c->jumps_len++] = c->len;
	skip_if(c, jump, reg, value, 0);
}

static void call(struct code *c, int function)
{
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

static void finish(struct code *c, int result)
{
	set(c, BPF_REG_0, result);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void leave_other_sockets(struct code *c)
{
	load(c, BPF_DW, BPF_REG_2, BPF_REG_6, TYPE);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, SOCK_TYPE_MASK);
	leave_if(c, BPF_JNE, BPF_REG_2, SOCK_STREAM);
	load(c, BPF_DW, BPF_REG_2, BPF_REG_6, PROTOCOL);
	skip_if(c, BPF_JEQ, BPF_REG_2, 0, 2);
	skip_if(c, BPF_JEQ, BPF_REG_2, IPPROTO_MPTCP, 1);
	leave_if(c, BPF_JNE, BPF_REG_2, IPPROTO_TCP);
}

/* Into register 7. */
static void choose_list(struct code *c, const struct program *p)
{
	load(c, BPF_DW, BPF_REG_2, BPF_REG_6, FAMILY);
	set_long(c, BPF_REG_7, 0, p->lists[0]);
	skip_if(c, BPF_JEQ, BPF_REG_2, AF_INET, 3);
	set_long(c, BPF_REG_7, 0, p->lists[1]);
	leave_if(c, BPF_JNE, BPF_REG_2, AF_INET6);
}

static void leave_other_cgroups(struct code *c, int cgroups)
{
	set_long(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, cgroups);
	set(c, BPF_REG_2, 0);
	call(c, BPF_FUNC_current_task_under_cgroup);
	leave_if(c, BPF_JNE, BPF_REG_0, 1);
}

/* Copies the node at register 8 to the stack, and moves register 8 to the next node. */
static void read_node(struct code *c)
{
	move(c, BPF_REG_1, BPF_REG_10);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, NODE);
	set(c, BPF_REG_2, sizeof(struct protosw));
	move(c, BPF_REG_3, BPF_REG_8);
	call(c, BPF_FUNC_probe_read_kernel);
	leave_if(c, BPF_JNE, BPF_REG_0, 0);
	load(c, BPF_DW, BPF_REG_8, BPF_REG_10, NODE);
}

static void find_protocol(struct code *c, int protocol)
{
	int i;

	move(c, BPF_REG_8, BPF_REG_7);
	read_node(c);			/* the list's head */
	for (i = 0; i < LIST_MAX; i++) {
		c->jumps[c->jumps_len++] = c->len;
		emit(c, BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_8, BPF_REG_7, 0, 0);
		read_node(c);
		load(c, BPF_H, BPF_REG_2, BPF_REG_10,
		     NODE + (int)offsetof(struct protosw, protocol));
		skip_if(c, BPF_JNE, BPF_REG_2, protocol, 2);
		finish(c, protocol);
	}
}

static void write_code(struct code *c, const struct program *p)
{
	int i;

	move(c, BPF_REG_6, BPF_REG_1);
	leave_other_sockets(c);
	choose_list(c, p);
	if (p->cgroups >= 0)
		leave_other_cgroups(c, p->cgroups);
	find_protocol(c, p->protocol);
	for (i = 0; i < c->jumps_len; i++)
		c->insn[c->jumps[i]].off = c->len - c->jumps[i] - 1;
	finish(c, 0);
}

int sys_bpf(int cmd, void *attr, size_t size)
{
	return syscall(SYS_bpf, cmd, attr, size);
}

int program_load(const struct program *p, char *log, size_t room)
{
	struct code c = { .len = 0 };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACING };
	int fd;

	write_code(&c, p);
	strcpy(attr.prog_name, "exs_run");
	attr.expected_attach_type = BPF_MODIFY_RETURN;
	attr.attach_btf_id = p->function;
	attr.insns = (uintptr_t)c.insn;
	attr.insn_cnt = c.len;
	attr.license = (uintptr_t)"Dual MIT/GPL";
	*log = 0;
	fd = sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd >= 0)
		return fd;
	/* Load it again for the log. The first try has none: a log that is too long is an error. */
	attr.log_buf = (uintptr_t)log;
	attr.log_size = room;
	attr.log_level = 1;
	return sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
}
