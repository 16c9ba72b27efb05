// SPDX-License-Identifier: GPL-2.0
/*
 * vchan-pair - libxenvchan between two guests, to compare XNEM with
 *
 *	vchan-pair server PEER-DOMID PATH RING-BYTES
 *	vchan-pair client SERVER-DOMID PATH BYTES:ROUNDS...
 *
 * The client sends BYTES and gets them back, ROUNDS times, and prints half the
 * time of a round as a JSON record a line; then sends them ROUNDS times alone, a
 * record more.  After each some rounds more under a count of system calls.  Each
 * byte that comes back is checked.  Exit status: 0 done, 1 a byte was
 * wrong, 2 failed, 64 wrong arguments.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <libxenvchan.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_BYTES (64u << 20)
#define WARM_UP 2
#define COUNTED 8

/* What comes before rounds; 0 bytes: the end.  The answer is of the same kind. */
struct phase {
	uint64_t bytes, rounds, count_calls, one_way;
};

struct counts {
	uint64_t events, calls;
};

static struct libxenvchan *chan;
static unsigned char *out, *in;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void send_all(const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		int n = libxenvchan_write(chan, p, len);

		if (n <= 0)
			die("write");
		p += n;
		len -= n;
	}
}

static void recv_all(void *data, size_t len)
{
	char *p = data;

	while (len) {
		int n = libxenvchan_read(chan, p, len);

		if (n <= 0)
			die("read");
		p += n;
		len -= n;
	}
}

/* Interrupts of this process's event channels; the line is gone with it. */
static uint64_t events(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	char line[1024];
	uint64_t sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *p = strchr(line, ':');

		if (!p || !strstr(p, "evtchn:vchan-pair"))
			continue;
		for (;;) {
			char *end;
			uint64_t n = strtoull(++p, &end, 10);

			if (end == p)
				break;
			sum += n;
			p = end;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

/* A descriptor that counts entries to the kernel, or -1; it makes them slower. */
static int call_counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	FILE *f = fopen("/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id", "re");
	unsigned long long id = 0;

	if (!f || fscanf(f, "%llu", &id) != 1)
		id = 0;
	if (f)
		fclose(f);
	attr.config = id;
	return id ? (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) : -1;
}

static void rounds(int client, const struct phase *p)
{
	for (uint64_t i = 0; i < p->rounds; i++) {
		if (client)
			send_all(out, p->bytes);
		if (!client || !p->one_way)
			recv_all(in, p->bytes);
		if (!client && !p->one_way)
			send_all(in, p->bytes);
	}
	/* the last byte is there when the other side says so */
	if (p->one_way && client)
		recv_all(in, 1);
	else if (p->one_way)
		send_all(in, 1);
}

static struct counts run(int client, const struct phase *p, uint64_t *ns)
{
	int fd = p->count_calls ? call_counter() : -1;
	struct timespec begin, end;
	struct counts c = { .events = events() };

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (fd >= 0)
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	rounds(client, p);
	if (fd >= 0)
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (fd >= 0) {
		/* without the call that stops it */
		if (read(fd, &c.calls, sizeof(c.calls)) != sizeof(c.calls) || !c.calls--)
			c.calls = 0;
		close(fd);
	}
	c.events = events() - c.events;
	if (ns)
		*ns = (end.tv_sec - begin.tv_sec) * 1000000000ull + end.tv_nsec - begin.tv_nsec;
	return c;
}

/* Both ends' counts of rounds that the client begins. */
static struct counts phase(uint64_t bytes, uint64_t n, int count_calls, int one_way, uint64_t *ns)
{
	struct phase p = { bytes, n, count_calls, one_way };
	struct counts mine, theirs;

	send_all(&p, sizeof(p));
	mine = run(1, &p, ns);
	recv_all(&theirs, sizeof(theirs));
	mine.events += theirs.events;
	mine.calls += theirs.calls;
	return mine;
}

/* 1: what came back is not what went out */
static int measure(uint64_t bytes, uint64_t n, int one_way)
{
	/* times that the bytes go there or back in a round */
	double ways = one_way ? 1 : 2;
	struct counts timed, counted;
	uint64_t ns;
	const char *verdict = "null";
	int bad;

	phase(bytes, WARM_UP, 0, one_way, NULL);
	memset(in, 0, bytes);
	timed = phase(bytes, n, 0, one_way, &ns);
	bad = !one_way && memcmp(in, out, bytes);
	if (!one_way)
		verdict = bad ? "false" : "true";
	counted = phase(bytes, COUNTED, 1, one_way, NULL);
	printf("{\"bytes\": %" PRIu64 ", \"rounds\": %" PRIu64
	       ", \"one_way\": %s, \"usec\": %.3f, \"events\": %.3f, \"syscalls\": %.3f, "
	       "\"verified\": %s}\n",
	       bytes, n, one_way ? "true" : "false", ns / 1e3 / n / ways, timed.events / ways / n,
	       counted.calls / ways / COUNTED, verdict);
	fflush(stdout);
	return bad;
}

static int client(int argc, char **argv)
{
	int bad = 0;

	for (int i = 0; i < 100 && !chan; i++) {
		chan = libxenvchan_client_init(NULL, atoi(argv[2]), argv[3]);
		if (!chan)
			usleep(100000);
	}
	if (!chan)
		die("libxenvchan_client_init");
	chan->blocking = 1;
	for (int a = 4; a < argc; a++) {
		uint64_t bytes, n;

		if (sscanf(argv[a], "%" SCNu64 ":%" SCNu64, &bytes, &n) != 2 || !bytes ||
		    bytes > MAX_BYTES || !n)
			return 64;
		for (uint64_t i = 0; i < bytes; i++)
			out[i] = (unsigned char)(i * 7 + i / 251 + a);
		bad |= measure(bytes, n, 0);
		bad |= measure(bytes, n, 1);
	}
	send_all(&(struct phase){ 0 }, sizeof(struct phase));
	/* it has read that */
	recv_all(&(struct counts){ 0 }, sizeof(struct counts));
	libxenvchan_close(chan);
	return bad;
}

static int server(char **argv)
{
	size_t ring = strtoul(argv[4], NULL, 10);
	struct counts c = { 0 };
	struct phase p;

	chan = libxenvchan_server_init(NULL, atoi(argv[2]), argv[3], ring, ring);
	if (!chan)
		die("libxenvchan_server_init");
	chan->blocking = 1;
	for (;;) {
		recv_all(&p, sizeof(p));
		if (!p.bytes || p.bytes > MAX_BYTES)
			break;
		c = run(0, &p, NULL);
		send_all(&c, sizeof(c));
	}
	send_all(&c, sizeof(c));
	sleep(1);
	libxenvchan_close(chan);
	return 0;
}

int main(int argc, char **argv)
{
	out = malloc(MAX_BYTES);
	in = malloc(MAX_BYTES);
	if (!out || !in)
		die("malloc");
	if (argc > 4 && !strcmp(argv[1], "client"))
		return client(argc, argv);
	if (argc == 5 && !strcmp(argv[1], "server"))
		return server(argv);
	fputs("usage: vchan-pair server PEER-DOMID PATH RING-BYTES\n"
	      "       vchan-pair client SERVER-DOMID PATH BYTES:ROUNDS...\n",
	      stderr);
	return 64;
}
