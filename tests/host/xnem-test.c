// SPDX-License-Identifier: MIT
/*
 * xnem-test - what the scenarios of the emulated host run inside domains
 *
 * This file: arguments, memory and patterns, and the commands that move one
 * range: export, pull, push.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xnem-test.h"

static const char usage_text[] =
	"usage: xnem-test COMMAND [options]\n"
	"\n"
	"Commands (a COOKIE is 48 hexadecimal digits, or @FILE that holds them):\n"
	"  export             register memory, print its cookie, hold it\n"
	"    --bytes N --offset O      length, and first byte within its page\n"
	"    --access r|w|rw --any     (r), any user\n"
	"    --memory KIND             heap, mmap, shm, memfd, file:PATH, ro-file:PATH\n"
	"    --pattern SEED            fill it\n"
	"    --untouched-calloc        fill it after registration only\n"
	"    --cookie-file PATH        write the cookie there too\n"
	"    --hold SECONDS            otherwise until stdin closes, SIGTERM or SIGINT\n"
	"    --verify-pattern SEED     verify on SIGUSR1 and at the end\n"
	"    --verify-offset O --verify-bytes N    that range only (all)\n"
	"    --keep                    end without deregister and close\n"
	"    --expect ERRNO            of the registration\n"
	"  pull COOKIE        copy from it and verify\n"
	"    --bytes N --src-offset O --dst-offset O --verify SEED --memory KIND --expect ERRNO\n"
	"  push COOKIE        copy to it; dst-offset is the other's, src-offset the own\n"
	"    --bytes N --src-offset O --dst-offset O --pattern SEED --memory KIND --expect ERRNO\n"
	"  matrix COOKIE_R COOKIE_W   many sizes and offsets, both directions\n"
	"    --bytes N --seed SEED     both regions have N bytes; the first the pattern SEED,\n"
	"                              the second access rw\n"
	"  stream COOKIE      copy without end, several in flight\n"
	"    --bytes N --seconds N --chunk N --depth N --put\n"
	"  threads COOKIE     many threads on one context\n"
	"    --bytes N --seed SEED --threads N --count N\n"
	"  churn COOKIE       open, register, copy, close, again and again\n"
	"  signals            register and deregister while signals come: --bytes N --count N\n"
	"  hangup             wait in poll for the end of the device: --seconds N\n"
	"    --bytes N --seed SEED --count N\n"
	"  ping               --count N\n"
	"  lat COOKIE         one copy after the other: --bytes N --count N --put\n"
	"  watch COOKIE       one copy after the other until SIGTERM, each verified, and how\n"
	"                     long they took: --bytes N --seconds N (at most) --verify SEED\n"
	"  bw COOKIE          several at a time: --bytes N --count N --depth N --put\n"
	"  args               wrong arguments of every ioctl\n"
	"  suite NAME         tests with several processes: messages, async, segments, windows,\n"
	"                     cache, buffers\n"
	"    --peer HOST:PORT          one of them there, where `serve' runs\n"
	"    --only TEXT --except TEXT those with, without TEXT in their names\n"
	"    --domid N --peer-domid N  this domain, and that of --peer\n"
	"    --disk PATH               a disk, or a file on one\n"
	"    --small                   the grant table has no room for 64 MiB\n"
	"  serve              be that process: --port N\n"
	"All: --device PATH\n"
	"\n"
	"The byte at position P of a region depends on SEED and P alone.\n"
	"\n"
	"Exit status: 0 ok; 2 a call failed; 3 wrong data; 4 not the error that --expect names;\n"
	"64 wrong arguments.  stream, by the error that ended it: 20 EHOSTDOWN, 21 ENOENT,\n"
	"22 ENOTCONN, 23 ENODEV, 24 EXDEV, 25 ESTALE, 26 ECANCELED, 2 another.\n";

/* ---- small things ---- */

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void *must_alloc(size_t len)
{
	void *p = malloc(len ? len : 1);

	if (!p) {
		fprintf(stderr, "xnem-test: no %zu bytes of memory\n", len);
		exit(T_FAILED);
	}
	return p;
}

int fail(const char *what, int err)
{
	printf("failed=%s\nerror=%s\n", what, xnem_errname(err));
	fflush(stdout);
	fprintf(stderr, "xnem-test: %s: %s (%s)\n", what, xnem_strerror(err), xnem_errname(err));
	return T_FAILED;
}

/** The exit code for a call that ended with err, and its line of output. */
int finish_expect(const struct options *opt, int err)
{
	printf("error=%s\n", xnem_errname(err));
	if (opt->has_expect) {
		if (err == opt->expect)
			return T_OK;
		fprintf(stderr, "xnem-test: expected %s, got %s\n", xnem_errname(opt->expect),
			xnem_errname(err));
		return T_EXPECT;
	}
	if (err) {
		fprintf(stderr, "xnem-test: %s (%s)\n", xnem_strerror(err), xnem_errname(err));
		return T_FAILED;
	}
	return T_OK;
}

struct xnem *must_open(const struct options *opt)
{
	struct xnem *ctx;
	int err = xnem_open(opt->device, &ctx);

	if (err)
		exit(fail("open", err));
	return ctx;
}

void parse_cookie(const char *text, struct xnem_cookie *cookie)
{
	char line[XNEM_COOKIE_TEXT_SIZE + 2] = "";

	if (text[0] == '@') {
		FILE *f = fopen(text + 1, "re");

		if (!f || !fgets(line, sizeof(line), f)) {
			fprintf(stderr, "xnem-test: cannot read %s\n", text + 1);
			exit(T_USAGE);
		}
		fclose(f);
		text = line;
	}
	if (xnem_cookie_from_text(text, cookie)) {
		fprintf(stderr, "xnem-test: %s: not a cookie\n", text);
		exit(T_USAGE);
	}
}

/* ---- memory ---- */

static int map_file(const char *path, int flags, int prot, size_t total, void **base)
{
	int fd, ret = 0;

	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flags & O_CREAT && ftruncate(fd, total))
		ret = -errno;
	if (!ret) {
		*base = mmap(NULL, total, prot, MAP_SHARED, fd, 0);
		if (*base == MAP_FAILED)
			ret = -errno;
	}
	close(fd);
	return ret;
}

/**
 * Memory of the kind and offset wanted: a page, then len bytes from the
 * offset on, then a page.
 */
int make_memory(const struct options *opt, struct memory *mem, uint64_t len)
{
	const char *kind = opt->memory ? opt->memory : "heap";
	const int rw = PROT_READ | PROT_WRITE;
	size_t total = (4096 + opt->offset + len + 8191) & ~4095ull;
	void *base = MAP_FAILED;
	int err = 0, fd;

	memset(mem, 0, sizeof(*mem));
	if (!strcmp(kind, "heap")) {
		/* calloc and not aligned_alloc: large ones come untouched */
		mem->base = calloc(1, total + 4096);
		if (!mem->base)
			return -ENOMEM;
		mem->heap = true;
		mem->total = total;
		mem->start = (unsigned char *)(((uintptr_t)mem->base + 4095) & ~(uintptr_t)4095) +
			     4096 + opt->offset;
		return 0;
	}
	if (!strcmp(kind, "mmap")) {
		base = mmap(NULL, total, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else if (!strcmp(kind, "shm")) {
		base = mmap(NULL, total, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	} else if (!strcmp(kind, "memfd")) {
		fd = memfd_create("xnem-test", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, total))
			return -errno;
		base = mmap(NULL, total, rw, MAP_SHARED, fd, 0);
		close(fd);
	} else if (!strncmp(kind, "file:", 5)) {
		err = map_file(kind + 5, O_RDWR | O_CREAT | O_TRUNC, rw, total, &base);
	} else if (!strncmp(kind, "ro-file:", 8)) {
		err = map_file(kind + 8, O_RDONLY, PROT_READ, total, &base);
	} else {
		fprintf(stderr, "xnem-test: no such kind of memory: %s\n", kind);
		exit(T_USAGE);
	}
	if (err)
		return err;
	if (base == MAP_FAILED)
		return -errno;
	mem->base = base;
	mem->total = total;
	mem->start = mem->base + 4096 + opt->offset;
	return 0;
}

void free_memory(struct memory *mem)
{
	if (mem->heap)
		free(mem->base);
	else if (mem->base)
		munmap(mem->base, mem->total);
	mem->base = NULL;
}

/* ---- export ---- */

static int write_cookie_file(const char *path, const char *text)
{
	char tmp[4096];
	FILE *f;

	if (snprintf(tmp, sizeof(tmp), "%s.new", path) >= (int)sizeof(tmp))
		return -EINVAL;
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	fprintf(f, "%s\n", text);
	if (fclose(f) || rename(tmp, path))
		return -errno;
	return 0;
}

static int verify_export(const struct options *opt, const struct memory *mem)
{
	uint64_t offset = opt->has_verify_range ? opt->verify_offset : 0;
	uint64_t len = opt->has_verify_range ? opt->verify_bytes : opt->bytes;
	uint64_t at;

	at = pattern_check(mem->start + offset, len, opt->verify_seed, offset);
	if (at != len) {
		printf("verify=bad\nbad_at=%" PRIu64 "\n", offset + at);
		fflush(stdout);
		return T_DATA;
	}
	if (!opt->untouched) {
		if (byte_check(mem->start - GUARD, GUARD, GUARD_BYTE) != GUARD ||
		    byte_check(mem->start + opt->bytes, GUARD, GUARD_BYTE) != GUARD) {
			printf("verify=bad\nbad_at=guard\n");
			fflush(stdout);
			return T_DATA;
		}
	}
	printf("verify=ok\n");
	fflush(stdout);
	return T_OK;
}

static int hold(const struct options *opt, const struct memory *mem, int signals)
{
	struct pollfd fds[2] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = opt->hold_ns < 0 ? 0 : -1, .events = POLLIN },
	};
	uint64_t end = now_ns() + (opt->hold_ns < 0 ? 0 : (uint64_t)opt->hold_ns);
	int ret = T_OK;

	for (;;) {
		int timeout = -1, n;

		if (opt->hold_ns >= 0) {
			uint64_t now = now_ns();

			if (now >= end)
				return ret;
			timeout = (int)((end - now + 999999) / 1000000);
		}
		n = poll(fds, 2, timeout);
		if (n < 0 && errno != EINTR)
			return fail("poll", -errno);
		if (n <= 0)
			continue;
		if (fds[0].revents) {
			struct signalfd_siginfo info;

			if (read(signals, &info, sizeof(info)) != sizeof(info))
				continue;
			if (info.ssi_signo != SIGUSR1)
				return ret;
			if (opt->has_verify) {
				int bad = verify_export(opt, mem);

				ret = ret ? ret : bad;
			}
		}
		if (fds[1].revents) {
			char c[256];

			if (read(0, c, sizeof(c)) <= 0)
				return ret;
		}
	}
}

static int cmd_export(const struct options *opt, char **args)
{
	unsigned int flags = opt->access | (opt->any_user ? XNEM_ANY_USER : 0);
	bool readonly = opt->memory && !strncmp(opt->memory, "ro-file:", 8);
	char text[XNEM_COOKIE_TEXT_SIZE];
	struct xnem_region *region;
	struct memory mem;
	struct xnem *ctx;
	sigset_t set;
	int signals, err, ret, bad;

	(void)args;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return fail("signalfd", -errno);

	ctx = must_open(opt);
	err = make_memory(opt, &mem, opt->bytes);
	if (err)
		return fail("memory", err);
	if (!opt->untouched && !readonly) {
		memset(mem.start - GUARD, GUARD_BYTE, GUARD);
		memset(mem.start + opt->bytes, GUARD_BYTE, GUARD);
		if (opt->has_seed)
			pattern_fill(mem.start, opt->bytes, opt->seed, 0);
	}
	err = xnem_register(ctx, mem.start, opt->bytes, flags, &region);
	if (err || opt->has_expect) {
		ret = finish_expect(opt, err);
		xnem_close(ctx);
		free_memory(&mem);
		return ret;
	}
	if (opt->untouched && opt->has_seed)
		pattern_fill(mem.start, opt->bytes, opt->seed, 0);

	xnem_cookie_to_text(xnem_region_cookie(region), text);
	if (opt->cookie_file) {
		err = write_cookie_file(opt->cookie_file, text);
		if (err)
			return fail(opt->cookie_file, err);
	}
	printf("bytes=%" PRIu64 "\npid=%d\ncookie=%s\n", opt->bytes, (int)getpid(), text);
	fflush(stdout);

	ret = hold(opt, &mem, signals);
	if (opt->keep) {
		fflush(stdout);
		_exit(ret);
	}
	err = xnem_deregister(region);
	printf("deregister=%s\n", xnem_errname(err));
	/* after the end of the region: nothing can be written any more */
	if (opt->has_verify) {
		bad = verify_export(opt, &mem);
		ret = ret ? ret : bad;
	}
	if (err)
		ret = ret ? ret : T_FAILED;
	err = xnem_close(ctx);
	printf("close=%s\n", xnem_errname(err));
	if (err)
		ret = ret ? ret : T_FAILED;
	free_memory(&mem);
	return ret;
}

/* ---- pull and push ---- */

static int cmd_pull(const struct options *base, char **args)
{
	struct options opt = *base;
	struct xnem_region *region;
	struct xnem_cookie cookie;
	struct memory mem;
	struct xnem *ctx;
	uint64_t done = 0, at, room;
	int err, ret;

	parse_cookie(args[0], &cookie);
	ctx = must_open(&opt);
	/* the own region: GUARD, bytes, GUARD, at the offset wanted */
	room = opt.bytes + 2 * GUARD;
	opt.offset = opt.dst_offset;
	err = make_memory(&opt, &mem, room);
	if (err)
		return fail("memory", err);
	memset(mem.start, GUARD_BYTE, room);
	err = xnem_register(ctx, mem.start, room, XNEM_WRITE, &region);
	if (err)
		return fail("register", err);
	err = xnem_get(region, GUARD, &cookie, opt.src_offset, opt.bytes, &done);
	printf("bytes=%" PRIu64 "\n", done);
	ret = finish_expect(&opt, err);
	if (!err && done != opt.bytes)
		ret = T_FAILED;
	err = xnem_deregister(region);
	if (err)
		return fail("deregister", err);
	if (byte_check(mem.start, GUARD, GUARD_BYTE) != GUARD ||
	    byte_check(mem.start + GUARD + opt.bytes, GUARD, GUARD_BYTE) != GUARD) {
		printf("guard=bad\n");
		ret = T_DATA;
	}
	/* what is said to be there is there, after an error too */
	if (opt.has_verify) {
		at = pattern_check(mem.start + GUARD, done, opt.verify_seed, opt.src_offset);
		printf("verify=%s\n", at == done ? "ok" : "bad");
		if (at != done) {
			printf("bad_at=%" PRIu64 "\n", at);
			ret = T_DATA;
		}
	}
	err = xnem_close(ctx);
	if (err)
		return fail("close", err);
	free_memory(&mem);
	return ret;
}

static int cmd_push(const struct options *base, char **args)
{
	struct options opt = *base;
	struct xnem_region *region;
	struct xnem_cookie cookie;
	struct memory mem;
	struct xnem *ctx;
	uint64_t done = 0, room;
	int err, ret;

	parse_cookie(args[0], &cookie);
	ctx = must_open(&opt);
	opt.offset = opt.src_offset;
	/* a region has a byte at least */
	room = opt.bytes ? opt.bytes : 1;
	err = make_memory(&opt, &mem, room);
	if (err)
		return fail("memory", err);
	pattern_fill(mem.start, opt.bytes, opt.seed, opt.dst_offset);
	err = xnem_register(ctx, mem.start, room, XNEM_READ, &region);
	if (err)
		return fail("register", err);
	err = xnem_put(region, 0, &cookie, opt.dst_offset, opt.bytes, &done);
	printf("bytes=%" PRIu64 "\n", done);
	ret = finish_expect(&opt, err);
	if (!err && done != opt.bytes)
		ret = T_FAILED;
	err = xnem_close(ctx);
	if (err)
		return fail("close", err);
	free_memory(&mem);
	return ret;
}

/* ---- arguments ---- */

static const struct {
	const char *name;
	int args;
	int (*run)(const struct options *opt, char **args);
} commands[] = {
	{ "export", 0, cmd_export }, { "pull", 1, cmd_pull },	    { "push", 1, cmd_push },
	{ "matrix", 2, cmd_matrix }, { "stream", 1, cmd_stream },   { "threads", 1, cmd_threads },
	{ "churn", 1, cmd_churn },   { "ping", 0, cmd_ping },	    { "lat", 1, cmd_lat },
	{ "watch", 1, cmd_watch },   { "signals", 0, cmd_signals }, { "hangup", 0, cmd_hangup },
	{ "bw", 1, cmd_bw },	     { "args", 0, cmd_args },	    { "suite", 1, cmd_suite },
	{ "serve", 0, cmd_serve },
};

__attribute__((noreturn)) static void wrong_usage(const char *what, const char *why)
{
	fprintf(stderr, "xnem-test: %s: %s; see xnem-test --help\n", what, why);
	exit(T_USAGE);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		wrong_usage(text, "not a number");
	return v;
}

static int errno_of(const char *name)
{
	for (int err = 0; err < 200; err++)
		if (!strcmp(xnem_errname(err), name))
			return -err;
	wrong_usage(name, "no error of XNEM");
}

static unsigned int access_of(const char *text)
{
	if (!strcmp(text, "r"))
		return XNEM_READ;
	if (!strcmp(text, "w"))
		return XNEM_WRITE;
	if (!strcmp(text, "rw"))
		return XNEM_READ | XNEM_WRITE;
	wrong_usage(text, "not r, w or rw");
}

enum {
	O_BYTES = 256,
	O_OFFSET,
	O_SRC_OFFSET,
	O_DST_OFFSET,
	O_SEED,
	O_VERIFY,
	O_VERIFY_OFFSET,
	O_VERIFY_BYTES,
	O_ACCESS,
	O_ANY,
	O_UNTOUCHED,
	O_KEEP,
	O_PUT,
	O_MEMORY,
	O_COOKIE_FILE,
	O_HOLD,
	O_EXPECT,
	O_SECONDS,
	O_COUNT,
	O_CHUNK,
	O_DEPTH,
	O_THREADS,
	O_DEVICE,
	O_PEER,
	O_ONLY,
	O_EXCEPT,
	O_DOMID,
	O_PEER_DOMID,
	O_DISK,
	O_SMALL,
	O_PORT,
	O_HELP,
};

static const struct option long_options[] = {
	{ "bytes", 1, NULL, O_BYTES },
	{ "offset", 1, NULL, O_OFFSET },
	{ "src-offset", 1, NULL, O_SRC_OFFSET },
	{ "dst-offset", 1, NULL, O_DST_OFFSET },
	{ "pattern", 1, NULL, O_SEED },
	{ "seed", 1, NULL, O_SEED },
	{ "verify", 1, NULL, O_VERIFY },
	{ "verify-pattern", 1, NULL, O_VERIFY },
	{ "verify-offset", 1, NULL, O_VERIFY_OFFSET },
	{ "verify-bytes", 1, NULL, O_VERIFY_BYTES },
	{ "access", 1, NULL, O_ACCESS },
	{ "any", 0, NULL, O_ANY },
	{ "untouched-calloc", 0, NULL, O_UNTOUCHED },
	{ "keep", 0, NULL, O_KEEP },
	{ "put", 0, NULL, O_PUT },
	{ "memory", 1, NULL, O_MEMORY },
	{ "cookie-file", 1, NULL, O_COOKIE_FILE },
	{ "hold", 1, NULL, O_HOLD },
	{ "expect", 1, NULL, O_EXPECT },
	{ "seconds", 1, NULL, O_SECONDS },
	{ "count", 1, NULL, O_COUNT },
	{ "chunk", 1, NULL, O_CHUNK },
	{ "depth", 1, NULL, O_DEPTH },
	{ "threads", 1, NULL, O_THREADS },
	{ "device", 1, NULL, O_DEVICE },
	{ "peer", 1, NULL, O_PEER },
	{ "only", 1, NULL, O_ONLY },
	{ "except", 1, NULL, O_EXCEPT },
	{ "domid", 1, NULL, O_DOMID },
	{ "peer-domid", 1, NULL, O_PEER_DOMID },
	{ "disk", 1, NULL, O_DISK },
	{ "small", 0, NULL, O_SMALL },
	{ "port", 1, NULL, O_PORT },
	{ "help", 0, NULL, O_HELP },
	{ NULL, 0, NULL, 0 },
};

static void set_option(struct options *opt, int c, const char *arg)
{
	switch (c) {
	case O_BYTES:
		opt->bytes = number(arg);
		break;
	case O_OFFSET:
		opt->offset = number(arg);
		break;
	case O_SRC_OFFSET:
		opt->src_offset = number(arg);
		break;
	case O_DST_OFFSET:
		opt->dst_offset = number(arg);
		break;
	case O_SEED:
		opt->seed = number(arg);
		opt->has_seed = true;
		break;
	case O_VERIFY:
		opt->verify_seed = number(arg);
		opt->has_verify = true;
		break;
	case O_VERIFY_OFFSET:
		opt->verify_offset = number(arg);
		opt->has_verify_range = true;
		break;
	case O_VERIFY_BYTES:
		opt->verify_bytes = number(arg);
		opt->has_verify_range = true;
		break;
	case O_ACCESS:
		opt->access = access_of(arg);
		break;
	case O_ANY:
		opt->any_user = true;
		break;
	case O_UNTOUCHED:
		opt->untouched = true;
		break;
	case O_KEEP:
		opt->keep = true;
		break;
	case O_PUT:
		opt->put = true;
		break;
	case O_MEMORY:
		opt->memory = arg;
		break;
	case O_COOKIE_FILE:
		opt->cookie_file = arg;
		break;
	case O_HOLD:
		opt->hold_ns = (int64_t)number(arg) * 1000000000;
		break;
	case O_EXPECT:
		opt->expect = errno_of(arg);
		opt->has_expect = true;
		break;
	case O_SECONDS:
		opt->seconds = number(arg);
		break;
	case O_COUNT:
		opt->count = number(arg);
		break;
	case O_CHUNK:
		opt->chunk = number(arg);
		break;
	case O_DEPTH:
		opt->depth = number(arg);
		break;
	case O_THREADS:
		opt->threads = number(arg);
		break;
	case O_DEVICE:
		opt->device = arg;
		break;
	case O_PEER:
		opt->peer = arg;
		break;
	case O_ONLY:
		opt->only = arg;
		break;
	case O_EXCEPT:
		opt->except = arg;
		break;
	case O_DOMID:
		opt->domid = (int)number(arg);
		break;
	case O_PEER_DOMID:
		opt->peer_domid = (int)number(arg);
		break;
	case O_DISK:
		opt->disk = arg;
		break;
	case O_SMALL:
		opt->small = true;
		break;
	case O_PORT:
		opt->port = number(arg);
		break;
	case O_HELP:
		fputs(usage_text, stdout);
		exit(T_OK);
	default:
		exit(T_USAGE);
	}
}

static void check_options(const struct options *opt)
{
	if (opt->has_verify_range && (opt->verify_offset > opt->bytes ||
				      opt->verify_bytes > opt->bytes - opt->verify_offset))
		wrong_usage("--verify-offset, --verify-bytes", "not within --bytes");
	if (!opt->count || !opt->chunk || !opt->depth || !opt->threads || opt->depth > 1024 ||
	    opt->threads > 256)
		wrong_usage("--count, --chunk, --depth, --threads", "out of range");
}

/*
 * With XNEM_TEST_FAIL_NTH=N (and a kernel that injects faults) the N-th object that the kernel
 * allocates for this process is refused; at the end fail_nth=0 tells that it came to that.
 */
static int fail_nth_open(void)
{
	const char *nth = getenv("XNEM_TEST_FAIL_NTH");
	int fd;

	if (!nth)
		return -1;
	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0 || write(fd, nth, strlen(nth)) < 0)
		wrong_usage("XNEM_TEST_FAIL_NTH", "the kernel does not inject faults");
	return fd;
}

static void fail_nth_close(int fd)
{
	char left[16] = "";

	if (fd < 0)
		return;
	if (pread(fd, left, sizeof(left) - 1, 0) > 0)
		printf("fail_nth=%s", left);
}

int main(int argc, char **argv)
{
	struct options opt = {
		.bytes = 4096,
		.access = XNEM_READ,
		.hold_ns = -1,
		.seconds = 10,
		.count = 100,
		.chunk = 1 << 20,
		.depth = 4,
		.threads = 4,
		.domid = -1,
		.peer_domid = -1,
	};
	int c, fail_nth;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(&opt, c, optarg);
	if (optind == argc)
		wrong_usage("xnem-test", "no command");
	check_options(&opt);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[optind], commands[i].name))
			continue;
		if (argc - optind - 1 != commands[i].args)
			wrong_usage(argv[optind], "wrong number of arguments");
		fail_nth = fail_nth_open();
		c = commands[i].run(&opt, argv + optind + 1);
		fail_nth_close(fail_nth);
		/* a line that nobody got is no result */
		if (fflush(stdout))
			return T_FAILED;
		return c;
	}
	wrong_usage(argv[optind], "no such command");
}
