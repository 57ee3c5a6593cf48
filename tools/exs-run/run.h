/* SPDX-License-Identifier: MIT */
#ifndef EXS_RUN_RUN_H
#define EXS_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * elf.c: why the dynamic linker will not preload our library into the program @path, or
 * NULL: it will. For a script, the interpreter counts.
 */
const char *why_no_preload(const char *path);
/* The file that execvp() will find, perhaps in @path; or @name itself. */
const char *find_program(const char *name, char *path, size_t room);

/* cgroup.c: whole cgroups, by BPF. @cgroup: a directory, NULL: all. Return: exit status. */
int cgroup_on(const char *cgroup, int protocol);
/* A BPF program for @cgroup. Return: its link, or -1; prints the reason. */
int cgroup_attach(const char *cgroup, int protocol);
/* @all: for every cgroup and the system. */
int cgroup_off(const char *cgroup, bool all);
int cgroup_status(int protocol);

/*
 * own.c: moves the calling process into a cgroup of its own, with EXS on until the last process
 * in it has gone. Return: false: failed; prints the reason.
 */
bool cgroup_own(int protocol);
/* Whether the sockets of this process are EXS already, because of a cgroup or the system. */
bool cgroup_is_on(int protocol);

/* btf.c: the number of a kernel function; 0: no such function; -1 and errno. */
int btf_function(const char *name);

/* program.c: load the BPF program. Return: descriptor; -1 and errno, and the verifier's @log. */
struct program {
	int protocol;
	int function;		/* what it is attached to */
	int cgroups;		/* map of one cgroup, or -1: everywhere */
	unsigned long long lists[2];	/* of protocols: AF_INET, AF_INET6; 0: none */
};

int program_load(const struct program *p, char *log, size_t room);
int sys_bpf(int cmd, void *attr, size_t size);

#endif
