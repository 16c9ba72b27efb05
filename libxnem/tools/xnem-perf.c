// SPDX-License-Identifier: MIT
/*
 * xnem-perf - how long copies between two guests take, and how much goes
 *
 * A server in one guest, a client in another (or the same).  They agree over a
 * TCP connection on what is next and tell each other cookies; the data go
 * through XNEM.  The client copies and has the clock.
 *
 * Everything that is not the copy is outside the timed part: registration,
 * a first copy to warm up, patterns, checks, and all messages but "run".
 *
 * Messages are four big-endian 64-bit words, type first.  The server answers
 * each; instead of any answer it may send REFUSE errno.
 *
 *	client                                  server
 *	HELLO magic                             HELLO magic
 *	SETUP bytes, offset, flags | cookie     READY | cookie (message: address)
 *	PREPARE seed                            PREPARED      buffers are filled
 *	RUN iterations, depth                   RUNNING, and at the end DONE ns (both)
 *	        (message, notify, tcp: as many there and back, and no DONE)
 *	CHECK seed                              CHECKED position of a wrong byte + 1, or 0
 *	FREE                                    FREED         nothing is registered
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "xnem.h"

#define DEFAULT_PORT "7820"
#define MAGIC 0x584e50455246ull /* "XNPERF" */
#define VERSION 2
#define PAGE 4096u
#define MAX_DEPTH 1024u
#define MAX_ITERATIONS 10000000u
#define MAX_GAP_US 60000000u
#define MAX_BYTES (1ull << 40)
/* A copy or two before the clock runs: the first touches what no other does. */
#define WARM_UP 2
/* With --syscalls: copies that are counted and not timed. */
#define SYSCALL_COPIES 8
#define POISON 0xa5
/* What the other side has to send a message or a notification comes in that time. */
#define PEER_NS 20000000000

enum { EXIT_GOOD = 0, EXIT_DIFFERS = 1, EXIT_FAILED = 2, EXIT_USAGE = 64 };

enum test { TEST_LAT, TEST_BW, TEST_PING, TEST_TCP, TEST_MESSAGE, TEST_NOTIFY };
static const char *const test_names[] = { "lat", "bw", "ping", "tcp", "message", "notify" };
#define NR_TESTS 6

enum message {
	HELLO = 1,
	SETUP,
	READY,
	PREPARE,
	PREPARED,
	RUN,
	RUNNING,
	DONE,
	CHECK,
	CHECKED,
	FREE,
	FREED,
	REFUSE,
};

/* of SETUP */
#define FLAG_PUT 1u
#define FLAG_BOTH 2u
#define FLAG_TCP 4u
#define FLAG_MESSAGE 8u
#define FLAG_NOTIFY 16u
/* message, notify: both send at the same time, not one as the answer to the other */
#define FLAG_AT_ONCE 32u
#define FLAGS_ALL 63u

/* Memory that one end of copies is in, and the region that it is. */
struct area {
	unsigned char *map;
	size_t map_len;
	unsigned char *data;
	size_t len;
	struct xnem_region *region;
};

/* One side of a pair; each has the same for copies of its own and of the peer. */
struct side {
	int sock;
	struct xnem *ctx;
	bool any_user;
	bool put;
	bool both;
	bool tcp;
	bool message, notify, at_once;
	/* own copies go from or to here, */
	struct area local;
	/* and the peer's from or to here */
	struct area target;
	/* end of own copies over there */
	struct xnem_cookie remote;
	/* and where messages go */
	struct xnem_address peer;
	/* notify: own copies under way, notifications that have come */
	unsigned int copying, told;
	/* patterns of own copies and of the peer's */
	uint64_t local_seed, target_seed;
	/* before each timed copy; and where marks go, or -1 */
	useconds_t gap_us;
	int marks;
};

struct client {
	const char *host, *port;
	enum test test;
	bool put, both, verify, json, any_user, step, syscalls;
	bool one_size;
	uint64_t min_bytes, max_bytes;
	unsigned int local_offset, remote_offset;
	uint64_t iterations;
	unsigned int depth;
	unsigned int wait_seconds;
	useconds_t gap_us;
	bool marks;
};

/* What a row of the table says; times in ns. */
struct row {
	uint64_t bytes, iterations;
	uint64_t min, typical, p99;
	double avg, mib_per_second;
	/* sleeps of the client's thread in all */
	uint64_t sleeps;
	/* a copy, < 0: not known */
	double syscalls, clock_reads;
	bool good;
};

static const char usage[] =
	"usage: xnem-perf server [--port N] [--once] [--any-user]\n"
	"       xnem-perf client HOST [--port N] [option...]\n"
	"Measures copies between the client's guest and the server's.\n"
	"\n"
	"  --test lat|bw|ping|message|notify|tcp\n"
	"                          lat: one copy from start to end (default); bw: many in\n"
	"                          flight; ping: to the backend and back, needs no HOST;\n"
	"                          message: 1 to 64 bytes, half a round trip; notify: a copy\n"
	"                          to the peer that tells it so, half a round trip;\n"
	"                          tcp: the same bytes over TCP, half a round trip\n"
	"  --op get|put            the client copies from the server (default), or to it\n"
	"  --both                  the server copies (sends) at the same time\n"
	"  --sizes A:B             bytes, A and its doubles up to B (default 1:4M)\n"
	"  --size N                bytes, this size alone\n"
	"  --offset N[:M]          N bytes into a page here, M there (M = N)\n"
	"  --iterations N          timed copies a size (default: by size)\n"
	"  --depth N               bw: copies in flight (16)\n"
	"  --verify                check each byte, outside the timed part\n"
	"  --json                  an array of records instead of a table\n"
	"  --syscalls              count system calls a copy in extra copies (root)\n"
	"  --gap USEC              lat: idle before each copy, so that all ends sleep (0)\n"
	"  --marks                 lat: write a mark into the kernel's trace around each copy\n"
	"  --step                  for scripts, see xnem-perf(1)\n"
	"  --any-user              the other side may have another uid; wanted on both\n"
	"  --wait SECONDS          how long to try to connect (5)\n"
	"  --once                  server: end after one client\n"
	"  --help, --version\n"
	"\n"
	"N may end in K, M or G.  Both ends pin what they copy: a user other than root has\n"
	"RLIMIT_MEMLOCK bytes for that (ulimit -l), twice the size with --both.  A range of\n"
	"sizes ends there and says so.\n"
	"\n"
	"Exit status: 0 done; 1 a byte was wrong; 2 failed; 64 wrong arguments.\n";

/* An array that was begun is ended, whatever happens. */
static bool json_open;
static bool json_first = true;

static void json_end(void)
{
	if (json_open)
		printf("]\n");
	json_open = false;
}

__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
	json_end();
	fflush(stdout);
	fputs("xnem-perf: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(EXIT_FAILED);
}

__attribute__((format(printf, 1, 2), noreturn)) static void bad_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	fputs("xnem-perf: --help tells more\n", stderr);
	exit(EXIT_USAGE);
}

__attribute__((noreturn)) static void die_xnem(const char *what, int err)
{
	die("%s: %s (%s)", what, xnem_strerror(err), xnem_errname(err));
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- the connection ---- */

static void send_bytes(int sock, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("the other side is gone: %s", strerror(errno));
		p += n;
		len -= n;
	}
}

/* false: closed before the first byte */
static bool recv_bytes(int sock, void *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(sock, (char *)data + have, len - have, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("the other side is gone: %s", strerror(errno));
		if (n == 0 && !have)
			return false;
		if (n == 0)
			die("the other side is gone: it closed the connection");
		have += n;
	}
	return true;
}

static void must_recv(int sock, void *data, size_t len)
{
	if (!recv_bytes(sock, data, len))
		die("the other side is gone: it closed the connection");
}

struct words {
	uint64_t w[4];
};

static void send_message(int sock, enum message type, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t w[4] = { type, a, b, c };
	unsigned char m[32];

	for (unsigned int i = 0; i < 32; i++)
		m[i] = (unsigned char)(w[i / 8] >> (56 - 8 * (i % 8)));
	send_bytes(sock, m, sizeof(m));
}

static bool recv_words(int sock, struct words *out)
{
	unsigned char m[32];

	if (!recv_bytes(sock, m, sizeof(m)))
		return false;
	*out = (struct words){ { 0 } };
	for (unsigned int i = 0; i < 32; i++)
		out->w[i / 8] = out->w[i / 8] << 8 | m[i];
	return true;
}

/* 0 and the first word after the type; or the negative errno of a refusal */
static int answer(int sock, enum message type, uint64_t *value)
{
	struct words m;

	if (!recv_words(sock, &m))
		die("the other side is gone: it closed the connection");
	if (m.w[0] == REFUSE)
		return m.w[1] && m.w[1] < 4096 ? -(int)m.w[1] : -EPROTO;
	if (m.w[0] != (uint64_t)type)
		die("the other side does not speak as xnem-perf of this version does");
	if (value)
		*value = m.w[1];
	return 0;
}

static void must_answer(int sock, enum message type, uint64_t *value, const char *what)
{
	int err = answer(sock, type, value);

	if (err)
		die("%s: the other side says: %s (%s)", what, xnem_strerror(err),
		    xnem_errname(err));
}

/* A guest that was destroyed sends nothing: notice it in some seconds. */
static void tune(int sock)
{
	int on = 1, idle = 5, interval = 2, count = 5, timeout = 15000;

	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

static int connect_peer(const char *host, const char *port, unsigned int wait_seconds)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	uint64_t end = now_ns() + wait_seconds * 1000000000ull;
	struct addrinfo *found, *a;
	int sock, err;

	err = getaddrinfo(host, port, &hints, &found);
	if (err)
		die("%s: %s", host, gai_strerror(err));
	for (;;) {
		for (a = found; a; a = a->ai_next) {
			sock = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (sock < 0) {
				err = errno;
				continue;
			}
			if (!connect(sock, a->ai_addr, a->ai_addrlen)) {
				freeaddrinfo(found);
				tune(sock);
				return sock;
			}
			err = errno;
			close(sock);
		}
		if (now_ns() >= end)
			die("%s port %s: %s", host, port, strerror(err));
		usleep(100000);
	}
}

static int listen_on(const char *port)
{
	struct sockaddr_in6 addr6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in addr4 = { .sin_family = AF_INET };
	union {
		struct sockaddr any;
		struct sockaddr_in6 v6;
	} bound;
	socklen_t len = sizeof(bound);
	int sock, on = 1, off = 0, err;

	addr6.sin6_port = addr4.sin_port = htons((uint16_t)atoi(port));
	sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock >= 0) {
		setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		err = bind(sock, (struct sockaddr *)&addr6, sizeof(addr6));
		if (err && errno != EADDRINUSE) {
			close(sock);
			sock = -1;
		}
	} else {
		err = -1;
	}
	if (sock < 0) {
		/* no IPv6 here */
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock < 0)
			die("socket: %s", strerror(errno));
		setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		err = bind(sock, (struct sockaddr *)&addr4, sizeof(addr4));
	}
	if (err || listen(sock, 8) || getsockname(sock, &bound.any, &len))
		die("port %s: %s", port, strerror(errno));
	/* the port is at the same place in both kinds of address */
	printf("listening on port %u\n", ntohs(bound.v6.sin6_port));
	fflush(stdout);
	return sock;
}

/* ---- memory ---- */

static uint64_t pattern_word(uint64_t seed, uint64_t i)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull ^ seed * 0xd1342543de82ef95ull;

	return x ^ x >> 29;
}

static void fill(struct area *a, uint64_t seed)
{
	for (size_t i = 0; i < a->len; i += 8) {
		uint64_t w = pattern_word(seed, i / 8);

		memcpy(a->data + i, &w, a->len - i < 8 ? a->len - i : 8);
	}
}

/* Also around the range, where no copy may write. */
static void poison(struct area *a)
{
	memset(a->map, POISON, a->map_len);
}

/* position of the first wrong byte + 1, or 0 */
static uint64_t check(const struct area *a, uint64_t seed)
{
	const unsigned char *p, *end = a->data + a->len;

	for (size_t i = 0; i < a->len; i += 8) {
		size_t n = a->len - i < 8 ? a->len - i : 8;
		uint64_t w = pattern_word(seed, i / 8);

		if (!memcmp(a->data + i, &w, n))
			continue;
		for (size_t k = 0; k < n; k++)
			if (a->data[i + k] != ((unsigned char *)&w)[k])
				return i + k + 1;
	}
	for (p = a->map; p < a->data; p++)
		if (*p != POISON)
			return a->len + 1;
	for (p = end; p < a->map + a->map_len; p++)
		if (*p != POISON)
			return a->len + 1;
	return 0;
}

static int area_make(struct side *s, struct area *a, uint64_t bytes, unsigned int offset,
		     unsigned int access)
{
	int err;

	a->map_len = (bytes + offset + PAGE - 1) / PAGE * PAGE;
	a->map = mmap(NULL, a->map_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (a->map == MAP_FAILED) {
		a->map = NULL;
		return -ENOMEM;
	}
	/* Pages of zeroes are all the same page until they are written. */
	poison(a);
	a->data = a->map + offset;
	a->len = bytes;
	if (!access)
		return 0;
	err = xnem_register(s->ctx, a->data, bytes, access | (s->any_user ? XNEM_ANY_USER : 0),
			    &a->region);
	if (err)
		a->region = NULL;
	return err;
}

/* Memory that is no region: what goes through it is not copied by XNEM. */
static bool is_plain(const struct side *s)
{
	return s->tcp || s->message;
}

/* Access that own copies want of the own end, and the peer's of theirs. */
static unsigned int local_access(const struct side *s)
{
	if (is_plain(s))
		return 0;
	return s->put ? XNEM_READ : XNEM_WRITE;
}

static unsigned int target_access(const struct side *s)
{
	if (is_plain(s))
		return 0;
	return s->put ? XNEM_WRITE : XNEM_READ;
}

/* Memory whose region has not ended must not be used for anything else. */
static void area_free(struct area *a)
{
	int err = a->region ? xnem_deregister(a->region) : 0;

	if (err)
		die_xnem("deregistration", err);
	if (a->map)
		munmap(a->map, a->map_len);
	*a = (struct area){ 0 };
}

static void side_free(struct side *s)
{
	area_free(&s->local);
	area_free(&s->target);
}

/* The end that data come from has the pattern, the other one none of it. */
static void side_prepare(struct side *s)
{
	struct area *source = s->put ? &s->local : &s->target;
	struct area *destination = s->put ? &s->target : &s->local;

	if (source->map)
		fill(source, s->put ? s->local_seed : s->target_seed);
	if (destination->map)
		poison(destination);
}

static uint64_t side_check(const struct side *s)
{
	const struct area *destination = s->put ? &s->target : &s->local;

	return destination->map ? check(destination, s->put ? s->target_seed : s->local_seed) : 0;
}

/* ---- copies ---- */

static int copy_once(struct side *s)
{
	int err;

	do {
		if (s->put)
			err = xnem_put(s->local.region, 0, &s->remote, 0, s->local.len, NULL);
		else
			err = xnem_get(s->local.region, 0, &s->remote, 0, s->local.len, NULL);
	} while (err == -EAGAIN && !usleep(100));
	return err;
}

/* For whoever reads the kernel's trace.  That none is recorded now is no error. */
static void mark(const struct side *s, const char *what)
{
	ssize_t n = write(s->marks, what, strlen(what));

	(void)n;
}

/*
 * The first two marks have nothing between them: what a mark itself takes, to be
 * subtracted from the time between the other two.
 */
static int copy_marked(struct side *s)
{
	int err;

	mark(s, "xnem-perf: idle");
	mark(s, "xnem-perf: begin");
	err = copy_once(s);
	mark(s, "xnem-perf: end");
	return err;
}

static int copy_one_by_one(struct side *s, uint64_t n, uint64_t *samples)
{
	uint64_t before = now_ns(), after;

	for (uint64_t i = 0; i < n; i++) {
		int err;

		if (s->gap_us) {
			usleep(s->gap_us);
			before = now_ns();
		}
		err = s->marks < 0 ? copy_once(s) : copy_marked(s);
		if (err)
			return err;
		after = now_ns();
		if (samples)
			samples[i] = after - before;
		before = after;
	}
	return 0;
}

/* Refills when half of depth has ended: a system call is for many then. */
static int copy_deep(struct side *s, uint64_t n, unsigned int depth)
{
	static struct xnem_event events[MAX_DEPTH];
	static struct xnem_op ops[MAX_DEPTH];
	const struct xnem_cookie *local = xnem_region_cookie(s->local.region);
	uint64_t to_start = n;
	unsigned int inflight = 0;
	int got, err = 0;

	for (unsigned int i = 0; i < depth; i++) {
		ops[i] = (struct xnem_op){ .kind = XNEM_KIND_COPY, .length = s->local.len };
		ops[i].src = s->put ? *local : s->remote;
		ops[i].dst = s->put ? s->remote : *local;
	}
	while ((to_start && !err) || inflight) {
		unsigned int room = depth - inflight;

		if (room > to_start)
			room = (unsigned int)to_start;
		if (room && !err) {
			got = xnem_submit(s->ctx, ops, room);
			if (got > 0) {
				to_start -= got;
				inflight += got;
			} else if (got != -EAGAIN) {
				err = got;
			} else if (!inflight) {
				usleep(100);
			}
		}
		if (!inflight)
			continue;
		got = xnem_get_events(s->ctx, events, (inflight + 1) / 2, depth, XNEM_FOREVER);
		if (got == -EINTR)
			continue;
		if (got < 0)
			return got;
		inflight -= got;
		for (int i = 0; i < got; i++) {
			if (events[i].status == -EAGAIN)
				to_start++;
			else if (events[i].status && !err)
				err = events[i].status;
		}
	}
	return err;
}

static int copies(struct side *s, uint64_t n, unsigned int depth, uint64_t *samples)
{
	return depth ? copy_deep(s, n, depth) : copy_one_by_one(s, n, samples);
}

/* ---- messages and notifications ---- */

static int send_one(struct side *s)
{
	return xnem_send(s->ctx, &s->peer, s->target.data, s->target.len, PEER_NS);
}

static int recv_one(struct side *s, unsigned char *to)
{
	struct xnem_message m;
	int err;

	do {
		err = xnem_recv(s->ctx, &m, PEER_NS);
	} while (err == -EINTR);
	if (!err && m.length != s->target.len)
		return -EPROTO;
	if (!err)
		memcpy(to, m.data, m.length);
	return err;
}

static int notify_one(struct side *s)
{
	struct xnem_op op = {
		.kind = XNEM_KIND_COPY,
		.flags = XNEM_OP_NOTIFY_DST,
		.length = s->local.len,
		.immediate = MAGIC,
		.src = *xnem_region_cookie(s->local.region),
		.dst = s->remote,
	};
	int n;

	while ((n = xnem_submit(s->ctx, &op, 1)) == -EAGAIN)
		usleep(100);
	if (n > 0)
		s->copying++;
	return n < 0 ? n : 0;
}

/* until a notification has come, and the own copy has ended */
static int await_one(struct side *s)
{
	struct xnem_event e[4];
	int n;

	while (!s->told || s->copying) {
		n = xnem_get_events(s->ctx, e, 1, 4, PEER_NS);
		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++) {
			if (e[i].kind == XNEM_EVENT_NOTIFY) {
				if (e[i].user_data != MAGIC || e[i].bytes != s->local.len)
					return -EPROTO;
				s->told++;
				continue;
			}
			s->copying--;
			if (e[i].status)
				return e[i].status;
		}
	}
	s->told--;
	return 0;
}

/* n times there and back; the client begins, or both at once */
static int play(struct side *s, uint64_t n, bool first, uint64_t *samples)
{
	unsigned char *to = s->message && first ? s->local.data : s->target.data;
	unsigned char sink[XNEM_MESSAGE_MAX];
	bool send_first = first || s->at_once;
	int err = 0;

	/* an answer is what came; who sends at once keeps what it has */
	if (s->message && s->at_once && !first)
		to = sink;
	for (uint64_t i = 0; i < n && !err; i++) {
		uint64_t begin = now_ns();

		if (send_first)
			err = s->message ? send_one(s) : notify_one(s);
		if (!err)
			err = s->message ? recv_one(s, to) : await_one(s);
		if (!err && !send_first)
			err = s->message ? send_one(s) : notify_one(s);
		if (samples)
			samples[i] = now_ns() - begin;
	}
	/* the end of the last own copy of one that answers */
	while (!err && s->copying) {
		struct xnem_event e;
		int got = xnem_get_events(s->ctx, &e, 1, 1, PEER_NS);

		if (got < 0 && got != -EINTR)
			err = got;
		if (got == 1 && e.kind == XNEM_EVENT_DONE) {
			s->copying--;
			err = e.status;
		} else if (got == 1) {
			s->told++;
		}
	}
	return err;
}

/* ---- server ---- */

__attribute__((noreturn)) static void refuse(struct side *s, const char *what, int err)
{
	send_message(s->sock, REFUSE, (uint64_t)-err, 0, 0);
	die_xnem(what, err);
}

static int open_device(struct xnem **ctx)
{
	struct xnem_device_info info;
	int err = xnem_open(NULL, ctx);

	if (err)
		return err;
	err = xnem_get_info(*ctx, &info);
	if (!err && !info.connected)
		err = -ENOTCONN;
	if (err)
		xnem_close(*ctx);
	return err;
}

/* what the peer needs of this side: a cookie, an address, or nothing */
static int own_name(struct side *s, struct xnem_cookie *name)
{
	struct xnem_address address;
	int err;

	*name = (struct xnem_cookie){ { 0 } };
	if (s->message) {
		err = xnem_get_address(s->ctx, &address);
		if (!err)
			memcpy(name, &address, sizeof(*name));
		return err;
	}
	if (s->target.region)
		*name = *xnem_region_cookie(s->target.region);
	return 0;
}

static int server_setup(struct side *s, const struct words *m, const struct xnem_cookie *peer)
{
	uint64_t bytes = m->w[1], offset = m->w[2];
	int err = 0;

	if (!bytes || bytes > MAX_BYTES || offset >= PAGE || m->w[3] > FLAGS_ALL)
		return -EINVAL;
	s->put = m->w[3] & FLAG_PUT;
	s->both = m->w[3] & FLAG_BOTH;
	s->tcp = m->w[3] & FLAG_TCP;
	s->message = m->w[3] & FLAG_MESSAGE;
	s->notify = m->w[3] & FLAG_NOTIFY;
	s->at_once = m->w[3] & FLAG_AT_ONCE;
	if (s->message && bytes > XNEM_MESSAGE_MAX)
		return -EMSGSIZE;
	s->remote = *peer;
	memcpy(&s->peer, peer, sizeof(s->peer));
	if (!s->tcp && !s->ctx) {
		err = open_device(&s->ctx);
		if (err) {
			s->ctx = NULL;
			return err;
		}
	}
	if (!s->tcp && (s->both || s->message))
		err = xnem_reachable(s->ctx, peer);
	if (!err)
		err = area_make(s, &s->target, bytes, (unsigned int)offset, target_access(s));
	if (!err && s->both)
		err = area_make(s, &s->local, bytes, (unsigned int)offset, local_access(s));
	if (err)
		side_free(s);
	return err;
}

static void server_run(struct side *s, uint64_t n, uint64_t depth)
{
	uint64_t begin;
	int err;

	if (!s->target.map || !n || n > MAX_ITERATIONS || depth > MAX_DEPTH)
		refuse(s, "run", -EPROTO);
	send_message(s->sock, RUNNING, 0, 0, 0);
	if (s->tcp) {
		while (n--) {
			must_recv(s->sock, s->target.data, s->target.len);
			send_bytes(s->sock, s->target.data, s->target.len);
		}
	}
	if (s->message || s->notify) {
		err = play(s, n, false, NULL);
		if (err)
			refuse(s, s->message ? "message" : "copy", err);
		return;
	}
	if (!s->both)
		return;
	begin = now_ns();
	err = copies(s, n, (unsigned int)depth, NULL);
	if (err)
		refuse(s, "copy", err);
	send_message(s->sock, DONE, now_ns() - begin, 0, 0);
}

static void serve(int sock, bool any_user)
{
	struct side s = { .sock = sock, .any_user = any_user, .marks = -1 };
	struct xnem_cookie peer, name;
	struct words m;
	int err;

	tune(sock);
	while (recv_words(sock, &m)) {
		switch (m.w[0]) {
		case HELLO:
			if (m.w[1] != MAGIC || m.w[2] != VERSION)
				refuse(&s, "client", -EPROTO);
			send_message(sock, HELLO, MAGIC, VERSION, 0);
			break;
		case SETUP:
			must_recv(sock, &peer, sizeof(peer));
			side_free(&s);
			err = server_setup(&s, &m, &peer);
			if (!err)
				err = own_name(&s, &name);
			if (err) {
				/* the client says more, and goes on or not */
				send_message(sock, REFUSE, (uint64_t)-err, 0, 0);
				break;
			}
			send_message(sock, READY, 0, 0, 0);
			send_bytes(sock, &name, sizeof(name));
			break;
		case PREPARE:
			s.target_seed = m.w[1];
			s.local_seed = m.w[1] + 1;
			side_prepare(&s);
			send_message(sock, PREPARED, 0, 0, 0);
			break;
		case RUN:
			server_run(&s, m.w[1], m.w[2]);
			break;
		case CHECK:
			send_message(sock, CHECKED, side_check(&s), 0, 0);
			break;
		case FREE:
			side_free(&s);
			send_message(sock, FREED, 0, 0, 0);
			break;
		default:
			die("the client does not speak as xnem-perf of this version does");
		}
	}
	side_free(&s);
	err = xnem_close(s.ctx);
	if (err)
		die_xnem("close", err);
}

/*
 * A client has a process of its own, so that one that vanishes in the middle
 * leaves nothing behind.  One after the other: two at once would measure each
 * other.
 */
static int server(const char *port, bool once, bool any_user)
{
	int listener = listen_on(port), status = 0;
	pid_t parent = getpid(), pid;

	do {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (sock < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			die("accept: %s", strerror(errno));
		}
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(EXIT_FAILED);
			close(listener);
			serve(sock, any_user);
			exit(EXIT_GOOD);
		}
		close(sock);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFSIGNALED(status))
			fprintf(stderr, "xnem-perf: signal %d ended a client's process\n",
				WTERMSIG(status));
	} while (!once);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* ---- client ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void summarise(struct row *r, uint64_t *samples, unsigned int divisor)
{
	uint64_t sum = 0, n = r->iterations;

	for (uint64_t i = 0; i < n; i++) {
		samples[i] /= divisor;
		sum += samples[i];
	}
	qsort(samples, n, sizeof(*samples), by_value);
	r->min = samples[0];
	r->typical = samples[n / 2];
	r->p99 = samples[(n * 99 + 99) / 100 - 1];
	r->avg = (double)sum / n;
	r->mib_per_second = sum ? (double)r->bytes * n / (1 << 20) / (sum / 1e9) : 0;
}

static void table_head(const struct client *c)
{
	if (c->json) {
		printf("[\n");
		fflush(stdout);
		json_open = true;
		return;
	}
	if (c->test == TEST_PING)
		printf("# there and back to the backend\n");
	else if (c->test == TEST_TCP)
		printf("# TCP to %s, half a round trip\n", c->host);
	else if (c->test == TEST_MESSAGE || c->test == TEST_NOTIFY)
		printf("# XNEM, %s to %s, %s\n",
		       c->test == TEST_MESSAGE ? "messages" : "copies that tell of their end",
		       c->host, c->both ? "and from there at the same time" : "half a round trip");
	else
		printf("# XNEM, %s %s%s%s\n",
		       c->put ? "the client copies to" : "the client copies from", c->host,
		       c->both ? ", and the server at the same time" : "",
		       c->test == TEST_BW ? ", many in flight" : ", one after the other");
	printf("%12s %10s ", "bytes", "iterations");
	if (c->test == TEST_BW)
		printf("%12s %12s", "usec a copy", "MiB/s");
	else
		printf("%11s %11s %11s %11s %12s", "usec min", "typical", "avg", "p99", "MiB/s");
	printf("%s%s\n", c->syscalls ? "  syscalls" : "", c->verify ? "  data" : "");
	fflush(stdout);
}

static void row_json(const struct client *c, const struct row *r)
{
	const char *op = c->put ? "put" : "get";

	if (c->test == TEST_PING)
		op = "ping";
	else if (c->test == TEST_TCP || c->test == TEST_MESSAGE)
		op = "echo";
	printf("%s {\"test\": \"%s\", \"op\": \"%s\", \"both\": %s, \"depth\": %u, "
	       "\"bytes\": %" PRIu64
	       ", \"local_offset\": %u, \"remote_offset\": %u, \"iterations\": %" PRIu64 ", ",
	       json_first ? " " : ",", test_names[c->test], op, c->both ? "true" : "false",
	       c->test == TEST_BW ? c->depth : 1, r->bytes, c->local_offset, c->remote_offset,
	       r->iterations);
	json_first = false;
	if (c->test == TEST_BW)
		printf("\"usec_min\": null, \"usec_typical\": null, \"usec_p99\": null, ");
	else
		printf("\"usec_min\": %.3f, \"usec_typical\": %.3f, \"usec_p99\": %.3f, ",
		       r->min / 1e3, r->typical / 1e3, r->p99 / 1e3);
	printf("\"usec_avg\": %.3f, \"mib_per_second\": %.3f, \"sleeps\": %" PRIu64 ", ",
	       r->avg / 1e3, r->mib_per_second, r->sleeps);
	if (r->syscalls < 0)
		printf("\"syscalls\": null, ");
	else
		printf("\"syscalls\": %.3f, ", r->syscalls);
	if (r->clock_reads < 0)
		printf("\"clock_reads\": null, ");
	else
		printf("\"clock_reads\": %.3f, ", r->clock_reads);
	printf("\"verified\": %s}\n", !c->verify ? "null" : r->good ? "true" : "false");
}

static void row_print(const struct client *c, const struct row *r)
{
	if (c->json) {
		row_json(c, r);
	} else {
		printf("%12" PRIu64 " %10" PRIu64 " ", r->bytes, r->iterations);
		if (c->test == TEST_BW)
			printf("%12.2f %12.2f", r->avg / 1e3, r->mib_per_second);
		else
			printf("%11.2f %11.2f %11.2f %11.2f %12.2f", r->min / 1e3, r->typical / 1e3,
			       r->avg / 1e3, r->p99 / 1e3, r->mib_per_second);
		if (c->syscalls && r->syscalls < 0)
			printf("         -");
		else if (c->syscalls)
			printf("  %8.2f", r->syscalls);
		if (c->verify)
			printf("  %s", r->good ? "right" : "WRONG");
		putchar('\n');
	}
	if (fflush(stdout))
		die("standard output: %s", strerror(errno));
}

static uint64_t sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (uint64_t)u.ru_nvcsw;
}

/*
 * Counts entries to the kernel, by the tracepoint that all of them pass, or those
 * that a filter lets through.  It makes each slower, so nothing is timed
 * meanwhile.
 */
static int syscall_counter(const char *filter)
{
	static const char *const ids[] = {
		"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
		"/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
	};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	unsigned long long id = 0;
	int fd;

	for (unsigned int i = 0; i < 2 && !id; i++) {
		FILE *f = fopen(ids[i], "re");

		if (!f)
			continue;
		if (fscanf(f, "%llu", &id) != 1)
			id = 0;
		fclose(f);
	}
	if (!id)
		return -1;
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0 && filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* What a counter says, a copy, and an end of it; -1: it says nothing. */
static double counted(int fd, uint64_t not_ours)
{
	uint64_t n = 0;

	if (fd < 0 || read(fd, &n, sizeof(n)) != sizeof(n) || n < not_ours)
		n = UINT64_MAX;
	if (fd >= 0)
		close(fd);
	return n == UINT64_MAX ? -1 : (double)(n - not_ours) / SYSCALL_COPIES;
}

/*
 * Reading the clock is apart: it enters the kernel in a PV guest, whose clock
 * user space cannot read by itself, and in no other.
 */
static void count_syscalls(struct row *r, int (*once)(struct side *s), struct side *s)
{
	char filter[32];
	int all, clock, err = 0;

	snprintf(filter, sizeof(filter), "id == %d", SYS_clock_gettime);
	clock = syscall_counter(filter);
	all = syscall_counter(NULL);
	if (clock >= 0)
		ioctl(clock, PERF_EVENT_IOC_ENABLE, 0);
	if (all >= 0)
		ioctl(all, PERF_EVENT_IOC_ENABLE, 0);
	for (unsigned int i = 0; i < SYSCALL_COPIES && !err; i++)
		err = once(s);
	if (all >= 0)
		ioctl(all, PERF_EVENT_IOC_DISABLE, 0);
	if (clock >= 0)
		ioctl(clock, PERF_EVENT_IOC_DISABLE, 0);
	if (err)
		die_xnem("copy", err);
	r->clock_reads = counted(clock, 0);
	/* without the call that stops it */
	r->syscalls = counted(all, 1);
	if (r->syscalls >= 0 && r->clock_reads >= 0)
		r->syscalls -= r->clock_reads;
}

static uint64_t iterations_for(const struct client *c, uint64_t bytes)
{
	uint64_t n;

	if (c->iterations)
		return c->iterations;
	n = bytes ? (256ull << 20) / bytes : 1000;
	return n > 1000 ? 1000 : n < 20 ? 20 : n;
}

static int ping_once(struct side *s)
{
	return xnem_ping(s->ctx, XNEM_FOREVER, NULL);
}

static uint64_t *make_samples(uint64_t n)
{
	uint64_t *samples = malloc(n * sizeof(*samples));

	if (!samples)
		die("%" PRIu64 " samples: %s", n, strerror(ENOMEM));
	/* no page faults later */
	memset(samples, 1, n * sizeof(*samples));
	return samples;
}

static void run_ping(const struct client *c, struct side *s)
{
	struct row r = {
		.iterations = iterations_for(c, 0), .syscalls = -1, .clock_reads = -1, .good = true
	};
	uint64_t *samples = make_samples(r.iterations);
	int err = 0;

	for (unsigned int i = 0; i < WARM_UP && !err; i++)
		err = ping_once(s);
	r.sleeps = sleeps();
	for (uint64_t i = 0; i < r.iterations && !err; i++) {
		uint64_t begin = now_ns();

		err = ping_once(s);
		samples[i] = now_ns() - begin;
	}
	if (err)
		die_xnem("ping", err);
	r.sleeps = sleeps() - r.sleeps;
	summarise(&r, samples, 1);
	if (c->syscalls)
		count_syscalls(&r, ping_once, s);
	row_print(c, &r);
	free(samples);
}

static void tcp_echo(struct side *s, uint64_t n, uint64_t *samples)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t begin = now_ns();

		send_bytes(s->sock, s->target.data, s->target.len);
		must_recv(s->sock, s->local.data, s->local.len);
		samples[i] = now_ns() - begin;
	}
}

static void run_copies(const struct client *c, struct side *s, struct row *r, uint64_t *samples)
{
	unsigned int depth = c->test == TEST_BW ? c->depth : 0;
	uint64_t begin, ns, theirs = 0;
	int err;

	begin = now_ns();
	err = copies(s, r->iterations, depth, samples);
	ns = now_ns() - begin;
	if (err)
		die_xnem("copy", err);
	if (s->both)
		must_answer(s->sock, DONE, &theirs, "copy");
	if (c->test == TEST_LAT) {
		summarise(r, samples, 1);
		return;
	}
	if (theirs > ns)
		ns = theirs;
	r->avg = (double)ns / r->iterations;
	r->mib_per_second =
		ns ? (s->both ? 2.0 : 1.0) * r->bytes * r->iterations / (1 << 20) / (ns / 1e9) : 0;
}

static void warm_up(const struct client *c, struct side *s, uint64_t *samples)
{
	int err;

	if (c->test == TEST_TCP) {
		send_message(s->sock, RUN, WARM_UP, 0, 0);
		must_answer(s->sock, RUNNING, NULL, "run");
		tcp_echo(s, WARM_UP, samples);
		return;
	}
	if (s->message || s->notify) {
		send_message(s->sock, RUN, WARM_UP, 0, 0);
		must_answer(s->sock, RUNNING, NULL, "run");
		err = play(s, WARM_UP, true, NULL);
	} else {
		err = copy_one_by_one(s, WARM_UP, NULL);
	}
	if (err)
		die_xnem(s->message ? "message" : "copy", err);
}

static bool measure(const struct client *c, struct side *s, uint64_t bytes, uint64_t *samples)
{
	static uint64_t seed;
	struct row r = { .bytes = bytes, .syscalls = -1, .clock_reads = -1, .good = true };
	uint64_t bad = 0;

	r.iterations = iterations_for(c, bytes);
	if (c->verify) {
		seed += 2;
		s->local_seed = seed;
		s->target_seed = seed + 1;
		/* an echo comes from the pattern that goes out */
		if (is_plain(s)) {
			fill(&s->target, s->local_seed);
			poison(&s->local);
		} else {
			side_prepare(s);
		}
		send_message(s->sock, PREPARE, seed, 0, 0);
		must_answer(s->sock, PREPARED, NULL, "memory");
	}
	send_message(s->sock, RUN, r.iterations, c->test == TEST_BW ? c->depth : 0, 0);
	must_answer(s->sock, RUNNING, NULL, "run");
	r.sleeps = sleeps();
	if (s->tcp) {
		tcp_echo(s, r.iterations, samples);
		summarise(&r, samples, 2);
	} else if (s->message || s->notify) {
		int err = play(s, r.iterations, true, samples);

		if (err)
			die_xnem(s->message ? "message" : "copy", err);
		summarise(&r, samples, s->at_once ? 1 : 2);
	} else {
		run_copies(c, s, &r, samples);
	}
	r.sleeps = sleeps() - r.sleeps;
	if (c->verify) {
		uint64_t there = 0;

		bad = side_check(s);
		if (!is_plain(s)) {
			send_message(s->sock, CHECK, seed, 0, 0);
			must_answer(s->sock, CHECKED, &there, "check");
		}
		r.good = !bad && !there;
		if (!r.good)
			fprintf(stderr,
				"xnem-perf: %" PRIu64 " bytes: wrong byte at %" PRIu64 " %s\n",
				bytes, (bad ? bad : there) - 1, bad ? "here" : "there");
	}
	if (c->syscalls && c->test == TEST_LAT)
		count_syscalls(&r, copy_once, s);
	row_print(c, &r);
	return r.good;
}

static uint64_t region_id(const struct xnem_cookie *cookie)
{
	uint64_t id = 0;

	for (unsigned int i = 8; i--;)
		id = id << 8 | cookie->bytes[i];
	return id;
}

/* Measures at each SIGUSR1 until a SIGTERM or SIGINT, the regions as they are. */
static bool measure_stepwise(const struct client *c, struct side *s, uint64_t bytes,
			     uint64_t *samples)
{
	bool good = true;
	uint64_t local, remote;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	local = s->tcp ? 0 : region_id(xnem_region_cookie(s->local.region));
	remote = region_id(&s->remote);
	fprintf(stderr, "ready %" PRIu64 " %" PRIu64 "\n", s->put ? local : remote,
		s->put ? remote : local);
	while (!sigwait(&set, &sig) && sig == SIGUSR1)
		good = measure(c, s, bytes, samples) && good;
	return good;
}

/* Memory for one size on both sides; 0, or an errno, *there: it is the server's */
static int client_setup(const struct client *c, struct side *s, uint64_t bytes, bool *there)
{
	struct xnem_cookie name;
	int err;

	*there = false;
	err = area_make(s, &s->local, bytes, c->local_offset, local_access(s));
	if (!err && (s->both || is_plain(s)))
		err = area_make(s, &s->target, bytes, c->local_offset, target_access(s));
	if (!err)
		err = own_name(s, &name);
	if (err)
		return err;
	send_message(s->sock, SETUP, bytes, c->remote_offset,
		     (s->put ? FLAG_PUT : 0) | (s->both ? FLAG_BOTH : 0) | (s->tcp ? FLAG_TCP : 0) |
			     (s->message ? FLAG_MESSAGE : 0) | (s->notify ? FLAG_NOTIFY : 0) |
			     (s->at_once ? FLAG_AT_ONCE : 0));
	send_bytes(s->sock, &name, sizeof(name));
	err = answer(s->sock, READY, NULL);
	if (err) {
		*there = true;
		return err;
	}
	must_recv(s->sock, &s->remote, sizeof(s->remote));
	memcpy(&s->peer, &s->remote, sizeof(s->peer));
	return s->tcp ? 0 : xnem_reachable(s->ctx, &s->remote);
}

static void explain(uint64_t bytes, int err, bool there)
{
	const char *where = there ? "the server's guest" : "this guest";
	struct rlimit limit;

	fprintf(stderr, "xnem-perf: %" PRIu64 " bytes, in %s: %s (%s)\n", bytes, where,
		xnem_strerror(err), xnem_errname(err));
	if (err == -ENOMEM && !there && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY)
		fprintf(stderr,
			"xnem-perf: RLIMIT_MEMLOCK is %ju KiB here (ulimit -l); smaller sizes fit\n",
			(uintmax_t)limit.rlim_cur / 1024);
	else if (err == -ENOMEM)
		fprintf(stderr, "xnem-perf: RLIMIT_MEMLOCK there? (ulimit -l)\n");
}

/* Limits end a range of sizes; any other error is one. */
static bool is_limit(int err)
{
	return err == -ENOMEM || err == -E2BIG || err == -ENOSPC;
}

static int run_sizes(const struct client *c, struct side *s)
{
	bool good = true, there, some = false;

	for (uint64_t bytes = c->min_bytes; bytes <= c->max_bytes; bytes *= 2) {
		uint64_t n = iterations_for(c, bytes), *samples;
		int err = client_setup(c, s, bytes, &there);

		if (err) {
			if (!some || !is_limit(err))
				json_end();
			fflush(stdout);
			explain(bytes, err, there);
			side_free(s);
			if (some && is_limit(err)) {
				fprintf(stderr, "xnem-perf: this size and larger are left out\n");
				break;
			}
			return EXIT_FAILED;
		}
		some = true;
		samples = make_samples(n < WARM_UP ? WARM_UP : n);
		warm_up(c, s, samples);
		if (c->step)
			good = measure_stepwise(c, s, bytes, samples) && good;
		else
			good = measure(c, s, bytes, samples) && good;
		free(samples);
		send_message(s->sock, FREE, 0, 0, 0);
		must_answer(s->sock, FREED, NULL, "end");
		side_free(s);
	}
	return good ? EXIT_GOOD : EXIT_DIFFERS;
}

static int open_marks(void)
{
	int fd = open("/sys/kernel/tracing/trace_marker", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fd = open("/sys/kernel/debug/tracing/trace_marker", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		die("trace_marker in tracefs: %s", strerror(errno));
	return fd;
}

static int client(const struct client *c)
{
	struct side s = {
		.sock = -1,
		.any_user = c->any_user,
		.put = c->put,
		.both = c->both,
		.gap_us = c->gap_us,
		.marks = c->marks ? open_marks() : -1,
	};
	int ret = EXIT_GOOD, err;

	s.tcp = c->test == TEST_TCP;
	s.message = c->test == TEST_MESSAGE;
	s.notify = c->test == TEST_NOTIFY;
	if (s.message || s.notify) {
		/* both sides send in any case */
		s.put = s.both = s.notify;
		s.at_once = c->both;
	}
	if (!s.tcp) {
		err = open_device(&s.ctx);
		if (err == -ENOENT)
			die("no device here: xnem-info tells what is missing");
		if (err)
			die_xnem("device", err);
	}
	if (c->test != TEST_PING) {
		s.sock = connect_peer(c->host, c->port, c->wait_seconds);
		send_message(s.sock, HELLO, MAGIC, VERSION, 0);
		must_answer(s.sock, HELLO, NULL, "greeting");
	}
	table_head(c);
	if (c->test == TEST_PING)
		run_ping(c, &s);
	else
		ret = run_sizes(c, &s);
	json_end();
	if (fflush(stdout))
		die("standard output: %s", strerror(errno));
	if (s.sock >= 0)
		close(s.sock);
	err = xnem_close(s.ctx);
	if (err)
		die_xnem("close", err);
	return ret;
}

/* ---- arguments ---- */

/* A number that may end in K, M or G; *end is behind it. */
static uint64_t number_at(const char *text, const char **end, uint64_t min, uint64_t max)
{
	char *after;
	uint64_t v;
	unsigned int shift = 0;

	errno = 0;
	v = strtoull(text, &after, 0);
	if (after != text) {
		switch (*after) {
		case 'K':
		case 'k':
			shift = 10;
			break;
		case 'M':
		case 'm':
			shift = 20;
			break;
		case 'G':
		case 'g':
			shift = 30;
			break;
		}
	}
	if (shift)
		after++;
	if (v > UINT64_MAX >> shift)
		errno = ERANGE;
	v <<= shift;
	if (errno || after == text || *text == '-' || v < min || v > max)
		bad_usage("%s: not a number from %" PRIu64 " to %" PRIu64, text, min, max);
	*end = after;
	return v;
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	const char *end;
	uint64_t v = number_at(text, &end, min, max);

	if (*end)
		bad_usage("%s: not a number", text);
	return v;
}

/* A:B, or A that stands for both */
static void pair(const char *text, uint64_t min, uint64_t max, uint64_t *a, uint64_t *b)
{
	const char *end;

	*a = *b = number_at(text, &end, min, max);
	if (*end == ':')
		*b = number_at(end + 1, &end, min, max);
	if (*end)
		bad_usage("%s: not N:M", text);
}

static unsigned int choice(const char *text, const char *const names[], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(text, names[i]))
			return i;
	bad_usage("%s: not known", text);
}

enum {
	OPT_TEST = 256,
	OPT_OP,
	OPT_BOTH,
	OPT_SIZES,
	OPT_SIZE,
	OPT_OFFSET,
	OPT_ITERATIONS,
	OPT_DEPTH,
	OPT_VERIFY,
	OPT_JSON,
	OPT_SYSCALLS,
	OPT_GAP,
	OPT_MARKS,
	OPT_STEP,
	OPT_ANY_USER,
	OPT_WAIT,
	OPT_ONCE,
};

static const struct option options[] = {
	{ "port", required_argument, NULL, 'p' },
	{ "test", required_argument, NULL, OPT_TEST },
	{ "op", required_argument, NULL, OPT_OP },
	{ "both", no_argument, NULL, OPT_BOTH },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "iterations", required_argument, NULL, OPT_ITERATIONS },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "syscalls", no_argument, NULL, OPT_SYSCALLS },
	{ "gap", required_argument, NULL, OPT_GAP },
	{ "marks", no_argument, NULL, OPT_MARKS },
	{ "step", no_argument, NULL, OPT_STEP },
	{ "any-user", no_argument, NULL, OPT_ANY_USER },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void check_combination(const struct client *c)
{
	if (c->min_bytes > c->max_bytes)
		bad_usage("--sizes: the first is the smaller one");
	if (c->both && (c->test == TEST_PING || c->test == TEST_TCP))
		bad_usage("--both is for lat, bw, message and notify");
	if (c->step && (!c->one_size || c->test == TEST_PING || c->test >= TEST_MESSAGE || c->both))
		bad_usage("--step wants --size, and is for lat, bw and tcp without --both");
	if (c->test == TEST_MESSAGE && c->max_bytes > XNEM_MESSAGE_MAX)
		bad_usage("a message has at most %d bytes", XNEM_MESSAGE_MAX);
	if (c->syscalls && c->test != TEST_LAT && c->test != TEST_PING)
		bad_usage("--syscalls is for lat and ping");
	if (c->syscalls && (c->step || c->both))
		bad_usage("--syscalls goes neither with --step nor with --both");
	if ((c->gap_us || c->marks) && c->test != TEST_LAT)
		bad_usage("--gap and --marks are for lat");
	if (c->verify && c->test == TEST_PING)
		bad_usage("--verify: a ping has no data");
}

int main(int argc, char **argv)
{
	static const char *const ops[] = { "get", "put" };
	struct client c = {
		.port = DEFAULT_PORT,
		.min_bytes = 1,
		.max_bytes = 0,
		.depth = 16,
		.wait_seconds = 5,
	};
	bool once = false;
	uint64_t a, b;
	int opt;

	while ((opt = getopt_long(argc, argv, "p:hV", options, NULL)) != -1) {
		switch (opt) {
		case 'p':
			number(optarg, 0, 65535);
			c.port = optarg;
			break;
		case OPT_TEST:
			c.test = (enum test)choice(optarg, test_names, NR_TESTS);
			break;
		case OPT_OP:
			c.put = choice(optarg, ops, 2);
			break;
		case OPT_BOTH:
			c.both = true;
			break;
		case OPT_SIZES:
			pair(optarg, 1, MAX_BYTES, &c.min_bytes, &c.max_bytes);
			break;
		case OPT_SIZE:
			c.min_bytes = c.max_bytes = number(optarg, 1, MAX_BYTES);
			c.one_size = true;
			break;
		case OPT_OFFSET:
			pair(optarg, 0, PAGE - 1, &a, &b);
			c.local_offset = (unsigned int)a;
			c.remote_offset = (unsigned int)b;
			break;
		case OPT_ITERATIONS:
			c.iterations = number(optarg, 1, MAX_ITERATIONS);
			break;
		case OPT_DEPTH:
			c.depth = (unsigned int)number(optarg, 1, MAX_DEPTH);
			break;
		case OPT_VERIFY:
			c.verify = true;
			break;
		case OPT_JSON:
			c.json = true;
			break;
		case OPT_SYSCALLS:
			c.syscalls = true;
			break;
		case OPT_GAP:
			c.gap_us = (useconds_t)number(optarg, 0, MAX_GAP_US);
			break;
		case OPT_MARKS:
			c.marks = true;
			break;
		case OPT_STEP:
			c.step = true;
			break;
		case OPT_ANY_USER:
			c.any_user = true;
			break;
		case OPT_WAIT:
			c.wait_seconds = (unsigned int)number(optarg, 0, 86400);
			break;
		case OPT_ONCE:
			once = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			printf("xnem-perf %s\n", xnem_version());
			return 0;
		default:
			bad_usage("wrong option");
		}
	}
	argc -= optind;
	argv += optind;
	if (argc == 1 && !strcmp(argv[0], "server"))
		return server(c.port, once, c.any_user);
	if (!argc || strcmp(argv[0], "client") || argc > 2 || (argc == 1 && c.test != TEST_PING))
		bad_usage("server, or client HOST");
	c.host = argv[1];
	if (!c.max_bytes)
		c.max_bytes = c.test == TEST_MESSAGE ? XNEM_MESSAGE_MAX : 4 << 20;
	check_combination(&c);
	return client(&c);
}
