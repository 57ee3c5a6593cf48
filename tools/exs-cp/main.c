// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cp.h"
#include "net.h"
#include "say.h"

volatile sig_atomic_t interrupted;

static const char usage[] =
"Usage: exs-cp [OPTION]... FILE... HOST[:PORT]\n"
"       exs-cp --listen [OPTION]... [:PORT] [DESTINATION]\n"
"       exs-cp --listen [OPTION]... ADDRESS[:PORT] DESTINATION\n"
"Copy files from one host to another through AF_EXS (sockets over RDMA).\n"
"FILE - is standard input. DESTINATION is a directory (the default is .), a\n"
"file, or - for standard output. Write an IPv6 address in brackets.\n"
"\n"
"  -l, --listen         receive (the default is to send)\n"
"  -1, --one            receiver: serve one sender, then exit (the default)\n"
"  -k, --keep           receiver: serve one sender after another\n"
"  -b, --bind=ADDRESS   receiver: address to listen on (default: all)\n"
"  -p, --port=PORT      port (default " DEFAULT_PORT ")\n"
"  -n, --name=NAME      sender: the file's name at the receiver\n"
"  -c, --bytes=N        sender: send at most N bytes of each file\n"
"  -B, --buffers=N      number of buffers (default 4)\n"
"  -s, --size=BYTES     sender: size of a buffer (default 256K);\n"
"                       receiver: check that there is memory for this size\n"
"  -t, --timeout=S      give up after S seconds without progress (default 60,\n"
"                       0: never)\n"
"      --no-verify      compute no checksum, and do not resume\n"
"      --no-resume      receiver: always start from the beginning\n"
"      --verify         the opposite (the default)\n"
"  -q, --quiet          print errors only\n"
"      --progress       show progress even without a terminal\n"
"  -h, --help           print this text\n"
"  -V, --version        print the version\n"
"\n"
"Exit status: 0 if every file was copied and verified, 1 if not, 2 if the\n"
"command line was wrong. See exs-cp(1).\n";

enum { OPT_NO_VERIFY = 256, OPT_VERIFY, OPT_NO_RESUME, OPT_PROGRESS };

static const struct option long_options[] = {
	{ "listen", no_argument, NULL, 'l' },
	{ "one", no_argument, NULL, '1' },
	{ "keep", no_argument, NULL, 'k' },
	{ "bind", required_argument, NULL, 'b' },
	{ "port", required_argument, NULL, 'p' },
	{ "name", required_argument, NULL, 'n' },
	{ "bytes", required_argument, NULL, 'c' },
	{ "buffers", required_argument, NULL, 'B' },
	{ "size", required_argument, NULL, 's' },
	{ "timeout", required_argument, NULL, 't' },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
	{ "no-resume", no_argument, NULL, OPT_NO_RESUME },
	{ "quiet", no_argument, NULL, 'q' },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct parsed {
	struct options o;
	const char *bind, *port;
};

static uint64_t number(const char *what, const char *text, uint64_t min,
		       uint64_t max)
{
	uint64_t n;

	if (!parse_size(text, min, max, &n))
		say_usage("%s: '%s' is not a number from %llu to %llu", what,
			  text, (unsigned long long)min,
			  (unsigned long long)max);
	return n;
}

static void show(const char *text)
{
	fputs(text, stdout);
	exit(fflush(stdout) ? 1 : 0);
}

static void numeric_option(struct options *o, int c)
{
	switch (c) {
	case 'c':
		o->bytes = number("--bytes", optarg, 0, SIZE_UNKNOWN - 1);
		break;
	case 'B':
		o->buffers = number("--buffers", optarg, 1, MAX_BUFFERS);
		break;
	case 's':
		o->size = number("--size", optarg, MIN_SIZE, MAX_SIZE);
		break;
	case 't':
		o->timeout = number("--timeout", optarg, 0, 86400);
		break;
	default:
		say_usage("wrong option");
	}
}

static void flag_option(struct options *o, int c)
{
	switch (c) {
	case 'l':
		o->listen = true;
		break;
	case '1':
		o->keep = false;
		break;
	case 'k':
		o->keep = true;
		break;
	case OPT_VERIFY:
	case OPT_NO_VERIFY:
		o->verify = c == OPT_VERIFY;
		break;
	case OPT_NO_RESUME:
		o->resume = false;
		break;
	case 'q':
		o->quiet = true;
		o->progress = PROGRESS_NEVER;
		break;
	case OPT_PROGRESS:
		o->progress = PROGRESS_ALWAYS;
		break;
	default:
		numeric_option(o, c);
	}
}

static void one_option(struct parsed *p, int c)
{
	switch (c) {
	case 'h':
		show(usage);
		break;
	case 'V':
		show("exs-cp 1.0\n");
		break;
	case 'b':
		p->bind = optarg;
		break;
	case 'p':
		p->port = optarg;
		break;
	case 'n':
		p->o.name = optarg;
		break;
	default:
		flag_option(&p->o, c);
	}
}

static void endpoint(struct parsed *p, const char *text)
{
	if (!parse_endpoint(text, p->port, &p->o.ep))
		say_usage("'%s': expected HOST, HOST:PORT or [IPV6-ADDRESS]:PORT, with a PORT from 0 to 65535",
			  text);
}

static void listen_arguments(struct parsed *p, char **args, int n)
{
	if (n > 2)
		say_usage("too many arguments");
	if (p->o.name || p->o.bytes != SIZE_UNKNOWN)
		say_usage("--name and --bytes are options of the sender");
	if (n == 2 || (n && *args[0] == ':')) {	/* a file ":x" is "./:x" */
		endpoint(p, *args++);
		n--;
	} else {
		endpoint(p, "");
	}
	if (p->bind)
		snprintf(p->o.ep.host, sizeof(p->o.ep.host), "%s", p->bind);
	p->o.dest = n ? *args : ".";
}

static void send_arguments(struct parsed *p, char **args, int n)
{
	int i;

	if (n < 2)
		say_usage("a file and a host are required");
	if (p->bind || p->o.keep)
		say_usage("--bind and --keep are options of the receiver");
	if (p->o.name && n != 2)
		say_usage("--name requires exactly one file");
	endpoint(p, args[n - 1]);
	if (!*p->o.ep.host)
		say_usage("'%s' contains no host", args[n - 1]);
	for (i = 0; i < n - 2; i++)
		if (!strcmp(args[i], "-"))
			say_usage("standard input must come last");
	p->o.files = args;
	p->o.nfiles = n - 1;
}

static void parse(struct parsed *p, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "l1kb:p:n:c:B:s:t:qhV",
				long_options, NULL)) != -1) {
		if (c == '?')
			say_usage("wrong option");
		one_option(p, c);
	}
	if (p->o.buffers * p->o.size > MAX_MEMORY)
		say_usage("--buffers times --size is more than 1 GiB");
	if (p->o.listen)
		listen_arguments(p, argv + optind, argc - optind);
	else
		send_arguments(p, argv + optind, argc - optind);
}

/* Again and again, because the signal may come just before a call blocks. */
static void interrupt_calls(int sig __attribute__((unused)))
{
	alarm(1);
}

static void on_signal(int sig)
{
	struct sigaction again = { .sa_handler = interrupt_calls };

	interrupted = sig;
	sigaction(SIGALRM, &again, NULL);
	alarm(1);
}

/* Unless it was ignored when the program started, as under nohup(1). */
static void catch_signal(int sig)
{
	struct sigaction before, sa = {
		.sa_handler = on_signal,
		.sa_flags = SA_RESETHAND,
	};

	if (!sigaction(sig, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(sig, &sa, NULL);
}

/* Blocking calls fail with EINTR; a second signal ends the program at once. */
static void catch_signals(void)
{
	catch_signal(SIGINT);
	catch_signal(SIGTERM);
	catch_signal(SIGHUP);
	signal(SIGPIPE, SIG_IGN);
}

/* End by the signal, as a shell expects. */
static void die_of_signal(int sig)
{
	say("interrupted");
	signal(sig, SIG_DFL);
	raise(sig);
}

int main(int argc, char **argv)
{
	struct parsed p = {
		.o = {
			.verify = true,
			.resume = true,
			.buffers = DEFAULT_BUFFERS,
			.size = DEFAULT_SIZE,
			.bytes = SIZE_UNKNOWN,
			.timeout = DEFAULT_TIMEOUT,
		},
		.port = DEFAULT_PORT,
	};
	int status;

	parse(&p, argc, argv);
	catch_signals();
	if (!net_init())
		return 1;
	status = p.o.listen ? run_receiver(&p.o) : run_sender(&p.o);
	if (interrupted)
		die_of_signal(interrupted);
	return status;
}
