/* SPDX-License-Identifier: MIT */
#ifndef EXS_RUN_RUN_H
#define EXS_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * elf.c: why the dynamic linker will not preload our library into the program @path, or
 * NULL: it will. A script is its interpreter.
 */
const char *why_no_preload(const char *path);

/* cgroup.c: whole cgroups, by a BPF program; @cgroup: a directory, NULL: all. Exit status. */
int cgroup_on(const char *cgroup, int protocol);
/* @all: whatever there is. */
int cgroup_off(const char *cgroup, bool all);
int cgroup_status(int protocol);

/* btf.c: a function of the kernel's; 0: it has none of that name, -1 and errno. */
int btf_function(const char *name);

/* program.c: the BPF program; its descriptor, or -1 and errno. Verifier's words in @log. */
struct program {
	int protocol;
	int function;		/* what it is attached to */
	int cgroups;		/* map of one cgroup, or -1: everywhere */
	unsigned long long lists[2];	/* of protocols: AF_INET, AF_INET6; 0: none */
};

int program_load(const struct program *p, char *log, size_t room);
int sys_bpf(int cmd, void *attr, size_t size);

#endif
