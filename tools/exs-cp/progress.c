// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"
#include "say.h"

#define REDRAW_TTY	0.1
#define REDRAW_PLAIN	1.0
#define SMOOTHING	0.2	/* weight of the newest rate */

static struct {
	bool on, tty;
	char name[256];
	uint64_t total, done, before, drawn_at_bytes;
	double start, drawn, rate;
} p;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void clear_line(void)
{
	if (p.on && p.tty)
		fputs("\r\033[K", stderr);
}

static int columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_col < 40)
		return 80;
	return w.ws_col > 160 ? 160 : w.ws_col;
}

static const char *show_time(double s, char *buf, size_t len)
{
	unsigned long t = s + 0.5;

	if (s < 0 || s > 1e7)
		snprintf(buf, len, "--:--");
	else if (t >= 3600)
		snprintf(buf, len, "%lu:%02lu:%02lu", t / 3600, t / 60 % 60,
			 t % 60);
	else
		snprintf(buf, len, "%lu:%02lu", t / 60, t % 60);
	return buf;
}

/* "  12.3 MiB   31.2 MiB/s  0:03 left" */
static void numbers(char *buf, size_t len, double rate, bool last)
{
	char size[32], speed[32], t[32];
	double left = rate > 0 ? (p.total - p.done) / rate : -1;

	show_size(p.done, size, sizeof(size));
	show_size(rate, speed, sizeof(speed));
	if (last)
		snprintf(buf, len, "%10s %10s/s  %s", size, speed,
			 show_time(now() - p.start, t, sizeof(t)));
	else if (p.total == SIZE_UNKNOWN)
		snprintf(buf, len, "%10s %10s/s", size, speed);
	else
		snprintf(buf, len, "%10s %10s/s  %s left", size, speed,
			 show_time(left, t, sizeof(t)));
}

static int percent(void)
{
	if (p.total == SIZE_UNKNOWN)
		return -1;
	return p.done < p.total ? (int)(100.0 * p.done / p.total) : 100;
}

static void bar(char *buf, int width)
{
	int full = width * percent() / 100;

	memset(buf, '.', width);
	memset(buf, '#', full);
	buf[width] = 0;
}

static void draw_tty(const char *nums)
{
	char line[200];
	int room = columns() - 1, used;

	used = snprintf(line, sizeof(line), "%-16.16s ", p.name);
	room -= used + (int)strlen(nums) + 9;
	if (percent() >= 0)
		used += snprintf(line + used, sizeof(line) - used, "%3d%% ",
				 percent());
	if (percent() >= 0 && room >= 5 && used + room + 3 < (int)sizeof(line)) {
		line[used++] = '[';
		bar(line + used, room);
		used += room;
		line[used++] = ']';
		line[used] = 0;
	}
	fprintf(stderr, "\r\033[K%s%s", line, nums);
}

static void draw(double rate, bool last)
{
	char nums[100];

	numbers(nums, sizeof(nums), rate, last);
	if (p.tty)
		draw_tty(nums);
	else if (percent() >= 0)
		fprintf(stderr, "%s: %d%% %s\n", p.name, percent(), nums);
	else
		fprintf(stderr, "%s: %s\n", p.name, nums);
	fflush(stderr);
}

void progress_start(const struct options *o, const char *name, uint64_t total,
		    uint64_t done)
{
	p.tty = isatty(STDERR_FILENO);
	p.on = o->progress == PROGRESS_ALWAYS ||
	       (o->progress == PROGRESS_AUTO && p.tty);
	snprintf(p.name, sizeof(p.name), "%s", name);
	make_printable(p.name);
	p.total = total;
	p.done = p.before = p.drawn_at_bytes = done;
	p.start = p.drawn = now();
	p.rate = 0;
	say_hook = clear_line;
}

void progress_add(uint64_t bytes)
{
	double t, rate;

	p.done += bytes;
	if (!p.on)
		return;
	t = now();
	if (t - p.drawn < (p.tty ? REDRAW_TTY : REDRAW_PLAIN))
		return;
	rate = (p.done - p.drawn_at_bytes) / (t - p.drawn);
	p.rate = p.rate ? p.rate + SMOOTHING * (rate - p.rate) : rate;
	p.drawn = t;
	p.drawn_at_bytes = p.done;
	draw(p.rate, false);
}

void progress_end(bool ok)
{
	double t = now() - p.start;

	if (p.on && ok) {
		draw(t > 0 ? (p.done - p.before) / t : 0, true);
		if (p.tty)
			fputc('\n', stderr);
	} else {
		clear_line();
	}
	p.on = false;
}
