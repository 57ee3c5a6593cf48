// SPDX-License-Identifier: MIT
/* Runs unmodified programs over EXS. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/exs.h>

#include "rules.h"
#include "run.h"
#include "say.h"

#define LIBRARY		"libexs-run.so"
#define PARAMETER	"/sys/module/exs/parameters/protocol"

static const char usage[] =
	"Usage: exs-run [-v] [-r RULE]... [-f FILE]... PROGRAM [ARGUMENT]...\n"
	"       exs-run --cgroup=DIRECTORY | --system\n"
	"       exs-run --off [--cgroup=DIRECTORY | --system]\n"
	"       exs-run --status\n"
	"Use EXS sockets instead of TCP sockets in a program, a cgroup, or the system.\n"
	"\n"
	"  -r, --rule=RULE         a rule: exs|tcp [connect|listen] [address A[/BITS]]\n"
	"                          [port N[-M]] [program NAME]; the first match counts\n"
	"  -f, --rules=FILE        read rules, one per line\n"
	"  -v, --verbose           print the protocol of each socket, and why\n"
	"      --cgroup=DIRECTORY  turn EXS on for all programs of a cgroup, even static ones\n"
	"      --system            turn EXS on for all programs\n"
	"      --off               turn it off for the cgroup, for the system, or for all\n"
	"      --status            show where EXS is on\n"
	"  -h, --help; -V, --version\n";

enum { CGROUP = 256, SYSTEM, OFF, STATUS };

static const struct option options[] = {
	{ "rule",	required_argument,	NULL, 'r' },
	{ "rules",	required_argument,	NULL, 'f' },
	{ "verbose",	no_argument,		NULL, 'v' },
	{ "cgroup",	required_argument,	NULL, CGROUP },
	{ "system",	no_argument,		NULL, SYSTEM },
	{ "off",	no_argument,		NULL, OFF },
	{ "status",	no_argument,		NULL, STATUS },
	{ "help",	no_argument,		NULL, 'h' },
	{ "version",	no_argument,		NULL, 'V' },
	{ }
};

static struct {
	char rules[RULES_TEXT_MAX];
	const char *cgroup;
	bool system, off, status, verbose;
} args;

static void add_rules(const char *from, const char *text)
{
	static struct rules rules;

	if (!rules_parse(&rules, text, NULL))
		say_usage("%s: %s", from, rules.why);
	if (strlen(args.rules) + strlen(text) + 2 > sizeof(args.rules))
		say_usage("%s: too many rules", from);
	strcat(args.rules, text);
	strcat(args.rules, "\n");
	/* All rules are one list. */
	if (!rules_parse(&rules, args.rules, NULL))
		say_usage("%s: %s", from, rules.why);
}

static void read_rules(const char *path)
{
	static char text[RULES_TEXT_MAX];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f) {
		say_errno("%s", path);
		exit(1);
	}
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	if (ferror(f) || !feof(f) || strlen(text) != n) {
		say("%s: not a file of rules (man exs-rules)", path);
		exit(1);
	}
	fclose(f);
	add_rules(path, text);
}

static void take_option(int option)
{
	switch (option) {
	case 'r':
		return add_rules("--rule", optarg);
	case 'f':
		return read_rules(optarg);
	case 'v':
		args.verbose = true;
		break;
	case CGROUP:
		args.cgroup = optarg;
		break;
	case SYSTEM:
		args.system = true;
		break;
	case OFF:
		args.off = true;
		break;
	case STATUS:
		args.status = true;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("exs-run 1.0");
		exit(0);
	default:
		say_usage("wrong option");
	}
}

/* The module's number, or the default: the module can be loaded later. */
static int protocol(void)
{
	FILE *f = fopen(PARAMETER, "re");
	int number = EXS_PROTOCOL_DEFAULT;

	if (f && fscanf(f, "%d", &number) != 1)
		number = EXS_PROTOCOL_DEFAULT;
	if (f)
		fclose(f);
	return number;
}

/* Next to this program (build directory, PREFIX), or where the linker looks. */
static const char *library(void)
{
	static char path[PATH_MAX + sizeof("/../lib/" LIBRARY)];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	path[n < 0 ? 0 : n] = 0;
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash, "/../lib/" LIBRARY);
		if (!access(path, R_OK) && !strpbrk(path, " :"))
			return path;
	}
	return LIBRARY;
}

static void preload(void)
{
	const char *before = getenv("LD_PRELOAD");
	char *all;

	if (asprintf(&all, "%s%s%s", library(), before ? ":" : "", before ?: "") < 0 ||
	    setenv("LD_PRELOAD", all, 1)) {
		say_errno("cannot set LD_PRELOAD");
		exit(125);
	}
	free(all);
}

static void set_environment(void)
{
	char number[16];

	preload();
	snprintf(number, sizeof(number), "%d", protocol());
	setenv("EXS_PROTOCOL", number, 1);
	if (*args.rules)
		setenv("EXS_RULES", args.rules, 1);
	if (args.verbose)
		setenv("EXS_DEBUG", "1", 1);
}

static bool has_rules(void)
{
	const char *inherited = getenv("EXS_RULES");

	return *args.rules || (inherited && *inherited);
}

/* Preload does not work because of @why: use BPF, or TCP. */
static void reach_otherwise(const char *name, const char *why)
{
	bool on = cgroup_is_on(protocol());

	if (has_rules())
		say("%s: %s, so its sockets %s: rules need a preloaded library", name, why,
		    on ? "are EXS, as in all of this cgroup" : "stay TCP");
	else if (!on && !cgroup_own(protocol()))
		say("%s: %s, so its sockets stay TCP: see --cgroup", name, why);
	else if (args.verbose)
		say("%s: %s, so BPF makes all its sockets EXS", name, why);
}

static int run(char **argv)
{
	char path[PATH_MAX];
	const char *why = why_no_preload(find_program(*argv, path, sizeof(path)));

	if (why)
		reach_otherwise(*argv, why);
	set_environment();
	execvp(*argv, argv);
	say_errno("%s", *argv);
	return errno == ENOENT ? 127 : 126;
}

static int act_on_cgroup(void)
{
	if (args.status)
		return cgroup_status(protocol());
	if (args.off)
		return cgroup_off(args.cgroup, !args.cgroup && !args.system);
	if (*args.rules)
		say_usage("rules do not work with --cgroup and --system: the kernel does not know the address yet");
	return cgroup_on(args.cgroup, protocol());
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "+r:f:vhV", options, NULL)) != -1)
		take_option(option);
	if (args.cgroup && args.system)
		say_usage("--cgroup and --system exclude each other");
	if (args.cgroup || args.system || args.off || args.status) {
		if (optind < argc)
			say_usage("a program cannot be given with --cgroup, --system, --off or --status");
		return act_on_cgroup();
	}
	if (optind == argc)
		say_usage("the program is missing");
	return run(argv + optind);
}
