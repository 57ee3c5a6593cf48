// SPDX-License-Identifier: MIT
/* The arguments of exs-cp: sizes, addresses, names, parts; what to do about errors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../Documentation/examples/net.h"
#include "../../tools/common/net.h"
#include "../../tools/common/parse.h"
#include "../../tools/common/say.h"
#include "../../tools/exs-cp/output.h"
#include "check.h"

volatile sig_atomic_t interrupted;

static void sizes(void)
{
	uint64_t v;

	CHECK(parse_size("17", 0, 100, &v) && v == 17);
	CHECK(parse_size("256K", 0, UINT64_MAX, &v) && v == 256 << 10);
	CHECK(parse_size("3GiB", 0, UINT64_MAX, &v) && v == 3ULL << 30);
	CHECK(!parse_size("256", 0, 255, &v) && !parse_size("1", 2, 3, &v));
	CHECK(!parse_size("", 0, 9, &v) && !parse_size("-1", 0, UINT64_MAX, &v));
	CHECK(!parse_size("1X", 0, 9, &v) && !parse_size("1Kb", 0, 9999, &v));
	CHECK(!parse_size("99999999T", 0, UINT64_MAX, &v));
}

static bool is(const char *text, const char *host, const char *port)
{
	struct endpoint ep;

	return parse_endpoint(text, "7025", &ep) && !strcmp(ep.host, host) &&
	       !strcmp(ep.port, port);
}

static void endpoints(void)
{
	struct endpoint ep;

	CHECK(is("host", "host", "7025") && is("host:80", "host", "80"));
	CHECK(is("", "", "7025") && is(":80", "", "80"));
	CHECK(is("[fd77::1]", "fd77::1", "7025"));
	CHECK(is("[fd77::1]:80", "fd77::1", "80"));
	CHECK(!parse_endpoint("fd77::1", "7025", &ep));
	CHECK(!parse_endpoint("[fd77::1", "7025", &ep));
	CHECK(!parse_endpoint("[]", "7025", &ep));
	CHECK(!parse_endpoint("host:", "7025", &ep));
	CHECK(is("host:65535", "host", "65535") && is("host:ssh", "host", "ssh"));
	CHECK(!parse_endpoint(":65536", "7025", &ep));
	CHECK(!parse_endpoint("host:99999", "7025", &ep));
	CHECK(!parse_endpoint("host", "65536", &ep));
	CHECK(!parse_endpoint("[::1]:18446744073709551617", "7025", &ep));
}

static char dir[32];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/exs-output-XXXXXX");
	CHECK(mkdtemp(dir));
	CHECK(!chdir(dir));
}

static void remove_dir(void)
{
	char cmd[100];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	CHECK(!system(cmd));
}

static long size_of(const char *name)
{
	struct stat st;

	return lstat(name, &st) ? -1 : (long)st.st_size;
}

static void commits_whole_files(void)
{
	struct output out;
	struct stat st;

	make_dir();
	umask(027);
	CHECK(output_open(&out, ".", "file") && !out.pos);
	CHECK(output_write(&out, "abc", 3));
	CHECK(size_of(".file.part") == 3 && size_of("file") == -1);
	CHECK(output_commit(&out, 04777));
	CHECK(size_of(".file.part") == -1 && size_of("file") == 3);
	CHECK(!stat("file", &st) && (st.st_mode & 07777) == 0750);
	remove_dir();
}

static void keeps_parts(void)
{
	struct output out;

	make_dir();
	CHECK(output_open(&out, "sub", "ignored"));
	CHECK(output_write(&out, "abc", 3));
	output_abandon(&out, true);
	CHECK(size_of(".sub.part") == 3);
	CHECK(output_open(&out, "sub", "ignored") && out.pos == 3);
	CHECK(output_restart(&out) && !out.pos && !size_of(".sub.part"));
	output_abandon(&out, true);
	CHECK(size_of(".sub.part") == -1);
	remove_dir();
}

static void one_writer(void)
{
	struct output a, b;

	make_dir();
	CHECK(output_open(&a, ".", "file"));
	CHECK(!output_open(&b, ".", "file"));
	CHECK(strstr(b.text, "another copy"));
	CHECK(output_write(&a, "abc", 3) && output_commit(&a, 0644));
	remove_dir();
}

static void refuses(const char *name)
{
	struct output out;

	CHECK(!output_open(&out, ".", name));
	CHECK(*out.text);
}

static void refuses_names(void)
{
	char longest[NAME_MAX + 1];

	make_dir();
	refuses("");
	refuses(".");
	refuses("..");
	refuses("../x");
	refuses("/etc/passwd");
	refuses("a/b");
	memset(longest, 'a', sizeof(longest));
	longest[NAME_MAX - 5] = 0;
	refuses(longest);
	CHECK(!mkdir("d", 0700));
	refuses("d");
	remove_dir();
}

static void refuses_directories(void)
{
	struct output out;

	make_dir();
	CHECK(!mkdir("a", 0700));
	CHECK(!output_open(&out, ".", "a"));
	CHECK(!strcmp(out.text, "a: Is a directory: use --name, or name another directory"));
	output_abandon(&out, true);
	CHECK(!rmdir("a"));
	remove_dir();
}

static void refuses_planted_parts(void)
{
	make_dir();
	CHECK(!symlink("/tmp/elsewhere", ".a.part"));
	refuses("a");
	CHECK(!mkfifo(".b.part", 0600));
	refuses("b");
	CHECK(close(open("victim", O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(!link("victim", ".c.part"));
	refuses("c");
	remove_dir();
}

static void writes_directly(void)
{
	struct output out;

	CHECK(output_open(&out, "/dev/null", "file") && out.direct);
	CHECK(output_write(&out, "abc", 3) && output_commit(&out, 0644));
	CHECK(output_open(&out, "/dev/full", "file") && out.direct);
	CHECK(!output_write(&out, "abc", 3));
	CHECK(strstr(out.text, "No space left on device: free some space"));
	output_abandon(&out, true);
}

/* The message has the destination as it was given. Root may write everywhere, so another user asks. */
static void checks_destinations(void)
{
	struct output out;
	bool root = !geteuid();

	CHECK(output_check(&out, "-") && output_check(&out, "/tmp") && output_check(&out, "/tmp/new"));
	CHECK(!output_check(&out, "/dev/null/file"));
	CHECK(strstr(out.text, "/dev/null/: Not a directory: name a directory"));
	CHECK(!output_check(&out, "/nowhere/file"));
	CHECK(!strcmp(out.text, "/nowhere/: No such file or directory: create the directory first"));
	CHECK(!root || !seteuid(65534));
	CHECK(!output_check(&out, "/nowhere"));
	CHECK(!strcmp(out.text, "/nowhere: Permission denied: name a directory where this user may write"));
	CHECK(!root || !seteuid(0));
}

static void knows_advice(void)
{
	CHECK(strstr(net_advice(ETIMEDOUT, true), "4791"));
	CHECK(strstr(net_advice(EPROTOTYPE, true), "SOCK_SEQPACKET"));
	CHECK(strstr(net_advice(ENOBUFS, true), "/proc/net/exs"));
	CHECK(strstr(net_advice(EADDRINUSE, false), "another port"));
	CHECK(strstr(net_advice(EACCES, false), "1023") && strstr(net_advice(EACCES, true), "security module"));
	CHECK(strstr(net_advice(EMFILE, true), "ulimit -n") && strstr(net_advice(EINVAL, false), "report it"));
	CHECK(strstr(net_call_advice(0), "other end") && strstr(net_call_advice(ECONNRESET), "other end"));
	CHECK(strstr(net_call_advice(ENOMEM), "ulimit -l"));
	CHECK(strstr(net_call_advice(ENOBUFS), "/proc/net/exs"));
	CHECK(strstr(net_call_advice(ETIMEDOUT), "rdma link"));
	CHECK(strstr(net_call_advice(EINVAL), "report it"));
}

/* What the guide's programs say. */
static void knows_advice_of_examples(void)
{
	CHECK(strstr(advice(EAFNOSUPPORT), "modprobe exs"));
	CHECK(strstr(advice(EADDRINUSE), "another one"));
	CHECK(strstr(advice(ENODEV), "rdma link") && strstr(advice(EADDRNOTAVAIL), "rdma link"));
	CHECK(strstr(advice(ECONNREFUSED), "running there"));
	CHECK(strstr(advice(ENOMEM), "ulimit -l") && strstr(advice(EMFILE), "ulimit -n"));
	CHECK(strstr(advice(ENOBUFS), "/proc/net/exs"));
	CHECK(strstr(advice(EINVAL), "guide"));
}

/* What @say prints on standard error. */
static char *said(void (*say_it)(void))
{
	static char text[300];
	int before = dup(STDERR_FILENO), file = memfd_create("said", 0);

	CHECK(before >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
	say_it();
	CHECK(dup2(before, STDERR_FILENO) == STDERR_FILENO);
	text[pread(file, text, sizeof(text) - 1, 0)] = 0;
	close(file);
	close(before);
	return text;
}

static void say_missing(void)
{
	errno = ENOENT;
	say_errno("%s", "file");
}

static void say_forbidden(void)
{
	errno = EPERM;
	say_errno("%s", "file");
}

static void say_no_name(void)
{
	struct endpoint ep = { .host = "no..name", .port = "7025" };

	CHECK(net_connect(&ep, SOCK_STREAM, "a server") == -1);
}

static void say_no_port(void)
{
	struct endpoint ep = { .host = "10.0.0.1", .port = "nowhere" };

	CHECK(net_connect(&ep, SOCK_STREAM, "a server") == -1);
}

static void says_what_to_do(void)
{
	CHECK(strstr(said(say_missing), ": file: No such file or directory: check the name\n"));
	CHECK(strstr(said(say_forbidden), "run it as root"));
	CHECK(strstr(file_advice(ENOSPC), "free some space"));
	CHECK(strstr(file_advice(EINVAL), "report it"));
	CHECK(strstr(said(say_no_name), "check the name, or give the address"));
	CHECK(strstr(said(say_no_port), "give the number"));
}

const struct test tool_tests[] = {
	{ "sizes", sizes },
	{ "endpoints", endpoints },
	{ "commits whole files", commits_whole_files },
	{ "keeps parts", keeps_parts },
	{ "one writer", one_writer },
	{ "refuses names", refuses_names },
	{ "refuses planted parts", refuses_planted_parts },
	{ "refuses directories", refuses_directories },
	{ "writes directly", writes_directly },
	{ "checks destinations", checks_destinations },
	{ "knows advice", knows_advice },
	{ "knows advice of examples", knows_advice_of_examples },
	{ "says what to do", says_what_to_do },
	{ NULL, NULL },
};
