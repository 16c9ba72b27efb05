// SPDX-License-Identifier: MIT
/*
 * xnem-sendfile - a file from a process in one VM to a process in another
 *
 * An example of libxnem, and a comparison: the same program moves the same
 * bytes through XNEM or through a TCP connection.
 *
 * The file goes in rounds.  In a round the sender reads a few buffers full
 * from the file and hashes them; the receiver brings them into its own buffers
 * of the same size; then it hashes them and writes them out.  The clock
 * (transfer_seconds) runs on the receiver in the middle step alone, from "I
 * have room" to "the last byte is in my memory", so that both ways are measured
 * without disk and hash, and with exactly the same work outside of it.
 *
 *	xnem   each buffer is a region of its owner; the sender's cookies went
 *	       over the connection once, at the start.  The receiver copies: one
 *	       request a buffer, all of a round in flight together.
 *	tcp    the receiver asks for the round; the sender writes it to the
 *	       connection, the receiver reads it into its buffers.
 *
 * Messages are 16 bytes, {type, value} as big-endian 64 bits:
 *
 *	sender     HELLO via | BUFFERS n | SIZE bytes   then n cookies (xnem)
 *	receiver   ACCEPT via, or REFUSE errno
 *	sender     ROUND bytes     the buffers are full (0: the file is at its end,
 *	                           and 32 bytes of SHA-256 follow)
 *	receiver   GO              (tcp) send them; the bytes follow
 *	receiver   FREE            I have them, the buffers can be used again
 *	receiver   RESULT ns       after the end; 32 bytes of SHA-256 follow
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sha256.h"
#include "xnem.h"

#define MAX_BUFFERS 64
#define MAX_BUFFER_BYTES (1u << 30)

enum { EXIT_SAME = 0, EXIT_DIFFERS = 1, EXIT_FAILED = 2, EXIT_USAGE = 64 };
enum via { VIA_XNEM = 1, VIA_TCP = 2, VIA_ANY = 3 };
enum message {
	HELLO = 0x584e454d31, /* "XNEM1" */
	BUFFERS,
	SIZE,
	ACCEPT,
	REFUSE,
	ROUND,
	GO,
	FREE,
	RESULT,
};

struct job {
	/* what the user wants */
	enum via via;
	unsigned int buffers;
	size_t buffer_bytes;
	uint64_t limit;
	unsigned int wait_seconds;
	bool any_user;
	const char *out;

	int sock;
	int file;
	unsigned char *memory;
	struct xnem *ctx;
	struct xnem_region *region[MAX_BUFFERS];
	struct xnem_cookie peer[MAX_BUFFERS];

	struct sha256 hash;
	uint64_t bytes;
	uint64_t transfer_ns;
	uint64_t start_ns;
};

static const char usage[] =
	"usage: xnem-sendfile send --listen PORT [options] FILE|DEVICE\n"
	"       xnem-sendfile recv [options] HOST PORT\n"
	"Sends a file from one VM to another through XNEM, or through TCP to compare.\n"
	"\n"
	"  --via xnem|tcp      how (send: default xnem; recv: what the sender says)\n"
	"  --bytes N           send: no more than N bytes\n"
	"  --out FILE          recv: write the bytes there\n"
	"  --buffers N         send: buffers on each side (4)\n"
	"  --buffer-bytes N    send: bytes of a buffer (1048576)\n"
	"  --any-user          the peer's process may have another uid\n"
	"  --wait SECONDS      how long to wait for the other side (30)\n"
	"  --help\n"
	"\n"
	"Prints key=value lines on standard output.  transfer_seconds is the time in which\n"
	"bytes moved, without file access and checksum; elapsed_seconds is all of it.\n"
	"The checksum is that of sha256sum.\n"
	"\n"
	"Exit status: 0 checksums are the same; 1 they differ; 2 failed; 64 wrong arguments.\n";

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("xnem-sendfile: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILED);
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
			die("connection: %s", strerror(errno));
		p += n;
		len -= n;
	}
}

static void recv_bytes(int sock, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = recv(sock, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("connection: %s", strerror(errno));
		if (n == 0)
			die("the other side has closed the connection");
		p += n;
		len -= n;
	}
}

static void put_be64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get_be64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static void send_message(int sock, enum message type, uint64_t value)
{
	unsigned char m[16];

	put_be64(m, type);
	put_be64(m + 8, value);
	send_bytes(sock, m, sizeof(m));
}

/* any message, or the death of this program with what the peer refused */
static uint64_t recv_message(int sock, enum message type)
{
	unsigned char m[16];
	uint64_t value;

	recv_bytes(sock, m, sizeof(m));
	value = get_be64(m + 8);
	if (get_be64(m) == REFUSE)
		die("the other side refuses: %s (%s)", xnem_strerror((int)value),
		    xnem_errname((int)value));
	if (get_be64(m) != (uint64_t)type)
		die("the other side does not speak as xnem-sendfile of this version does");
	return value;
}

static int accept_peer(const char *port, unsigned int wait_seconds)
{
	struct timeval limit = { .tv_sec = wait_seconds };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int listener, sock, on = 1;

	addr.sin_port = htons((uint16_t)atoi(port));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0)
		die("socket: %s", strerror(errno));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		die("port %s: %s", port, strerror(errno));
	printf("listening=%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0)
		die("nobody has connected within %u s", wait_seconds);
	close(listener);
	return sock;
}

static int connect_peer(const char *host, const char *port, unsigned int wait_seconds)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	uint64_t end = now_ns() + wait_seconds * 1000000000ull;
	struct addrinfo *found;
	int sock, err;

	err = getaddrinfo(host, port, &hints, &found);
	if (err)
		die("%s: %s", host, gai_strerror(err));
	for (;;) {
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock < 0)
			die("socket: %s", strerror(errno));
		if (!connect(sock, found->ai_addr, found->ai_addrlen))
			break;
		err = errno;
		close(sock);
		if (now_ns() >= end)
			die("%s port %s: %s", host, port, strerror(err));
		usleep(100000);
	}
	freeaddrinfo(found);
	return sock;
}

/* ---- what both sides do ---- */

static unsigned char *buffer(struct job *job, unsigned int i)
{
	return job->memory + i * job->buffer_bytes;
}

/* bytes of a round that are in buffer i */
static size_t part(const struct job *job, uint64_t round, unsigned int i)
{
	uint64_t before = (uint64_t)i * job->buffer_bytes;

	if (round <= before)
		return 0;
	return round - before < job->buffer_bytes ? round - before : job->buffer_bytes;
}

static void make_buffers(struct job *job)
{
	size_t len = job->buffers * job->buffer_bytes;

	job->memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (job->memory == MAP_FAILED)
		die("%zu bytes of memory: %s", len, strerror(errno));
}

/* 0, or why XNEM does not work here; *what tells with what */
static int make_regions(struct job *job, unsigned int access, const char **what)
{
	int err;

	if (job->any_user)
		access |= XNEM_ANY_USER;
	*what = "device";
	err = xnem_open(NULL, &job->ctx);
	if (!err)
		*what = "registration";
	for (unsigned int i = 0; !err && i < job->buffers; i++)
		err = xnem_register(job->ctx, buffer(job, i), job->buffer_bytes, access,
				    &job->region[i]);
	return err;
}

static void print_hash(const char *key, const unsigned char digest[32])
{
	printf("%s=", key);
	for (int i = 0; i < 32; i++)
		printf("%02x", digest[i]);
	putchar('\n');
}

static int finish(struct job *job, const unsigned char here[32], const unsigned char there[32])
{
	bool same = !memcmp(here, there, 32);
	double seconds = job->transfer_ns / 1e9;
	int err;

	/* before the result: memory that cannot be had back is a failure */
	err = xnem_close(job->ctx);
	if (err)
		die_xnem("close", err);
	printf("via=%s\n", job->via == VIA_XNEM ? "xnem" : "tcp");
	printf("bytes=%" PRIu64 "\n", job->bytes);
	printf("transfer_seconds=%.6f\n", seconds);
	printf("mib_per_second=%.1f\n", seconds > 0 ? job->bytes / seconds / (1 << 20) : 0.0);
	printf("elapsed_seconds=%.6f\n", (now_ns() - job->start_ns) / 1e9);
	print_hash("sha256", here);
	print_hash("peer_sha256", there);
	printf("same=%s\n", same ? "yes" : "no");
	if (fflush(stdout))
		die("standard output: %s", strerror(errno));
	return same ? EXIT_SAME : EXIT_DIFFERS;
}

/* ---- sender ---- */

static size_t read_file(struct job *job, void *data, size_t len)
{
	size_t have = 0;

	if (len > job->limit - job->bytes)
		len = job->limit - job->bytes;
	while (have < len) {
		ssize_t n = read(job->file, (char *)data + have, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("read: %s", strerror(errno));
		if (n == 0)
			break;
		have += n;
	}
	job->bytes += have;
	return have;
}

static int send_file(struct job *job, const char *path, const char *port)
{
	unsigned char here[32], there[32];
	const char *what;
	int err;

	if (job->via == VIA_ANY)
		job->via = VIA_XNEM;
	job->file = open(path, O_RDONLY | O_CLOEXEC);
	if (job->file < 0)
		die("%s: %s", path, strerror(errno));
	make_buffers(job);
	if (job->via == VIA_XNEM) {
		err = make_regions(job, XNEM_READ, &what);
		if (err)
			die_xnem(what, err);
	}
	job->sock = accept_peer(port, job->wait_seconds);
	job->start_ns = now_ns();

	send_message(job->sock, HELLO, job->via);
	send_message(job->sock, BUFFERS, job->buffers);
	send_message(job->sock, SIZE, job->buffer_bytes);
	if (job->via == VIA_XNEM) {
		for (unsigned int i = 0; i < job->buffers; i++)
			send_bytes(job->sock, xnem_region_cookie(job->region[i]), XNEM_COOKIE_SIZE);
	}
	recv_message(job->sock, ACCEPT);

	for (;;) {
		size_t len = read_file(job, job->memory, job->buffers * job->buffer_bytes);

		sha256_add(&job->hash, job->memory, len);
		send_message(job->sock, ROUND, len);
		if (!len)
			break;
		if (job->via == VIA_TCP) {
			recv_message(job->sock, GO);
			send_bytes(job->sock, job->memory, len);
		}
		recv_message(job->sock, FREE);
	}
	sha256_end(&job->hash, here);
	send_bytes(job->sock, here, sizeof(here));
	job->transfer_ns = recv_message(job->sock, RESULT);
	recv_bytes(job->sock, there, sizeof(there));
	return finish(job, here, there);
}

/* ---- receiver ---- */

__attribute__((noreturn)) static void refuse(struct job *job, const char *what, int err)
{
	send_message(job->sock, REFUSE, (uint64_t)-err);
	die_xnem(what, err);
}

/*
 * The whole of a round, all buffers at once.  One for which there is no room
 * at the moment goes by itself afterwards.
 */
static void round_by_xnem(struct job *job, uint64_t round)
{
	xnem_req req[MAX_BUFFERS];
	int err[MAX_BUFFERS];
	unsigned int n = 0;

	for (; n < job->buffers && part(job, round, n); n++)
		err[n] = xnem_get_start(job->region[n], 0, &job->peer[n], 0, part(job, round, n), 0,
					&req[n]);
	for (unsigned int i = 0; i < n; i++) {
		if (!err[i]) {
			do {
				err[i] = xnem_wait(job->ctx, req[i], XNEM_FOREVER, NULL);
			} while (err[i] == -EINTR);
		}
		while (err[i] == -EAGAIN) {
			usleep(1000);
			err[i] = xnem_get(job->region[i], 0, &job->peer[i], 0, part(job, round, i),
					  NULL);
		}
		if (err[i])
			refuse(job, "copy", err[i]);
	}
}

static void round_by_tcp(struct job *job, uint64_t round)
{
	send_message(job->sock, GO, 0);
	for (unsigned int i = 0; i < job->buffers && part(job, round, i); i++)
		recv_bytes(job->sock, buffer(job, i), part(job, round, i));
}

static void write_out(struct job *job, const unsigned char *data, size_t len)
{
	while (job->file >= 0 && len) {
		ssize_t n = write(job->file, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = errno;

			send_message(job->sock, REFUSE, EIO);
			die("%s: %s", job->out, strerror(err));
		}
		data += n;
		len -= n;
	}
}

static void greet(struct job *job)
{
	enum via want = job->via;
	uint64_t buffers, size;
	const char *what;
	int err;

	job->via = (enum via)recv_message(job->sock, HELLO);
	buffers = recv_message(job->sock, BUFFERS);
	size = recv_message(job->sock, SIZE);
	if ((job->via != VIA_XNEM && job->via != VIA_TCP) || !buffers || buffers > MAX_BUFFERS ||
	    !size || size > MAX_BUFFER_BYTES)
		refuse(job, "greeting", -EPROTO);
	if (!(want & job->via))
		refuse(job, "the sender goes another way (--via)", -EINVAL);
	job->buffers = (unsigned int)buffers;
	job->buffer_bytes = size;
	make_buffers(job);
	if (job->via == VIA_XNEM) {
		for (unsigned int i = 0; i < job->buffers; i++)
			recv_bytes(job->sock, &job->peer[i], XNEM_COOKIE_SIZE);
		err = make_regions(job, XNEM_WRITE, &what);
		if (err)
			refuse(job, what, err);
		err = xnem_reachable(job->ctx, &job->peer[0]);
		if (err)
			refuse(job, "the sender's memory", err);
	}
	send_message(job->sock, ACCEPT, job->via);
}

static int recv_file(struct job *job, const char *host, const char *port)
{
	unsigned char here[32], there[32];
	uint64_t round, begin;

	job->file = -1;
	if (job->out) {
		job->file = open(job->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (job->file < 0)
			die("%s: %s", job->out, strerror(errno));
	}
	job->sock = connect_peer(host, port, job->wait_seconds);
	job->start_ns = now_ns();
	greet(job);

	while ((round = recv_message(job->sock, ROUND)) != 0) {
		if (round > job->buffers * job->buffer_bytes)
			refuse(job, "round", -EPROTO);
		begin = now_ns();
		if (job->via == VIA_XNEM)
			round_by_xnem(job, round);
		else
			round_by_tcp(job, round);
		job->transfer_ns += now_ns() - begin;
		for (unsigned int i = 0; i < job->buffers; i++) {
			sha256_add(&job->hash, buffer(job, i), part(job, round, i));
			write_out(job, buffer(job, i), part(job, round, i));
		}
		job->bytes += round;
		send_message(job->sock, FREE, round);
	}
	if (job->file >= 0 && close(job->file))
		die("%s: %s", job->out, strerror(errno));
	recv_bytes(job->sock, there, sizeof(there));
	sha256_end(&job->hash, here);
	send_message(job->sock, RESULT, job->transfer_ns);
	send_bytes(job->sock, here, sizeof(here));
	return finish(job, here, there);
}

/* ---- arguments ---- */

__attribute__((noreturn)) static void wrong_usage(void)
{
	fputs(usage, stderr);
	exit(EXIT_USAGE);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || v < min || v > max) {
		fprintf(stderr, "xnem-sendfile: %s: not a number from %" PRIu64 " to %" PRIu64 "\n",
			text, min, max);
		exit(EXIT_USAGE);
	}
	return v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "via", required_argument, NULL, 'v' },
		{ "bytes", required_argument, NULL, 'n' },
		{ "out", required_argument, NULL, 'o' },
		{ "buffers", required_argument, NULL, 'b' },
		{ "buffer-bytes", required_argument, NULL, 's' },
		{ "any-user", no_argument, NULL, 'a' },
		{ "wait", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct job job = {
		.via = VIA_ANY,
		.buffers = 4,
		.buffer_bytes = 1 << 20,
		.limit = UINT64_MAX,
		.wait_seconds = 30,
	};
	const char *port = NULL;
	int c;

	sha256_init(&job.hash);
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			number(optarg, 0, 65535);
			port = optarg;
			break;
		case 'v':
			if (!strcmp(optarg, "xnem"))
				job.via = VIA_XNEM;
			else if (!strcmp(optarg, "tcp"))
				job.via = VIA_TCP;
			else
				wrong_usage();
			break;
		case 'n':
			job.limit = number(optarg, 0, UINT64_MAX);
			break;
		case 'o':
			job.out = optarg;
			break;
		case 'b':
			job.buffers = (unsigned int)number(optarg, 1, MAX_BUFFERS);
			break;
		case 's':
			job.buffer_bytes = number(optarg, 1, MAX_BUFFER_BYTES);
			break;
		case 'a':
			job.any_user = true;
			break;
		case 'w':
			job.wait_seconds = (unsigned int)number(optarg, 1, 86400);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			wrong_usage();
		}
	}
	argc -= optind;
	argv += optind;
	if (argc == 2 && port && !strcmp(argv[0], "send"))
		return send_file(&job, argv[1], port);
	if (argc == 3 && !port && !strcmp(argv[0], "recv"))
		return recv_file(&job, argv[1], argv[2]);
	wrong_usage();
}
