// SPDX-License-Identifier: MIT
/*
 * The counts of one end during a test: the module's counters, the packets of its RDMA
 * devices, processor time and context switches. All but the last count for the whole
 * machine, so they are meaningful only if nothing else runs there.
 */
#include <endian.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "counts.h"

static const struct {
	const char *name;
	int count;
} counters[] = {
	{ "direct_tx_bytes", COUNT_DIRECT },
	{ "indirect_tx_bytes", COUNT_INDIRECT },
	{ "eager_tx_bytes", COUNT_EAGER },
	{ "adverts_tx", COUNT_ADVERTS },
	{ "adverts_dropped", COUNT_ADVERTS_UNUSED },
	{ "credit_stalls", COUNT_CREDIT_STALLS },
	{ "ring_stalls", COUNT_RING_STALLS },
	{ "invalidations", COUNT_INVALIDATIONS },
};

static void counters_read(uint64_t *n)
{
	FILE *f = fopen("/proc/net/exs", "r");
	char name[64];
	uint64_t value;
	size_t i;

	while (f && fscanf(f, "%63s %" SCNu64, name, &value) == 2)
		for (i = 0; i < sizeof(counters) / sizeof(*counters); i++)
			if (!strcmp(name, counters[i].name))
				n[counters[i].count] = value;
	if (f)
		fclose(f);
}

/* The sum of the numbers in the files that match @pattern. */
static uint64_t files_sum(const char *pattern)
{
	uint64_t value, sum = 0;
	glob_t found;
	size_t i;
	FILE *f;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc; i++) {
		f = fopen(found.gl_pathv[i], "r");
		if (f && fscanf(f, "%" SCNu64, &value) == 1)
			sum += value;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return sum;
}

/* Drivers have two names for it. */
static uint64_t packets(void)
{
	return files_sum("/sys/class/infiniband/*/ports/*/hw_counters/sent_pkts") +
	       files_sum("/sys/class/infiniband/*/ports/*/counters/port_xmit_packets");
}

/* Busy time of all processors, in microseconds. */
static uint64_t processor_time(void)
{
	uint64_t user, nice, system, idle, wait, irq, softirq, n = 0;
	FILE *f = fopen("/proc/stat", "r");

	if (f && fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			" %" SCNu64, &user, &nice, &system, &idle, &wait, &irq, &softirq) == 7)
		n = user + nice + system + irq + softirq;
	if (f)
		fclose(f);
	return n * (1000000 / sysconf(_SC_CLK_TCK));
}

static uint64_t switches(void)
{
	struct rusage r;

	return getrusage(RUSAGE_SELF, &r) ? 0 : (uint64_t)r.ru_nvcsw;
}

static void read_all(uint64_t *n)
{
	counters_read(n);
	n[COUNT_PACKETS] = packets();
	n[COUNT_SWITCHES] = switches();
	n[COUNT_CPU] = processor_time();
}

void counts_begin(struct counts *c)
{
	memset(c, 0, sizeof(*c));
	read_all(c->n);
}

void counts_end(struct counts *c)
{
	uint64_t now[COUNTS] = {};
	int i;

	read_all(now);
	for (i = 0; i < COUNTS; i++)
		c->n[i] = now[i] - c->n[i];
}

void counts_swap(struct counts *c)
{
	int i;

	for (i = 0; i < COUNTS; i++)
		c->n[i] = htole64(c->n[i]);
}

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * part / all : 0;
}

static void print_end(const char *who, const struct counts *c, double operations)
{
	printf(" %s_packets=%.2f %s_switches=%.2f %s_cpu_usec=%.2f",
	       who, c->n[COUNT_PACKETS] / operations, who, c->n[COUNT_SWITCHES] / operations,
	       who, c->n[COUNT_CPU] / operations);
}

static void print_received(const uint64_t *n)
{
	printf(" adverts=%" PRIu64 " invalidations=%" PRIu64, n[COUNT_ADVERTS],
	       n[COUNT_INVALIDATIONS]);
}

void counts_print(const struct counts *client, const struct counts *server, uint64_t operations)
{
	const uint64_t *c = client->n;

	printf(" direct_percent=%.1f adverts_unused=%" PRIu64 " credit_stalls=%" PRIu64
	       " ring_stalls=%" PRIu64,
	       share(c[COUNT_DIRECT], c[COUNT_DIRECT] + c[COUNT_INDIRECT] + c[COUNT_EAGER]),
	       c[COUNT_ADVERTS_UNUSED], c[COUNT_CREDIT_STALLS], c[COUNT_RING_STALLS]);
	if (server)
		print_received(server->n);
	print_end("client", client, operations);
	if (server)
		print_end("server", server, operations);
}
