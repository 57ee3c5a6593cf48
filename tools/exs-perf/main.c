// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "net.h"
#include "perf.h"
#include "say.h"

static const char usage[] =
"Usage: exs-perf --listen [OPTION]... [ADDRESS][:PORT]\n"
"       exs-perf --blast|--pingpong [OPTION]... HOST[:PORT]\n"
"Measure how fast AF_EXS moves registered memory between two hosts.\n"
"\n"
"  -l, --listen         be the server, for one test\n"
"  -k, --keep           server: serve one test after another\n"
"      --blast          one direction, --depth transfers outstanding\n"
"      --pingpong       one transfer to the server, then one back\n"
"  -b, --busy           poll the device instead of sleeping, at both ends\n"
"      --plain          ping-pong with send() and recv(), at both ends\n"
"  -s, --size=BYTES     size of a transfer (default 256K; ping-pong 64)\n"
"  -d, --depth=N        outstanding transfers (default 4)\n"
"  -n, --count=N        number of transfers or rounds; overrides --time\n"
"  -t, --time=S         duration in seconds (default 5)\n"
"  -w, --warmup=N       rounds of ping-pong that are not measured (default 50)\n"
"  -m, --seqpacket      SOCK_SEQPACKET, at both ends (default SOCK_STREAM)\n"
"  -p, --port=PORT      port (default " PERF_PORT ")\n"
"  -q, --quiet          server: print nothing\n"
"  -h, --help           print this text\n"
"  -V, --version        print the version\n"
"\n"
"The result is one line of NAME=VALUE on standard output. See exs-perf(1).\n";

enum { OPT_BLAST = 256, OPT_PINGPONG, OPT_PLAIN };

static const struct option long_options[] = {
	{ "listen", no_argument, NULL, 'l' },
	{ "keep", no_argument, NULL, 'k' },
	{ "blast", no_argument, NULL, OPT_BLAST },
	{ "pingpong", no_argument, NULL, OPT_PINGPONG },
	{ "busy", no_argument, NULL, 'b' },
	{ "plain", no_argument, NULL, OPT_PLAIN },
	{ "size", required_argument, NULL, 's' },
	{ "depth", required_argument, NULL, 'd' },
	{ "count", required_argument, NULL, 'n' },
	{ "time", required_argument, NULL, 't' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "seqpacket", no_argument, NULL, 'm' },
	{ "port", required_argument, NULL, 'p' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static uint64_t number(const char *what, uint64_t min, uint64_t max)
{
	uint64_t n;

	if (!parse_size(optarg, min, max, &n))
		say_usage("%s: '%s' is not a number from %llu to %llu", what,
			  optarg, (unsigned long long)min,
			  (unsigned long long)max);
	return n;
}

static void show(const char *text)
{
	fputs(text, stdout);
	exit(fflush(stdout) ? 1 : 0);
}

static void numeric_option(struct perf_options *o, int c)
{
	switch (c) {
	case 's':
		o->size = number("--size", 1, PERF_MAX_SIZE);
		break;
	case 'd':
		o->depth = number("--depth", 1, PERF_MAX_DEPTH);
		break;
	case 'n':
		o->count = number("--count", 1, 10000000);
		break;
	case 't':
		o->seconds = number("--time", 1, 3600);
		break;
	case 'w':
		o->warmup = number("--warmup", 0, 1000000);
		break;
	default:
		say_usage("wrong option");
	}
}

static void one_option(struct perf_options *o, int c)
{
	switch (c) {
	case 'l':
		o->listen = true;
		break;
	case 'k':
		o->keep = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'm':
		o->type = SOCK_SEQPACKET;
		break;
	case OPT_BLAST:
		o->mode = PERF_BLAST;
		break;
	case OPT_PINGPONG:
		o->mode = PERF_PINGPONG;
		break;
	case OPT_PLAIN:
		o->flags |= PERF_PLAIN;
		break;
	case 'b':
		o->flags |= PERF_BUSY;
		break;
	case 'h':
		show(usage);
		break;
	case 'V':
		show("exs-perf 1.0\n");
		break;
	default:
		numeric_option(o, c);
	}
}

static void check(struct perf_options *o)
{
	if (o->listen)
		return;
	if (!o->mode)
		say_usage("--blast or --pingpong is required");
	if (o->mode == PERF_BLAST && o->flags & PERF_PLAIN)
		say_usage("--plain requires --pingpong");
	if (!o->size)
		o->size = o->mode == PERF_BLAST ? 256 << 10 : 64;
	if (o->size * o->depth > PERF_MAX_MEMORY)
		say_usage("--size times --depth is more than 1 GiB");
	if (!*o->ep.host)
		say_usage("a host is required");
}

int main(int argc, char **argv)
{
	struct perf_options o = {
		.type = SOCK_STREAM,
		.depth = 4,
		.seconds = 5,
		.warmup = 50,
	};
	const char *port = PERF_PORT;
	int c;

	while ((c = getopt_long(argc, argv, "lks:d:n:t:w:mbp:qhV", long_options,
				NULL)) != -1) {
		if (c == 'p')
			port = optarg;
		else
			one_option(&o, c);
	}
	if (argc - optind > 1)
		say_usage("too many arguments");
	if (!parse_endpoint(argv[optind] ?: "", port, &o.ep))
		say_usage("'%s': expected HOST, HOST:PORT or [IPV6-ADDRESS]:PORT, with a PORT from 0 to 65535",
			  argv[optind]);
	check(&o);
	signal(SIGPIPE, SIG_IGN);
	if (!net_init())
		return 1;
	return o.listen ? run_server(&o) : run_client(&o);
}
