// SPDX-License-Identifier: MIT
/*
 * xnem-frozen - does the backend of today serve a frontend of version 1?
 *
 * Runs in a guest that has a device and no XNEM module loaded.  Every operation
 * of version 1, every status that can be brought about, and the ways in which a
 * device ends, as xnemif-1.h tells them.  Each test has a connection of its own,
 * and ends with a look whether the backend has let go of all pages.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

static const char usage_text[] =
	"usage: xnem-frozen COMMAND\n"
	"\n"
	"  suite                      all tests; prints in the Test Anything Protocol\n"
	"  queues                     the same for a device of two queues\n"
	"  corrupt HOW                breaks the protocol and looks that it is cut off; HOW:\n"
	"                             submission, completion (index), inflight (too many requests)\n"
	"  pull COOKIE BYTES SEED     copy from it and verify\n"
	"  push COOKIE BYTES SEED     copy a pattern to it\n"
	"  export FILE BYTES SEED     own a region with a pattern, its cookie in FILE; at SIGTERM\n"
	"                             somebody must have put the pattern SEED + 1 there\n"
	"  client HOST PORT BYTES     a job for xnem-serve, an ordinary program of libxnem\n"
	"\n"
	"A COOKIE is text as libxnem has it.  Exit status: 0 ok, 1 not ok, 2 cannot tell,\n"
	"64 wrong arguments.\n";

/* ---- the suite ---- */

static int run_tests(struct frontend *fe, const struct test *test)
{
	int failed, bad = 0;

	for (; test->name; test++) {
		begin_test(fe);
		failed = end_test(fe, test, test->run(fe));
		bad |= failed;
		tap_result(failed, test->name);
	}
	return bad != 0;
}

static int suite(struct frontend *fe)
{
	static const struct test *const all[] = { connection_tests, region_tests, refusal_tests,
						  context_tests, order_tests };
	unsigned int i;
	int bad = 0;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		bad |= run_tests(fe, all[i]);
	tap_plan();
	return bad;
}

static int queues(struct frontend *fe)
{
	int bad = run_tests(fe, queue_tests);

	tap_plan();
	return bad;
}

/* ---- breaking the protocol ---- */

static int corrupt(struct frontend *fe, const char *how)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	struct region a;
	int failed;
	uint32_t i;

	if (!connect_device(fe, NULL))
		die("the backend refuses to connect");
	if (ping(fe) || make_region(fe, &a, RW, 0, 0, 5000))
		die("it does not work before it is broken");
	if (!strcmp(how, "submission")) {
		/* As many more than there are slots as could be. */
		fe->q->sq_prod += 0x80000000;
	} else if (!strcmp(how, "completion")) {
		store_release(&fe->q->header->cq.cons, fe->q->cq_cons + 1000);
		post_raw(fe, &req);
	} else {
		/* No answer is taken. */
		for (i = 0; i <= fe->q->max_inflight; i++) {
			post_raw(fe, &req);
			publish(fe);
		}
	}
	publish(fe);
	failed = cut_off(fe, STATE_CLOSING);
	printf("%sok 1 - a wrong %s is cut off\n1..1\n", failed ? "not " : "", how);
	return failed;
}

/* ---- with an ordinary program in another guest ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Text of libxnem: id, key and fabric id, in bytes as they are on the wire. */
static struct xnem_cookie parse_cookie(const struct frontend *fe, const char *text)
{
	uint64_t word[3];
	unsigned int i;

	for (i = 0; i < sizeof(word); i++) {
		if (hex(text[2 * i]) < 0 || hex(text[2 * i + 1]) < 0)
			die("%s: not a cookie", text);
		((unsigned char *)word)[i] = hex(text[2 * i]) << 4 | hex(text[2 * i + 1]);
	}
	if (word[2] != fe->offers.fabric_id)
		die("%s: of another fabric", text);
	return (struct xnem_cookie){ word[0], word[1] };
}

static void write_cookie(const struct frontend *fe, const char *path, struct xnem_cookie cookie)
{
	const uint64_t word[3] = { cookie.id, cookie.key, fe->offers.fabric_id };
	FILE *f = fopen(path, "w");
	unsigned int i;

	if (!f)
		die("cannot write %s", path);
	for (i = 0; i < sizeof(word); i++)
		fprintf(f, "%02x", ((const unsigned char *)word)[i]);
	fprintf(f, "\n");
	if (fclose(f))
		die("cannot write %s", path);
}

static int pull(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region theirs = { .cookie = parse_cookie(fe, arg[0]) }, mine;
	struct xnem_completion c;

	CALL(make_region(fe, &mine, W, 0, 77, bytes));
	c = copy(fe, 0, &mine, 0, &theirs, 0, bytes);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(bytes, c.bytes_done);
	EXPECT(bytes, pattern_check(mine.mem, bytes, seed, 0));
	return 0;
}

static int push(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region theirs = { .cookie = parse_cookie(fe, arg[0]) }, mine;

	CALL(make_region(fe, &mine, R, 0, 99, bytes));
	pattern_fill(mine.mem, bytes, seed, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &theirs, 0, &mine, 0, bytes).status);
	return 0;
}

static int export(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region mine;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	CALL(make_region(fe, &mine, RW, XNEM_REGION_ANY_TAG, 55, bytes));
	pattern_fill(mine.mem, bytes, seed, 0);
	write_cookie(fe, arg[0], mine.cookie);
	sigwait(&set, &sig);
	EXPECT(bytes, pattern_check(mine.mem, bytes, seed + 1, 0));
	EXPECT(XNEM_ST_OK, deregister(fe, &mine).status);
	return 0;
}

/* The address of xnem-serve's inbox, from its port. */
static struct xnem_cookie ask_address(const struct frontend *fe, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	uint64_t word[3];
	int sock;

	if (getaddrinfo(host, port, &hints, &ai))
		die("no host %s, or no port %s", host, port);
	sock = socket(ai->ai_family, ai->ai_socktype, 0);
	if (sock < 0 || connect(sock, ai->ai_addr, ai->ai_addrlen) ||
	    recv(sock, word, sizeof(word), MSG_WAITALL) != sizeof(word))
		die("%s port %s does not tell its address", host, port);
	close(sock);
	freeaddrinfo(ai);
	if (word[2] != fe->offers.fabric_id)
		die("the server is of another fabric");
	return (struct xnem_cookie){ word[0], word[1] };
}

/* One message, two copies by the server, one notification. */
static int client(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[2], NULL, 10);
	const struct xnem_cookie server = ask_address(fe, arg[0], arg[1]);
	struct {
		struct xnem_cookie cookie;
		uint64_t fabric_id, offset, length, number;
	} order = { .fabric_id = fe->offers.fabric_id, .length = bytes, .number = 0x4321 };
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	struct region mine;
	uint64_t i, end;

	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &mine, RW, XNEM_REGION_ANY_TAG, 33, bytes));
	for (i = 0; i < bytes; i++)
		mine.mem[i] = "abcdefghijklmnopqrstuvwxyz"[i % 26];
	order.cookie = mine.cookie;
	req = message_request(server, &order, sizeof(order));
	EXPECT(XNEM_ST_OK, call(fe, &req).status);

	fe->q->header->attention.event = 1;
	full_barrier();
	for (end = now_ms() + PATIENCE_MS; inbox_empty(&ctx) && now_ms() < end;)
		sleep_on_event(fe, 1000);
	CALL(next_slot(&ctx, &s));
	EXPECT(XNEM_INBOX_NOTIFY, s.kind);
	EXPECT(order.number, s.value);
	EXPECT(bytes, s.bytes);
	EXPECT(true, s.domid != fe->domid);
	EXPECT(bytes,
	       same(mine.mem, bytes, (const unsigned char *)"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26, 0));
	return 0;
}

static int usage(void)
{
	fputs(usage_text, stderr);
	return 64;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct frontend *fe, char **arg);
	} commands[] = {
		{ "pull", pull }, { "push", push }, { "export", export }, { "client", client }
	};
	struct frontend fe;
	unsigned int i;
	int failed;

	if (argc == 2 && !strcmp(argv[1], "suite")) {
		frontend_open(&fe);
		return suite(&fe);
	}
	if (argc == 2 && !strcmp(argv[1], "queues")) {
		frontend_open(&fe);
		return queues(&fe);
	}
	if (argc == 3 && !strcmp(argv[1], "corrupt") &&
	    (!strcmp(argv[2], "submission") || !strcmp(argv[2], "completion") ||
	     !strcmp(argv[2], "inflight"))) {
		frontend_open(&fe);
		return corrupt(&fe, argv[2]);
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc != 5 || strcmp(argv[1], commands[i].name))
			continue;
		frontend_open(&fe);
		if (!connect_device(&fe, NULL))
			die("the backend refuses to connect");
		failed = commands[i].run(&fe, argv + 2);
		if (!disconnect_device(&fe))
			die("the backend does not close");
		return failed;
	}
	return usage();
}
