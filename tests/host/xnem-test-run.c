// SPDX-License-Identifier: MIT
/*
 * xnem-test: the commands that copy much and often.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/xnem.h>

#include "xnem-test.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/** A registered buffer of this process. */
struct own {
	unsigned char *mem;
	uint64_t bytes;
	struct xnem_region *region;
};

static void own_make(struct own *own, struct xnem *ctx, uint64_t bytes, unsigned int access)
{
	int err;

	own->bytes = bytes;
	own->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own->mem == MAP_FAILED)
		exit(fail("memory", -errno));
	err = xnem_register(ctx, own->mem, bytes, access, &own->region);
	if (err)
		exit(fail("register", err));
}

static int own_free(struct own *own)
{
	int err = xnem_deregister(own->region);

	munmap(own->mem, own->bytes);
	return err ? fail("deregister", err) : T_OK;
}

/* ---- matrix ---- */

/** Spare bytes of the own buffer: the largest offset, and guards. */
#define MATRIX_SLACK (3 * 4096)

struct matrix {
	struct xnem *ctx;
	struct own own;
	struct xnem_cookie source, target;
	uint64_t bytes;
	/** bytes one copy may have, as the own buffer is no longer */
	uint64_t piece;
	uint64_t seed;
	unsigned int gets, puts, bad;
};

/**
 * May this process pin more than RLIMIT_MEMLOCK?  0 and the limit if not,
 * otherwise UINT64_MAX.
 */
static uint64_t memlock_limit(void)
{
	uint64_t caps = 0;
	struct rlimit limit;
	char line[256];
	FILE *f;

	f = fopen("/proc/self/status", "re");
	if (f) {
		while (fgets(line, sizeof(line), f))
			if (!strncmp(line, "CapEff:", 7))
				caps = strtoull(line + 7, NULL, 16);
		fclose(f);
	}
	if (caps >> 14 & 1) /* CAP_IPC_LOCK */
		return UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/** Registering more than the limit fails, with ENOMEM and nothing else. */
static int check_memlock(struct xnem *ctx, uint64_t limit)
{
	uint64_t bytes = limit + 4096;
	struct xnem_device_info info;
	struct xnem_region *region;
	void *mem;
	int err;

	err = xnem_get_info(ctx, &info);
	if (err)
		return fail("info", err);
	if (bytes > info.max_region_bytes) {
		printf("memlock_check=skipped reason=limit_above_largest_region\n");
		return T_OK;
	}
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return fail("memory", -errno);
	err = xnem_register(ctx, mem, bytes, XNEM_WRITE, &region);
	if (!err)
		xnem_deregister(region);
	munmap(mem, bytes);
	printf("memlock_check=%s error=%s\n", err == -ENOMEM ? "ok" : "bad", xnem_errname(err));
	return err == -ENOMEM ? T_OK : T_EXPECT;
}

static void matrix_bad(struct matrix *m, const char *what, uint64_t size, uint64_t src,
		       uint64_t dst, int err, uint64_t at)
{
	m->bad++;
	printf("BAD %s size=%" PRIu64 " src=%" PRIu64 " dst=%" PRIu64 " error=%s at=%" PRIu64 "\n",
	       what, size, src, dst, xnem_errname(err), at);
}

/** One copy into own memory, every byte and the bytes around it verified. */
static void get_piece(struct matrix *m, uint64_t size, uint64_t src, uint64_t dst)
{
	unsigned char *p = m->own.mem + GUARD + dst;
	uint64_t done = 0, at;
	int err;

	memset(p - GUARD, GUARD_BYTE, size + 2 * GUARD);
	err = xnem_get(m->own.region, GUARD + dst, &m->source, src, size, &done);
	if (err || done != size) {
		matrix_bad(m, "get", size, src, dst, err, done);
		return;
	}
	at = pattern_check(p, size, m->seed, src);
	if (at != size)
		matrix_bad(m, "get-data", size, src, dst, 0, at);
	else if (byte_check(p - GUARD, GUARD, GUARD_BYTE) != GUARD ||
		 byte_check(p + size, GUARD, GUARD_BYTE) != GUARD)
		matrix_bad(m, "get-guard", size, src, dst, 0, 0);
}

/**
 * One copy from own memory into the middle of what was written before, and
 * everything read back.
 */
static void put_piece(struct matrix *m, uint64_t size, uint64_t src, uint64_t dst)
{
	uint64_t before = dst < GUARD ? dst : GUARD;
	uint64_t behind = m->bytes - dst - size < GUARD ? m->bytes - dst - size : GUARD;
	uint64_t seed = m->seed + 1 + m->puts;
	unsigned char *p = m->own.mem + GUARD;
	uint64_t whole = before + size + behind;
	uint64_t done = 0, at;
	int err;

	memset(p, GUARD_BYTE, whole);
	err = xnem_put(m->own.region, GUARD, &m->target, dst - before, whole, NULL);
	if (!err) {
		pattern_fill(p + src, size, seed, dst);
		err = xnem_put(m->own.region, GUARD + src, &m->target, dst, size, &done);
	}
	if (err || done != size) {
		matrix_bad(m, "put", size, src, dst, err, done);
		return;
	}
	memset(p, 0, whole);
	err = xnem_get(m->own.region, GUARD, &m->target, dst - before, whole, NULL);
	if (err) {
		matrix_bad(m, "put-read", size, src, dst, err, 0);
		return;
	}
	at = pattern_check(p + before, size, seed, dst);
	if (at != size)
		matrix_bad(m, "put-data", size, src, dst, 0, at);
	else if (byte_check(p, before, GUARD_BYTE) != before ||
		 byte_check(p + before + size, behind, GUARD_BYTE) != behind)
		matrix_bad(m, "put-guard", size, src, dst, 0, 0);
}

static void matrix_case(struct matrix *m, uint64_t size, uint64_t src, uint64_t dst)
{
	uint64_t done = 0;

	/* as far as the other regions reach, and in pieces if we must */
	if (size + src > m->bytes)
		size = m->bytes - src;
	do {
		uint64_t n = size - done < m->piece ? size - done : m->piece;

		get_piece(m, n, src + done, dst);
		m->gets++;
		done += n;
	} while (done < size);

	done = 0;
	if (size + dst > m->bytes)
		size = m->bytes - dst;
	do {
		uint64_t n = size - done < m->piece ? size - done : m->piece;

		put_piece(m, n, src, dst + done);
		m->puts++;
		done += n;
	} while (done < size);
}

int cmd_matrix(const struct options *opt, char **args)
{
	static const uint64_t sizes[] = { 0, 1, 4095, 4096, 4097, 65535, 1 << 20, 16 << 20 };
	static const uint64_t offsets[] = { 0, 1, 7, 63, 4095 };
	static const uint64_t few[][2] = {
		{ 0, 0 }, { 1, 0 }, { 0, 7 }, { 63, 4095 }, { 4095, 1 }
	};
	struct matrix m = { .bytes = opt->bytes, .seed = opt->seed };
	uint64_t limit = memlock_limit();
	uint64_t want = (16 << 20) + MATRIX_SLACK;
	int ret = T_OK, err;

	if (opt->bytes < 8192) {
		fprintf(stderr, "xnem-test: matrix wants --bytes 8192 or more\n");
		return T_USAGE;
	}
	parse_cookie(args[0], &m.source);
	parse_cookie(args[1], &m.target);
	m.ctx = must_open(opt);
	if (want > opt->bytes + MATRIX_SLACK)
		want = opt->bytes + MATRIX_SLACK;
	if (limit != UINT64_MAX) {
		printf("memlock=%" PRIu64 "\n", limit);
		ret = check_memlock(m.ctx, limit);
		if (want > limit / 2 && limit / 2 > 2 * MATRIX_SLACK)
			want = limit / 2;
	} else {
		printf("memlock=unlimited\n");
	}
	own_make(&m.own, m.ctx, want, XNEM_READ | XNEM_WRITE);
	m.piece = want - MATRIX_SLACK;
	printf("piece=%" PRIu64 "\n", m.piece);

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		unsigned int bad = m.bad, gets = m.gets, puts = m.puts;
		uint64_t begin = now_ns();

		if (sizes[i] < 1 << 20) {
			for (size_t s = 0; s < COUNT_OF(offsets); s++)
				for (size_t d = 0; d < COUNT_OF(offsets); d++)
					matrix_case(&m, sizes[i], offsets[s], offsets[d]);
		} else {
			for (size_t k = 0; k < COUNT_OF(few); k++)
				matrix_case(&m, sizes[i], few[k][0], few[k][1]);
		}
		printf("size=%" PRIu64 " gets=%u puts=%u bad=%u ms=%" PRIu64 "\n", sizes[i],
		       m.gets - gets, m.puts - puts, m.bad - bad, (now_ns() - begin) / 1000000);
		fflush(stdout);
	}
	printf("gets=%u\nputs=%u\nbad=%u\n", m.gets, m.puts, m.bad);
	if (m.bad)
		ret = T_DATA;
	err = own_free(&m.own);
	ret = ret ? ret : err;
	err = xnem_close(m.ctx);
	if (err)
		return fail("close", err);
	return ret;
}

/* ---- stream ---- */

static int peer_exit(int err)
{
	static const int peer_errors[] = {
		-EHOSTDOWN, -ENOENT, -ENOTCONN, -ENODEV, -EXDEV, -ESTALE, -ECANCELED,
	};

	for (size_t i = 0; i < COUNT_OF(peer_errors); i++)
		if (peer_errors[i] == err)
			return T_ERRNO + (int)i;
	return T_FAILED;
}

static int start_one(const struct options *opt, struct own *own, const struct xnem_cookie *cookie,
		     uint64_t slot, uint64_t offset, uint64_t len)
{
	if (opt->put)
		return xnem_put_start(own->region, slot * opt->chunk, cookie, offset, len, slot,
				      NULL);
	return xnem_get_start(own->region, slot * opt->chunk, cookie, offset, len, slot, NULL);
}

int cmd_stream(const struct options *base, char **args)
{
	struct options local = *base, *opt = &local;
	uint64_t begin, tick, bytes = 0, offset = 0, open = 0, error_at = 0;
	struct xnem_event events[64];
	struct xnem_cookie cookie;
	struct xnem *ctx;
	struct own own;
	uint64_t *idle, nr_idle;
	int error = 0, ret, n;

	parse_cookie(args[0], &cookie);
	if (opt->chunk > opt->bytes)
		opt->chunk = opt->bytes;
	ctx = must_open(opt);
	own_make(&own, ctx, opt->chunk * opt->depth, opt->put ? XNEM_READ : XNEM_WRITE);
	idle = must_alloc(opt->depth * sizeof(*idle));
	for (nr_idle = 0; nr_idle < opt->depth; nr_idle++)
		idle[nr_idle] = nr_idle;
	printf("streaming=yes pid=%d\n", (int)getpid());
	fflush(stdout);

	begin = now_ns();
	tick = begin + 1000000000;
	for (;;) {
		uint64_t now = now_ns();

		while (now >= tick) {
			printf("t=%" PRIu64 " bytes=%" PRIu64 "\n", (tick - begin) / 1000000000,
			       bytes);
			fflush(stdout);
			tick += 1000000000;
		}
		if (error && now - error_at > 10000000000ull)
			break;
		while (!error && nr_idle && now - begin < opt->seconds * 1000000000) {
			uint64_t slot = idle[nr_idle - 1];

			if (offset + opt->chunk > opt->bytes)
				offset = 0;
			ret = start_one(opt, &own, &cookie, slot, offset, opt->chunk);
			if (ret == -EAGAIN)
				break;
			if (ret) {
				error = ret;
				error_at = now;
				break;
			}
			offset += opt->chunk;
			nr_idle--;
			open++;
		}
		if (!open) {
			if (error || now - begin >= opt->seconds * 1000000000)
				break;
			usleep(1000);
			continue;
		}
		n = xnem_get_events(ctx, events, 1, COUNT_OF(events), 100000000);
		if (n == -ETIMEDOUT || n == -EINTR)
			continue;
		if (n < 0) {
			error = error ? error : n;
			break;
		}
		for (int i = 0; i < n; i++) {
			open--;
			idle[nr_idle++] = events[i].user_data;
			bytes += events[i].bytes;
			if (events[i].status && events[i].status != -EAGAIN && !error) {
				error = events[i].status;
				error_at = now_ns();
			}
		}
	}
	printf("bytes=%" PRIu64 "\nerror=%s\n", bytes, xnem_errname(error));
	/* every request ends, and soon once one has ended so */
	printf("unfinished=%" PRIu64 "\n", open);
	if (error)
		printf("ended_within_ns=%" PRIu64 "\n", now_ns() - error_at);
	fflush(stdout);
	ret = error ? peer_exit(error) : T_OK;
	if (open)
		ret = T_FAILED;
	n = own_free(&own);
	ret = n ? n : ret;
	free(idle);
	n = xnem_close(ctx);
	if (n)
		return fail("close", n);
	return ret;
}

/* ---- timings ---- */

static void print_times(uint64_t count, uint64_t total, uint64_t min)
{
	printf("count=%" PRIu64 "\nmin_ns=%" PRIu64 "\nmean_ns=%" PRIu64 "\n", count, min,
	       total / count);
}

int cmd_ping(const struct options *opt, char **args)
{
	uint64_t total = 0, min = UINT64_MAX, ns;
	struct xnem *ctx = must_open(opt);
	int err;

	(void)args;
	for (uint64_t i = 0; i < opt->count; i++) {
		err = xnem_ping(ctx, 10000000000, &ns);
		if (err || opt->has_expect) {
			int ret = finish_expect(opt, err);

			xnem_close(ctx);
			return ret;
		}
		total += ns;
		if (ns < min)
			min = ns;
	}
	print_times(opt->count, total, min);
	err = xnem_close(ctx);
	return err ? fail("close", err) : T_OK;
}

int cmd_lat(const struct options *opt, char **args)
{
	uint64_t total = 0, min = UINT64_MAX;
	struct xnem_cookie cookie;
	struct xnem *ctx;
	struct own own;
	int err, ret;

	parse_cookie(args[0], &cookie);
	ctx = must_open(opt);
	own_make(&own, ctx, opt->bytes ? opt->bytes : 1, opt->put ? XNEM_READ : XNEM_WRITE);
	for (uint64_t i = 0; i < opt->count; i++) {
		uint64_t begin = now_ns(), ns;

		if (opt->put)
			err = xnem_put(own.region, 0, &cookie, 0, opt->bytes, NULL);
		else
			err = xnem_get(own.region, 0, &cookie, 0, opt->bytes, NULL);
		ns = now_ns() - begin;
		if (err)
			return fail("copy", err);
		total += ns;
		if (ns < min)
			min = ns;
	}
	printf("bytes=%" PRIu64 "\n", opt->bytes);
	print_times(opt->count, total, min);
	ret = own_free(&own);
	err = xnem_close(ctx);
	return err ? fail("close", err) : ret;
}

/* Kept times: of the first copies, when there are more. */
#define WATCH_TIMES 200000

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static volatile sig_atomic_t watch_over;

static void end_watch(int sig)
{
	(void)sig;
	watch_over = 1;
}

int cmd_watch(const struct options *opt, char **args)
{
	uint64_t *ns = must_alloc(WATCH_TIMES * sizeof(*ns)), n = 0, kept, max = 0;
	uint64_t end = now_ns() + opt->seconds * 1000000000;
	struct sigaction sa = { .sa_handler = end_watch, .sa_flags = SA_RESTART };
	struct xnem_cookie cookie;
	struct xnem *ctx;
	struct own own;
	int err, ret;

	parse_cookie(args[0], &cookie);
	sigaction(SIGTERM, &sa, NULL);
	ctx = must_open(opt);
	own_make(&own, ctx, opt->bytes, XNEM_WRITE);
	printf("pid=%d\n", (int)getpid());
	fflush(stdout);
	while (!watch_over && now_ns() < end) {
		uint64_t begin = now_ns(), took, good;

		err = xnem_get(own.region, 0, &cookie, 0, opt->bytes, NULL);
		took = now_ns() - begin;
		if (err)
			return fail("copy", err);
		good = pattern_check(own.mem, opt->bytes, opt->verify_seed, 0);
		if (good != opt->bytes) {
			printf("copy %" PRIu64 ": wrong from byte %" PRIu64 " on\n", n, good);
			return T_DATA;
		}
		memset(own.mem, 0, opt->bytes);
		if (n < WATCH_TIMES)
			ns[n] = took;
		max = took > max ? took : max;
		n++;
		/* Others of this guest want its CPU, too. */
		usleep(1000);
	}
	kept = n < WATCH_TIMES ? n : WATCH_TIMES;
	if (!n)
		return fail("no copy", -ENODATA);
	qsort(ns, kept, sizeof(*ns), by_time);
	printf("copies=%" PRIu64 "\np50_us=%" PRIu64 "\nmax_us=%" PRIu64 "\n", n,
	       ns[kept / 2] / 1000, max / 1000);
	ret = own_free(&own);
	err = xnem_close(ctx);
	return err ? fail("close", err) : ret;
}

int cmd_bw(const struct options *base, char **args)
{
	struct options local = *base, *opt = &local;
	uint64_t started = 0, ended = 0, begin, ns;
	struct xnem_event events[64];
	struct xnem_cookie cookie;
	struct xnem *ctx;
	struct own own;
	int err, n, ret;

	parse_cookie(args[0], &cookie);
	if (!opt->bytes)
		opt->bytes = 1;
	opt->chunk = opt->bytes;
	ctx = must_open(opt);
	own_make(&own, ctx, opt->bytes * opt->depth, opt->put ? XNEM_READ : XNEM_WRITE);
	begin = now_ns();
	while (ended < opt->count) {
		while (started < opt->count && started - ended < opt->depth) {
			err = start_one(opt, &own, &cookie, started % opt->depth, 0, opt->bytes);
			if (err == -EAGAIN && started != ended)
				break;
			if (err == -EAGAIN) {
				usleep(100);
				continue;
			}
			if (err)
				return fail("copy", err);
			started++;
		}
		n = xnem_get_events(ctx, events, 1, COUNT_OF(events), XNEM_FOREVER);
		if (n < 0 && n != -EINTR)
			return fail("events", n);
		for (int i = 0; i < n; i++) {
			if (events[i].status)
				return fail("copy", events[i].status);
			ended++;
		}
	}
	ns = now_ns() - begin;
	printf("bytes=%" PRIu64 "\ncount=%" PRIu64 "\nns=%" PRIu64 "\nmib_per_second=%.1f\n",
	       opt->bytes, opt->count, ns, (double)opt->bytes * opt->count / ns * 1e9 / (1 << 20));
	ret = own_free(&own);
	err = xnem_close(ctx);
	return err ? fail("close", err) : ret;
}

/* ---- threads ---- */

struct threads {
	const struct options *opt;
	struct xnem *ctx;
	struct xnem_cookie cookie;
	atomic_uint bad;
	atomic_uint copies;
};

struct one_thread {
	struct threads *all;
	pthread_t id;
	unsigned int number;
};

static uint64_t random64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* blocking copies and requests with handles in turns, at random places */
static void *run_thread(void *arg)
{
	struct one_thread *me = arg;
	struct threads *all = me->all;
	const struct options *opt = all->opt;
	uint64_t state = 88172645463325252ull + me->number;
	uint64_t most = opt->bytes < 65536 ? opt->bytes : 65536;
	struct own own;

	own_make(&own, all->ctx, most, XNEM_WRITE);
	for (uint64_t i = 0; i < opt->count; i++) {
		uint64_t len = 1 + random64(&state) % most;
		uint64_t off = random64(&state) % (opt->bytes - len + 1);
		uint64_t dst = random64(&state) % (most - len + 1);
		uint64_t done = 0;
		xnem_req req;
		int err;

		memset(own.mem + dst, GUARD_BYTE, len);
		if (i % 2) {
			err = xnem_get(own.region, dst, &all->cookie, off, len, &done);
		} else {
			do {
				err = xnem_get_start(own.region, dst, &all->cookie, off, len, 0,
						     &req);
				if (err == -EAGAIN)
					usleep(100);
			} while (err == -EAGAIN);
			while (!err) {
				err = xnem_wait(all->ctx, req, 1000000, &done);
				if (err != -ETIMEDOUT && err != -EINTR)
					break;
				err = 0;
			}
		}
		if (err || done != len ||
		    pattern_check(own.mem + dst, len, opt->seed, off) != len) {
			printf("BAD thread=%u error=%s len=%" PRIu64 " off=%" PRIu64 "\n",
			       me->number, xnem_errname(err), len, off);
			atomic_fetch_add(&all->bad, 1);
		}
		atomic_fetch_add(&all->copies, 1);
	}
	if (own_free(&own))
		atomic_fetch_add(&all->bad, 1);
	return NULL;
}

int cmd_threads(const struct options *opt, char **args)
{
	struct threads all = { .opt = opt };
	struct one_thread *threads;
	int err;

	if (!opt->bytes)
		return T_USAGE;
	parse_cookie(args[0], &all.cookie);
	all.ctx = must_open(opt);
	threads = must_alloc(opt->threads * sizeof(*threads));
	for (unsigned int i = 0; i < opt->threads; i++) {
		threads[i].all = &all;
		threads[i].number = i;
		err = pthread_create(&threads[i].id, NULL, run_thread, &threads[i]);
		if (err)
			return fail("thread", -err);
	}
	for (unsigned int i = 0; i < opt->threads; i++)
		pthread_join(threads[i].id, NULL);
	free(threads);
	printf("copies=%u\nbad=%u\n", atomic_load(&all.copies), atomic_load(&all.bad));
	err = xnem_close(all.ctx);
	if (err)
		return fail("close", err);
	return atomic_load(&all.bad) ? T_DATA : T_OK;
}

/* ---- signals, hangup: the kernel's calls, without the library between ---- */

static int raw_open(const struct options *opt)
{
	return open(opt->device ? opt->device : "/dev/xnem0", O_RDWR | O_CLOEXEC);
}

static void on_alarm(int signo)
{
	(void)signo;
}

/*
 * Every call may be interrupted at any point of its way to the backend and
 * back.  What is left of it goes with the file: xnem-leakcheck tells.
 */
int cmd_signals(const struct options *opt, char **args)
{
	/* no SA_RESTART: a call that was interrupted says so */
	struct sigaction action = { .sa_handler = on_alarm };
	uint64_t done = 0, interrupted = 0;
	size_t bytes = opt->bytes ? opt->bytes : 4096;
	unsigned char *mem = malloc(bytes);

	(void)args;
	if (!mem)
		return T_FAILED;
	memset(mem, 1, bytes);
	sigaction(SIGALRM, &action, NULL);
	for (uint64_t i = 0; i < opt->count; i++) {
		struct itimerval timer = { .it_interval = { 0, 50 + i % 97 * 7 },
					   .it_value = { 0, 50 + i % 89 * 11 } };
		struct xnem_register reg = { .addr = (uintptr_t)mem,
					     .length = bytes,
					     .access = XNEM_REG_READ };
		struct xnem_deregister dereg = { 0 };
		int fd = raw_open(opt);

		if (fd < 0)
			return fail("open", -errno);
		setitimer(ITIMER_REAL, &timer, NULL);
		if (!ioctl(fd, XNEM_IOC_REGISTER, &reg)) {
			dereg.handle = reg.handle;
			if (!ioctl(fd, XNEM_IOC_DEREGISTER, &dereg))
				done++;
			else if (errno == EINTR)
				interrupted++;
			else
				return fail("deregister", -errno);
		} else if (errno == EINTR) {
			interrupted++;
		} else {
			return fail("register", -errno);
		}
		timer = (struct itimerval){ 0 };
		setitimer(ITIMER_REAL, &timer, NULL);
		close(fd);
	}
	free(mem);
	printf("done=%" PRIu64 "\ninterrupted=%" PRIu64 "\n", done, interrupted);
	/* neither alone would have tried anything */
	return interrupted ? T_OK : T_FAILED;
}

int cmd_hangup(const struct options *opt, char **args)
{
	struct pollfd p = { .fd = raw_open(opt), .events = POLLIN };
	struct xnem_info info = { 0 };
	int n;

	(void)args;
	if (p.fd < 0)
		return fail("open", -errno);
	puts("open=1");
	fflush(stdout);
	n = poll(&p, 1, (int)(opt->seconds ? opt->seconds : 60) * 1000);
	printf("revents=%d\n", n == 1 ? p.revents : -1);
	if (n != 1 || !(p.revents & POLLHUP))
		return T_FAILED;
	if (ioctl(p.fd, XNEM_IOC_INFO, &info) >= 0 || errno != ENODEV)
		return fail("info of a device that is gone", -errno);
	return T_OK;
}

/* ---- churn ---- */

int cmd_churn(const struct options *opt, char **args)
{
	struct xnem_cookie cookie;
	unsigned int bad = 0;
	int err;

	if (!opt->bytes)
		return T_USAGE;
	parse_cookie(args[0], &cookie);
	for (uint64_t i = 0; i < opt->count; i++) {
		struct xnem *ctx = must_open(opt);
		struct own own;

		own_make(&own, ctx, opt->bytes, XNEM_WRITE);
		err = xnem_get(own.region, 0, &cookie, 0, opt->bytes, NULL);
		if (err)
			return fail("copy", err);
		if (opt->has_seed && pattern_check(own.mem, opt->bytes, opt->seed, 0) != opt->bytes)
			bad++;
		/* in turns: in order, close alone, and with a copy in flight */
		if (i % 3 == 0)
			own_free(&own);
		if (i % 3 == 2)
			xnem_get_start(own.region, 0, &cookie, 0, opt->bytes, 0, NULL);
		err = xnem_close(ctx);
		if (err)
			return fail("close", err);
		if (i % 3)
			munmap(own.mem, own.bytes);
	}
	printf("count=%" PRIu64 "\nbad=%u\n", opt->count, bad);
	return bad ? T_DATA : T_OK;
}
