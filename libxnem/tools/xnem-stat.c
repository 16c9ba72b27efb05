// SPDX-License-Identifier: MIT
/*
 * xnem-stat - what XNEM's drivers have counted
 *
 * Reads counters from debugfs: of the devices of this guest, and where the
 * backend runs of each guest's.  A file is lines of "key value"; keys that this
 * program does not know are shown like others.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xnem.h"

#define MAX_KEYS 128
#define NAME_LEN 64
#define DEBUGFS "/sys/kernel/debug"

enum { EXIT_GOOD = 0, EXIT_NOTHING = 1, EXIT_FAILED = 2, EXIT_USAGE = 64 };

struct counter {
	char key[NAME_LEN];
	/* what stands there, and the same as a number if it is one */
	char text[NAME_LEN];
	double value;
	bool number;
};

/* One counters file at one time. */
struct sample {
	/* as xnem0 in a guest, 5-0 (domid-device) or total in the driver domain */
	char name[NAME_LEN];
	bool backend;
	unsigned int n;
	struct counter c[MAX_KEYS];
};

struct samples {
	struct sample *s;
	unsigned int n;
	double time;
};

static const char usage[] =
	"usage: xnem-stat [--json] [--debugfs DIR] [DEVICE...]\n"
	"       xnem-stat [--json] [--debugfs DIR] --interval SECONDS [--count N] [DEVICE...]\n"
	"       xnem-stat [--json] [--debugfs DIR] INTERVAL [COUNT]\n"
	"Shows what XNEM's drivers have counted since they were loaded, or every INTERVAL\n"
	"seconds rates, COUNT times.  A DEVICE is xnem0 and so on in a guest; in the domain\n"
	"of the backend 5-0 is device 0 of guest 5, and total is all of them.\n"
	"\n"
	"Columns of rates, a second: requests, MiB copied, notifications received and sent,\n"
	"errors; and grant operations a hypercall, KiB a notification, requests in flight\n"
	"and regions.\n"
	"\n"
	"Exit status: 0 shown; 1 no XNEM driver here; 2 failed (debugfs is not mounted, or is\n"
	"for root alone); 64 wrong arguments.\n";

static const char *debugfs = DEBUGFS;
static char **wanted;
static bool json;

__attribute__((noreturn)) static void bad_usage(const char *what)
{
	fprintf(stderr, "xnem-stat: %s\nxnem-stat: --help tells more\n", what);
	exit(EXIT_USAGE);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- reading ---- */

static const struct counter *find(const struct sample *s, const char *key)
{
	for (unsigned int i = 0; s && i < s->n; i++)
		if (!strcmp(s->c[i].key, key))
			return &s->c[i];
	return NULL;
}

static double value(const struct sample *s, const char *key)
{
	const struct counter *c = find(s, key);

	return c ? c->value : 0;
}

/* Growth from before; a counter that went down began anew. */
static double grown(const struct sample *s, const struct sample *before, const char *key)
{
	double now = value(s, key), then = value(before, key);

	return now >= then ? now - then : now;
}

static bool is_error(const char *key)
{
	return !strncmp(key, "error_", 6);
}

static double errors(const struct sample *s, const struct sample *before)
{
	double sum = 0;

	for (unsigned int i = 0; i < s->n; i++)
		if (is_error(s->c[i].key))
			sum += grown(s, before, s->c[i].key);
	return sum;
}

static bool read_file(const char *path, struct sample *s)
{
	FILE *f = fopen(path, "re");
	char line[2 * NAME_LEN + 2];

	if (!f)
		return false;
	while (s->n < MAX_KEYS && fgets(line, sizeof(line), f)) {
		struct counter *c = &s->c[s->n];
		char *end;

		if (sscanf(line, "%63s %63[^\n]", c->key, c->text) != 2)
			continue;
		c->value = strtod(c->text, &end);
		c->number = end != c->text && !*end;
		if (!c->number)
			c->value = 0;
		s->n++;
	}
	fclose(f);
	return s->n > 0;
}

static bool is_wanted(const char *name)
{
	if (!wanted || !*wanted)
		return true;
	for (char **w = wanted; *w; w++)
		if (!strcmp(*w, name))
			return true;
	return false;
}

static void read_below(struct samples *all, const char *driver, bool backend)
{
	char pattern[512];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%s/*/counters", debugfs, driver);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char *path = found.gl_pathv[i], *end = strrchr(path, '/'), *name;
		struct sample *s;

		*end = 0;
		name = strrchr(path, '/') + 1;
		if (!is_wanted(name))
			continue;
		s = realloc(all->s, (all->n + 1) * sizeof(*s));
		if (!s) {
			fprintf(stderr, "xnem-stat: %s\n", strerror(ENOMEM));
			exit(EXIT_FAILED);
		}
		all->s = s;
		s += all->n;
		memset(s, 0, sizeof(*s));
		snprintf(s->name, sizeof(s->name), "%s", name);
		s->backend = backend;
		*end = '/';
		/* a device may go between the two looks */
		if (read_file(path, s))
			all->n++;
	}
	globfree(&found);
}

static struct samples read_all(void)
{
	struct samples all = { .time = now() };

	read_below(&all, "xnem", false);
	read_below(&all, "xnem-backend", true);
	return all;
}

static const struct sample *same_in(const struct samples *all, const struct sample *s)
{
	for (unsigned int i = 0; i < all->n; i++)
		if (!strcmp(all->s[i].name, s->name) && all->s[i].backend == s->backend)
			return &all->s[i];
	return NULL;
}

/* Nothing was read: the nearest reason, and the exit status for it. */
static int explain(void)
{
	bool front = !access("/sys/module/xnem_frontend", F_OK);
	bool back = !access("/sys/module/xnem_backend", F_OK);
	char path[512];

	if (access(debugfs, F_OK)) {
		fprintf(stderr, "xnem-stat: %s: %s\n", debugfs, strerror(errno));
		return EXIT_FAILED;
	}
	if (access(debugfs, R_OK | X_OK)) {
		fprintf(stderr, "xnem-stat: %s is for root alone: run xnem-stat as root\n",
			debugfs);
		return EXIT_FAILED;
	}
	snprintf(path, sizeof(path), "%s/xnem", debugfs);
	if (!access(path, F_OK)) {
		front = true;
	} else {
		snprintf(path, sizeof(path), "%s/xnem-backend", debugfs);
		back = !access(path, F_OK) || back;
		if (access(path, F_OK) && (front || back)) {
			fprintf(stderr,
				"xnem-stat: debugfs is not mounted: mount -t debugfs debugfs %s\n",
				debugfs);
			return EXIT_FAILED;
		}
	}
	if (wanted && *wanted && (front || back))
		fprintf(stderr,
			"xnem-stat: there is no such device; without a name all are shown\n");
	else if (front || back)
		fprintf(stderr,
			"xnem-stat: the module is loaded but there is no device: attach one "
			"in dom0 (xnem-attach)\n");
	else
		fprintf(stderr,
			"xnem-stat: no XNEM driver here: load the module xnem-frontend (in a "
			"guest) or xnem-backend\n");
	return EXIT_NOTHING;
}

/* ---- figures that are made of others ---- */

static double ratio(double a, double b)
{
	return b > 0 ? a / b : -1;
}

static double ops_per_hypercall(const struct sample *s, const struct sample *before)
{
	return ratio(grown(s, before, "grant_ops"), grown(s, before, "hypercalls"));
}

static double notifications(const struct sample *s, const struct sample *before)
{
	return grown(s, before, "events_received") + grown(s, before, "events_sent");
}

static double bytes_per_notification(const struct sample *s, const struct sample *before)
{
	return ratio(grown(s, before, "bytes"), notifications(s, before));
}

/* ---- showing ---- */

static void show_ratio(const char *label, double v)
{
	if (v < 0)
		printf("  %-28s -\n", label);
	else
		printf("  %-28s %.2f\n", label, v);
}

static void show_totals(const struct samples *all)
{
	for (unsigned int i = 0; i < all->n; i++) {
		const struct sample *s = &all->s[i];
		bool some = false;

		printf("%s%s (%s)\n", i ? "\n" : "", s->name, s->backend ? "backend" : "frontend");
		for (unsigned int k = 0; k < s->n; k++)
			if (!is_error(s->c[k].key))
				printf("  %-28s %s\n", s->c[k].key, s->c[k].text);
		if (s->backend)
			show_ratio("grant operations a hypercall", ops_per_hypercall(s, NULL));
		show_ratio("bytes a notification", bytes_per_notification(s, NULL));
		printf("  errors");
		for (unsigned int k = 0; k < s->n; k++) {
			if (!is_error(s->c[k].key) || s->c[k].value == 0)
				continue;
			printf(" %s=%s", s->c[k].key + 6, s->c[k].text);
			some = true;
		}
		printf("%s\n", some ? "" : " none");
	}
}

static void json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(isprint((unsigned char)*text) ? *text : '?');
	}
	putchar('"');
}

static void json_ratio(const char *key, double v)
{
	if (v < 0)
		printf(", \"%s\": null", key);
	else
		printf(", \"%s\": %.3f", key, v);
}

/* A record: values that are counts of things now are the same in both kinds. */
static void json_record(const struct sample *s, const struct sample *before, double seconds,
			bool first)
{
	printf("%s {\"device\": ", first ? " " : ",");
	json_text(s->name);
	printf(", \"driver\": \"%s\"", s->backend ? "backend" : "frontend");
	if (before)
		printf(", \"seconds\": %.3f", seconds);
	printf(", \"counters\": {");
	for (unsigned int i = 0; i < s->n; i++) {
		printf("%s", i ? ", " : "");
		json_text(s->c[i].key);
		printf(": ");
		if (s->c[i].number)
			printf("%.0f", s->c[i].value);
		else
			json_text(s->c[i].text);
	}
	printf("}");
	if (before) {
		printf(", \"requests_per_second\": %.3f", grown(s, before, "requests") / seconds);
		printf(", \"bytes_per_second\": %.3f", grown(s, before, "bytes") / seconds);
		printf(", \"notifications_per_second\": %.3f", notifications(s, before) / seconds);
		printf(", \"errors_per_second\": %.3f", errors(s, before) / seconds);
	}
	if (s->backend)
		json_ratio("ops_per_hypercall", ops_per_hypercall(s, before));
	json_ratio("bytes_per_notification", bytes_per_notification(s, before));
	printf(", \"errors\": %.0f}\n", errors(s, before));
}

static void show_rates_head(void)
{
	printf("%-10s %10s %10s %9s %9s %8s %9s %8s %8s %7s\n", "device", "req/s", "MiB/s",
	       "ntf-in/s", "ntf-out/s", "ops/hyp", "KiB/ntf", "err/s", "inflight", "regions");
}

static void ratio_cell(double v, int width)
{
	if (v < 0)
		printf(" %*s", width, "-");
	else
		printf(" %*.1f", width, v);
}

static void show_rate(const struct sample *s, const struct sample *before, double seconds)
{
	double per_ntf = bytes_per_notification(s, before);

	printf("%-10s %10.1f %10.2f %9.1f %9.1f", s->name, grown(s, before, "requests") / seconds,
	       grown(s, before, "bytes") / seconds / (1 << 20),
	       grown(s, before, "events_received") / seconds,
	       grown(s, before, "events_sent") / seconds);
	ratio_cell(s->backend ? ops_per_hypercall(s, before) : -1, 8);
	ratio_cell(per_ntf < 0 ? per_ntf : per_ntf / 1024, 9);
	printf(" %8.1f %8.0f %7.0f\n", errors(s, before) / seconds, value(s, "inflight"),
	       value(s, "regions"));
}

static void flush(void)
{
	if (fflush(stdout)) {
		fprintf(stderr, "xnem-stat: standard output: %s\n", strerror(errno));
		exit(EXIT_FAILED);
	}
}

static int once(void)
{
	struct samples all = read_all();

	if (!all.n)
		return explain();
	if (json) {
		printf("[\n");
		for (unsigned int i = 0; i < all.n; i++)
			json_record(&all.s[i], NULL, 0, !i);
		printf("]\n");
	} else {
		show_totals(&all);
	}
	flush();
	free(all.s);
	return EXIT_GOOD;
}

static void pause_until(double when)
{
	struct timespec ts = { .tv_sec = (time_t)when };

	ts.tv_nsec = (long)((when - (double)ts.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* A device that comes is shown from its second look on, one that goes no more. */
static int repeat(double interval, uint64_t count)
{
	struct samples before = read_all(), after;
	double next = before.time;
	unsigned int lines = 0;
	bool first = true;

	if (!before.n)
		return explain();
	if (json)
		printf("[\n");
	for (uint64_t round = 0; !count || round < count; round++) {
		next += interval;
		pause_until(next);
		after = read_all();
		for (unsigned int i = 0; i < after.n; i++) {
			const struct sample *old = same_in(&before, &after.s[i]);

			if (!old)
				continue;
			if (json) {
				json_record(&after.s[i], old, after.time - before.time, first);
				first = false;
				continue;
			}
			if (!(lines++ % 20))
				show_rates_head();
			show_rate(&after.s[i], old, after.time - before.time);
		}
		flush();
		free(before.s);
		before = after;
	}
	if (json)
		printf("]\n");
	flush();
	free(before.s);
	return EXIT_GOOD;
}

/* ---- arguments ---- */

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789.") == strlen(text);
}

static double seconds(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (!is_number(text) || *end || v < 0.01 || v > 1e6)
		bad_usage("an interval is 0.01 to 1000000 seconds");
	return v;
}

static uint64_t times(const char *text)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!is_number(text) || *end || errno || !v)
		bad_usage("a count is a number, 1 or more");
	return v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "debugfs", required_argument, NULL, 'd' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	double interval = 0;
	uint64_t count = 0;
	int opt;

	while ((opt = getopt_long(argc, argv, "hi:c:V", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'd':
			debugfs = optarg;
			break;
		case 'i':
			interval = seconds(optarg);
			break;
		case 'c':
			count = times(optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			printf("xnem-stat %s\n", xnem_version());
			return 0;
		default:
			bad_usage("wrong option");
		}
	}
	/* as vmstat has it; no device is called like a number */
	if (optind < argc && is_number(argv[optind])) {
		if (interval > 0 || argc - optind > 2)
			bad_usage("INTERVAL [COUNT] and nothing else, or --interval");
		interval = seconds(argv[optind++]);
		if (optind < argc)
			count = times(argv[optind++]);
	}
	if (count && interval <= 0)
		bad_usage("--count goes with --interval");
	wanted = argv + optind;
	return interval > 0 ? repeat(interval, count) : once();
}
