// SPDX-License-Identifier: MIT
/*
 * Whole cgroups: a BPF program chooses the protocol of a socket. Its link has a name in
 * the BPF file system, so it stays until the name is removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/exs.h>

#include "net.h"
#include "run.h"
#include "say.h"

#define PINS		"/sys/fs/bpf"
#define PREFIX		"exs-run-"
#define CGROUPS		"/sys/fs/cgroup"
#define HOOK		"update_socket_protocol"
#define NO_PROTOCOL	"the module exs was loaded with protocol=0: modprobe -r exs && modprobe exs"

/* Names of links: a cgroup's has its number, because its path may change. */
static bool pin_name(const char *cgroup, char *name, size_t room)
{
	struct statfs fs;
	struct stat st;

	if (!cgroup) {
		snprintf(name, room, PINS "/" PREFIX "system");
		return true;
	}
	if (statfs(cgroup, &fs) || stat(cgroup, &st)) {
		say_errno("%s", cgroup);
		return false;
	}
	if (fs.f_type != CGROUP2_SUPER_MAGIC || !S_ISDIR(st.st_mode)) {
		say("%s: not a cgroup (version 2): those are below /sys/fs/cgroup", cgroup);
		return false;
	}
	snprintf(name, room, PINS "/" PREFIX "cgroup-%ju", (uintmax_t)st.st_ino);
	return true;
}

static bool check_pins(void)
{
	struct statfs fs;

	if (!statfs(PINS, &fs) && fs.f_type == BPF_FS_MAGIC)
		return true;
	say(PINS " is not a BPF file system: mount -t bpf none " PINS);
	return false;
}

/* The protocols of SOCK_STREAM are the second list of the kernel's array. */
static uint64_t stream_list(uint64_t array)
{
	return array ? array + SOCK_STREAM * 2 * sizeof(void *) : 0;
}

static bool find_lists(struct program *p)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[128];
	uint64_t addr;

	while (f && fgets(line, sizeof(line), f)) {
		/* The file is long: most lines are not parsed. */
		if (!strstr(line, " inetsw"))
			continue;
		if (sscanf(line, "%" SCNx64 " %*c %127s", &addr, name) != 2)
			continue;
		if (!strcmp(name, "inetsw"))
			p->lists[0] = stream_list(addr);
		else if (!strcmp(name, "inetsw6"))
			p->lists[1] = stream_list(addr);
	}
	if (f)
		fclose(f);
	if (!p->lists[0])
		say("no protocols in /proc/kallsyms: this needs CAP_SYSLOG, and kernel.kptr_restrict=1");
	return p->lists[0];
}

static bool find_hook(struct program *p)
{
	p->function = btf_function(HOOK);
	if (p->function < 0)
		say("/sys/kernel/btf/vmlinux: %s: for cgroups, start a kernel with CONFIG_DEBUG_INFO_BTF",
		    strerror(errno));
	else if (!p->function)
		say("this kernel has no " HOOK ": whole cgroups need Linux 6.6 or later (with CONFIG_MPTCP)");
	return p->function > 0;
}

/* A map with one cgroup. */
static int map_cgroup(const char *cgroup)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_CGROUP_ARRAY,
		.key_size = sizeof(uint32_t), .value_size = sizeof(uint32_t), .max_entries = 1,
	};
	uint32_t key = 0, fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int map = sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&fd;
	if (map >= 0 && sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)))
		map = -1;
	if ((int)fd >= 0)
		close(fd);
	return map;
}

static int link_program(int program)
{
	union bpf_attr attr = {
		.link_create = { .prog_fd = program, .attach_type = BPF_MODIFY_RETURN },
	};

	return sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
}

static bool pin(int link, const char *name)
{
	union bpf_attr attr = { .pathname = (uintptr_t)name, .bpf_fd = link };

	return !sys_bpf(BPF_OBJ_PIN, &attr, sizeof(attr));
}

#define NEEDED "Each cgroup, and each program started by BPF, needs one: use --cgroup once, for one above them"

static int explain(const char *what, const char *log)
{
	if (errno == EPERM)
		say("%s: this needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (run it as root)", what);
	else if (errno == E2BIG && !*log)
		say("%s: the kernel has no room for more at " HOOK " (it takes 38). "
		    NEEDED, what);
	else
		say("%s%s%s: %s%s", what, *log ? ": " : "", log, strerror(errno), file_advice(errno));
	return 1;
}

static int attach(const struct program *p)
{
	static char log[8192];
	int program = program_load(p, log, sizeof(log)), link;

	if (program < 0) {
		explain("the kernel refuses the BPF program", log);
		return -1;
	}
	link = link_program(program);
	if (link < 0)
		explain("the BPF program cannot be attached", "");
	close(program);
	return link;
}

/* While EXS is switched off, sockets of the protocol are made, and fall back. */
static bool is_ready(int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return false;
	close(fd);
	return exs_family() >= 0 || errno != EAFNOSUPPORT;
}

/* The protocol may be missing now: until it is there, sockets are TCP. */
static void look_for_module(int protocol)
{
	if (!is_ready(protocol))
		say("sockets stay TCP: %s", net_why_missing());
}

int cgroup_attach(const char *cgroup, int protocol)
{
	struct program p = { .protocol = protocol, .cgroups = -1 };
	int link;

	if (!protocol) {
		say(NO_PROTOCOL);
		return -1;
	}
	if (!find_hook(&p) || !find_lists(&p))
		return -1;
	if (cgroup) {
		p.cgroups = map_cgroup(cgroup);
		if (p.cgroups < 0) {
			explain(cgroup, "");
			return -1;
		}
	}
	look_for_module(protocol);
	link = attach(&p);
	if (p.cgroups >= 0)
		close(p.cgroups);
	return link;
}

#define FRESH_MAX	(PATH_MAX + sizeof("-new"))

static void fresh_name(char fresh[FRESH_MAX], const char *name)
{
	snprintf(fresh, FRESH_MAX, "%s-new", name);
}

/* It may be on already, perhaps for another protocol. If this fails, it stays so. */
static bool pin_over(int link, const char *name)
{
	char fresh[FRESH_MAX];

	fresh_name(fresh, name);
	unlink(fresh);
	if (!pin(link, fresh))
		return false;
	if (!rename(fresh, name))
		return true;
	unlink(fresh);
	return false;
}

int cgroup_on(const char *cgroup, int protocol)
{
	char name[PATH_MAX];
	int link;

	if (!check_pins() || !pin_name(cgroup, name, sizeof(name)))
		return 1;
	link = cgroup_attach(cgroup, protocol);
	if (link < 0)
		return 1;
	return pin_over(link, name) ? 0 : explain(name, "");
}

/* Return: the number of links for which @look succeeds; -1: no directory. */
static int each_pin(bool (*look)(const char *name))
{
	char name[PATH_MAX];
	struct dirent *d;
	DIR *dir = opendir(PINS);
	int good = 0;

	if (!dir) {
		say_errno("where EXS is on is not known: " PINS);
		return -1;
	}
	while ((d = readdir(dir)))
		if (!strncmp(d->d_name, PREFIX, strlen(PREFIX))) {
			snprintf(name, sizeof(name), PINS "/%s", d->d_name);
			good += look(name);
		}
	closedir(dir);
	return good;
}

static bool failed;

static bool take_away(const char *name)
{
	if (!unlink(name) || errno == ENOENT)
		return true;
	say_errno("%s", name);
	failed = true;
	return false;
}

int cgroup_off(const char *cgroup, bool all)
{
	char name[PATH_MAX], fresh[FRESH_MAX];

	if (all)
		return each_pin(take_away) < 0 || failed;
	if (!pin_name(cgroup, name, sizeof(name)))
		return 1;
	fresh_name(fresh, name);
	unlink(fresh);
	return !take_away(name);
}

/* nftw(3) passes nothing on: the number to be found, and its path. */
static struct {
	uintmax_t number;
	char path[PATH_MAX];
} wanted;

static int is_wanted(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct statfs fs;

	(void)ftw;
	/* Another file system may have the same number. */
	if (type != FTW_D || st->st_ino != wanted.number || statfs(path, &fs) ||
	    fs.f_type != CGROUP2_SUPER_MAGIC)
		return 0;
	snprintf(wanted.path, sizeof(wanted.path), "%s", path);
	return 1;
}

/* A link, and the path of its cgroup. */
static bool show(const char *name)
{
	static const char prefix[] = PINS "/" PREFIX "cgroup-";

	if (strncmp(name, prefix, strlen(prefix))) {
		puts(name);
		return true;
	}
	wanted.number = strtoumax(name + strlen(prefix), NULL, 10);
	printf("%s: %s\n", name, nftw(CGROUPS, is_wanted, 16, FTW_PHYS) == 1 ?
	       wanted.path : "no cgroup below " CGROUPS);
	return true;
}

int cgroup_status(int protocol)
{
	printf("protocol %d: %s\n", protocol, !protocol ? NO_PROTOCOL :
	       is_ready(protocol) ? "ready" : net_why_missing());
	return each_pin(show) < 0;
}
