// SPDX-License-Identifier: MIT
/*
 * libxnem over a fake kernel (ioctl is wrapped): what the library itself adds.
 *
 * The fake completes a request when a test says so, or at once (auto).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/xnem.h>

#include "xnem.h"

#define MAX 4096
#define SECOND 1000000000ll

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* what the device is */
	uint64_t fabric;
	bool connected, gone;
	uint32_t abi;
	unsigned int max_inflight;
	bool auto_complete;
	/* requests in flight and completions */
	struct xnem_submit_req flight[MAX];
	unsigned int nr_flight;
	struct xnem_complete done[MAX];
	unsigned int nr_done;
	/* one error for the next call of a kind */
	int next_submit, next_register, next_complete, next_deregister;
	uint32_t limit, next_handle;
	unsigned int fetchers, most_fetchers;
	unsigned int nr_submit, nr_info, nr_deregister, nr_complete;
} k;

static void k_done(unsigned int i, int status, uint64_t bytes)
{
	k.done[k.nr_done++] = (struct xnem_complete){
		.user_data = k.flight[i].user_data,
		.bytes_done = bytes,
		.status = status,
	};
	memmove(&k.flight[i], &k.flight[i + 1], (k.nr_flight - i - 1) * sizeof(k.flight[0]));
	k.nr_flight--;
	pthread_cond_broadcast(&k.changed);
}

static unsigned int k_flying(void)
{
	unsigned int n;

	pthread_mutex_lock(&k.lock);
	n = k.nr_flight;
	pthread_mutex_unlock(&k.lock);
	return n;
}

/* completes the i-th oldest; bytes < 0: all */
static void complete(unsigned int i, int status, int64_t bytes)
{
	pthread_mutex_lock(&k.lock);
	assert_true(i < k.nr_flight);
	k_done(i, status, bytes < 0 ? k.flight[i].length : (uint64_t)bytes);
	pthread_mutex_unlock(&k.lock);
}

static int take(int *error)
{
	int e = *error;

	*error = 0;
	return e;
}

static int k_submit(struct xnem_submit *s)
{
	const struct xnem_submit_req *q = (const void *)(uintptr_t)s->reqs;
	int e = take(&k.next_submit);

	k.nr_submit++;
	if (e)
		return e;
	if (!k.connected)
		return ENOTCONN;
	for (s->submitted = 0; s->submitted < s->count; s->submitted++) {
		if (k.nr_flight + k.nr_done >= k.max_inflight)
			break;
		k.flight[k.nr_flight++] = q[s->submitted];
		if (k.auto_complete)
			k_done(k.nr_flight - 1, 0, q[s->submitted].length);
	}
	return s->submitted ? 0 : EAGAIN;
}

static int k_complete(struct xnem_get_completions *g)
{
	struct timespec until;
	int e = take(&k.next_complete);

	k.nr_complete++;
	if (e)
		return e;
	clock_gettime(CLOCK_REALTIME, &until);
	if (g->timeout_ns > 0) {
		until.tv_sec += g->timeout_ns / SECOND;
		until.tv_nsec += g->timeout_ns % SECOND;
		if (until.tv_nsec >= SECOND) {
			until.tv_sec++;
			until.tv_nsec -= SECOND;
		}
	}
	k.fetchers++;
	if (k.fetchers > k.most_fetchers)
		k.most_fetchers = k.fetchers;
	while (k.nr_done < g->min_count && k.nr_flight && g->timeout_ns && !e && !k.gone &&
	       !k.next_complete)
		e = g->timeout_ns < 0 ? pthread_cond_wait(&k.changed, &k.lock) :
					pthread_cond_timedwait(&k.changed, &k.lock, &until);
	k.fetchers--;
	if (k.next_complete)
		return take(&k.next_complete);
	g->count = k.nr_done < g->max_count ? k.nr_done : g->max_count;
	if (!g->count && k.gone)
		return ENODEV;
	if (!g->count && g->min_count)
		return k.nr_flight ? ETIME : ENOENT;
	memcpy((void *)(uintptr_t)g->completions, k.done, g->count * sizeof(k.done[0]));
	k.nr_done -= g->count;
	memmove(k.done, k.done + g->count, k.nr_done * sizeof(k.done[0]));
	return 0;
}

static int k_call(unsigned long call, void *arg)
{
	struct xnem_register *r = arg;
	struct xnem_info *info = arg;
	int e;

	if (k.gone && call != XNEM_IOC_COMPLETE)
		return ENODEV;
	switch (call) {
	case XNEM_IOC_INFO:
		k.nr_info++;
		info->abi_version = k.abi;
		info->fabric_id = k.fabric;
		info->connected = k.connected;
		info->max_inflight = k.max_inflight;
		return 0;
	case XNEM_IOC_REGISTER:
		r->limit = k.limit;
		e = take(&k.next_register);
		if (e)
			return e;
		r->handle = ++k.next_handle;
		r->cookie.id = 0x1122334455667788;
		r->cookie.key = 0x99aabbccddeeff00 + r->handle;
		return 0;
	case XNEM_IOC_DEREGISTER:
		k.nr_deregister++;
		return take(&k.next_deregister);
	case XNEM_IOC_SUBMIT:
		return k_submit(arg);
	case XNEM_IOC_COMPLETE:
		return k_complete(arg);
	}
	return ENOTTY;
}

int __wrap_ioctl(int fd, unsigned long call, ...);
int __wrap_ioctl(int fd, unsigned long call, ...)
{
	va_list args;
	void *arg;
	int e;

	(void)fd;
	va_start(args, call);
	arg = va_arg(args, void *);
	va_end(args);
	pthread_mutex_lock(&k.lock);
	e = k_call(call, arg);
	pthread_mutex_unlock(&k.lock);
	if (!e)
		return 0;
	errno = e;
	return -1;
}

/* what stands in for the device, /dev/null, cannot be polled */
int __wrap_epoll_ctl(int epfd, int op, int fd, void *event);
int __real_epoll_ctl(int epfd, int op, int fd, void *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, void *event)
{
	int ret = __real_epoll_ctl(epfd, op, fd, event);

	return ret && errno == EPERM ? 0 : ret;
}

static struct xnem *ctx;
static struct xnem_region *own;
static struct xnem_cookie other;
static char memory[65536];

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.changed, NULL);
	k.fabric = 0xfab1;
	k.connected = true;
	k.abi = XNEM_ABI_VERSION;
	k.max_inflight = 64;
	if (xnem_open("/dev/null", &ctx))
		return -1;
	if (xnem_register(ctx, memory, sizeof(memory), XNEM_READ | XNEM_WRITE, &own))
		return -1;
	other = *xnem_region_cookie(own);
	return 0;
}

static int teardown(void **state)
{
	int err = xnem_close(ctx);

	(void)state;
	return err && !k.gone ? -1 : 0;
}

static xnem_req start(uint64_t len)
{
	xnem_req req;

	assert_int_equal(xnem_get_start(own, 0, &other, 0, len, 0, &req), 0);
	assert_true(req != XNEM_REQ_NONE);
	return req;
}

/* ---- open ---- */

static void test_open(void **state)
{
	struct xnem *c = NULL;

	(void)state;
	assert_int_equal(xnem_open("/nonexistent/xnem0", &c), -ENOENT);
	assert_int_equal(xnem_open(NULL, NULL), -EINVAL);
	k.abi = 99;
	assert_int_equal(xnem_open("/dev/null", &c), -EPROTONOSUPPORT);
	k.abi = XNEM_ABI_VERSION;
	assert_null(c);
	/* no backend is no error of open */
	k.connected = false;
	assert_int_equal(xnem_open("/dev/null", &c), 0);
	assert_int_equal(xnem_close(c), 0);
	assert_int_equal(xnem_close(NULL), 0);
}

/* ---- cookies ---- */

static void test_cookie_text(void **state)
{
	struct xnem_cookie a, b;
	char text[XNEM_COOKIE_TEXT_SIZE + 4], line[XNEM_COOKIE_TEXT_SIZE + 4];

	(void)state;
	xnem_cookie_to_text(&other, text);
	assert_string_equal(text, "887766554433221101ffeeddccbbaa99b1fa000000000000");
	assert_int_equal(xnem_cookie_from_text(text, &a), 0);
	assert_memory_equal(&a, &other, sizeof(a));
	assert_int_equal(xnem_cookie_fabric(&a), 0xfab1);
	for (unsigned int i = 0; i < 256; i++) {
		memset(&a, (int)i, sizeof(a));
		xnem_cookie_to_text(&a, text);
		assert_int_equal(strlen(text), 48);
		assert_int_equal(xnem_cookie_from_text(text, &b), 0);
		assert_memory_equal(&a, &b, sizeof(a));
	}
	strcpy(line, text);
	strcat(line, " \n");
	assert_int_equal(xnem_cookie_from_text(line, &b), 0);
	strcpy(line, text);
	strcat(line, "0");
	assert_int_equal(xnem_cookie_from_text(line, &b), -EINVAL);
	assert_int_equal(xnem_cookie_from_text("", &b), -EINVAL);
	assert_int_equal(xnem_cookie_from_text(NULL, &b), -EINVAL);
	for (unsigned int i = 0; i < 48; i++) {
		strcpy(line, text);
		line[i] = 'g';
		assert_int_equal(xnem_cookie_from_text(line, &b), -EINVAL);
		line[i] = '\0';
		assert_int_equal(xnem_cookie_from_text(line, &b), -EINVAL);
	}
}

static void test_fabric(void **state)
{
	struct xnem_cookie foreign = other, none;
	struct xnem_op op = { .kind = XNEM_KIND_COPY, .length = 1 };
	unsigned int infos;
	xnem_req req;

	(void)state;
	foreign.bytes[16] ^= 1;
	memset(&none, 0, sizeof(none));
	assert_int_equal(xnem_reachable(ctx, &other), 0);
	assert_int_equal(xnem_reachable(ctx, &foreign), -EXDEV);
	assert_int_equal(xnem_reachable(ctx, &none), -EXDEV);
	assert_int_equal(xnem_get(own, 0, &foreign, 0, 1, NULL), -EXDEV);
	assert_int_equal(xnem_put_start(own, 0, &foreign, 0, 1, 0, &req), -EXDEV);
	assert_int_equal(xnem_copy(ctx, &other, 0, &foreign, 0, 1, NULL), -EXDEV);
	op.src = foreign;
	op.dst = other;
	assert_int_equal(xnem_submit(ctx, &op, 1), -EXDEV);
	/* nothing of that went to the kernel */
	assert_int_equal(k.nr_submit, 0);

	/* the backend begins a new life: a cookie of that is good at once ... */
	k.fabric = xnem_cookie_fabric(&foreign);
	assert_int_equal(xnem_reachable(ctx, &foreign), 0);
	/* ... the own region is not, and one of before is not */
	assert_int_equal(xnem_get(own, 0, &foreign, 0, 1, NULL), -ESTALE);
	assert_int_equal(xnem_reachable(ctx, &other), -EXDEV);

	/* no questions to the kernel when all is as it was */
	infos = k.nr_info;
	assert_int_equal(xnem_reachable(ctx, &foreign), 0);
	assert_int_equal(k.nr_info, infos);

	k.connected = false;
	assert_int_equal(xnem_reachable(ctx, &other), -ENOTCONN);
}

/* a restart that is noticed by "no such region" alone */
static void test_new_life(void **state)
{
	xnem_req req = start(10);
	struct xnem_event e;

	(void)state;
	assert_int_equal(xnem_copy_start(ctx, &other, 0, &other, 0, 5, 77, NULL), 0);
	k.fabric = 0xfab2;
	complete(0, -ENOENT, 0);
	complete(0, -ENOENT, 0);
	assert_int_equal(xnem_wait(ctx, req, SECOND, NULL), -ESTALE);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, SECOND), 1);
	assert_int_equal(e.user_data, 77);
	assert_int_equal(e.status, -EXDEV);
	k.fabric = 0xfab1;
	assert_int_equal(xnem_reachable(ctx, &other), 0);
	req = start(10);
	complete(0, -ENOENT, 0);
	assert_int_equal(xnem_wait(ctx, req, SECOND, NULL), -ENOENT);
}

/* ---- registration ---- */

static void test_register(void **state)
{
	struct xnem_region *r = NULL;

	(void)state;
	k.next_register = ENOMEM;
	k.limit = 1;
	assert_int_equal(xnem_register(ctx, memory, 10, XNEM_READ, &r), -ENOMEM);
	k.next_register = ENOMEM;
	k.limit = 0;
	assert_int_equal(xnem_register(ctx, memory, 10, XNEM_READ, &r), -ENOBUFS);
	assert_int_equal(xnem_register(ctx, memory, 10, 1u << 5, &r), -EINVAL);
	assert_null(r);
	assert_int_equal(xnem_register(ctx, memory, 10, XNEM_READ, &r), 0);
	assert_ptr_equal(xnem_region_addr(r), memory);
	assert_int_equal(xnem_region_length(r), 10);
	assert_int_equal(xnem_region_flags(r), XNEM_READ);
	assert_int_equal(xnem_deregister(r), 0);
	assert_int_equal(xnem_deregister(NULL), 0);
	assert_int_equal(k.nr_deregister, 1);
}

/* close ends each region first, and says when one could not be ended */
static void test_close(void **state)
{
	struct xnem_region *r;
	struct xnem *c;

	(void)state;
	assert_int_equal(xnem_open("/dev/null", &c), 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(xnem_register(c, memory, 10, XNEM_READ, &r), 0);
	k.next_deregister = EIO;
	assert_int_equal(xnem_close(c), -EIO);
	assert_int_equal(k.nr_deregister, 3);
}

/* ---- ends ---- */

static void test_short(void **state)
{
	uint64_t done = 99;
	xnem_req req;

	(void)state;
	req = start(100);
	complete(0, 0, 99);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -EPROTO);
	assert_int_equal(done, 99);
	req = start(100);
	complete(0, 0, 101);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -EPROTO);
	assert_int_equal(done, 0);
	req = start(100);
	complete(0, 7, 100);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -EPROTO);
	req = start(100);
	complete(0, -EHOSTDOWN, 40);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -EHOSTDOWN);
	assert_int_equal(done, 40);
	req = start(0);
	complete(0, 0, 0);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), 0);
	req = start(1ull << 40);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), 0);
	assert_int_equal(done, 1ull << 40);
	req = start(1);
	complete(0, -ENOMEM, 0);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -ENOBUFS);
}

static void test_wait(void **state)
{
	xnem_req a = start(1), b = start(2);
	uint64_t done;

	(void)state;
	assert_int_equal(xnem_test(ctx, a, NULL), -EINPROGRESS);
	assert_int_equal(xnem_wait(ctx, a, 0, NULL), -ETIMEDOUT);
	assert_int_equal(xnem_wait(ctx, a, 1000000, NULL), -ETIMEDOUT);
	complete(1, 0, -1);
	/* the end of the other one is kept for whoever asks */
	assert_int_equal(xnem_wait(ctx, a, 1000000, NULL), -ETIMEDOUT);
	assert_int_equal(xnem_test(ctx, b, &done), 0);
	assert_int_equal(done, 2);
	assert_int_equal(xnem_test(ctx, b, NULL), -EBADR);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), 0);
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -EBADR);
	assert_int_equal(xnem_wait(ctx, XNEM_REQ_NONE, 0, NULL), -EBADR);
	assert_int_equal(xnem_wait(ctx, UINT64_MAX, 0, NULL), -EBADR);
	/* the slot is used again, the old handle is not */
	b = start(3);
	assert_int_equal(xnem_wait(ctx, a, 0, NULL), -EBADR);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, b, 0, NULL), 0);
}

static void test_eintr(void **state)
{
	xnem_req a = start(1);

	(void)state;
	k.next_complete = EINTR;
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -EINTR);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), 0);
	/* a copy that waits by itself goes on */
	k.auto_complete = true;
	k.next_complete = EINTR;
	assert_int_equal(xnem_get(own, 0, &other, 0, 5, NULL), 0);
	k.next_submit = EINTR;
	assert_int_equal(xnem_get(own, 0, &other, 0, 5, NULL), 0);
	k.next_complete = EINTR;
	assert_int_equal(xnem_ping(ctx, SECOND, NULL), 0);
}

static void test_ping_timeout(void **state)
{
	uint64_t ns = 0;
	xnem_req a;

	(void)state;
	assert_int_equal(xnem_ping(ctx, 1000000, &ns), -ETIMEDOUT);
	/* its late end is nobody's */
	complete(0, 0, 0);
	a = start(1);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, SECOND, NULL), 0);
	k.auto_complete = true;
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(xnem_ping(ctx, SECOND, &ns), 0);
	assert_true(ns > 0);
}

/* a device that goes away ends everything that waits */
static void test_gone(void **state)
{
	xnem_req a = start(1);
	struct xnem_event e;

	(void)state;
	assert_int_equal(xnem_get_start(own, 0, &other, 0, 1, 5, NULL), 0);
	k.gone = true;
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -ENODEV);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), 1);
	assert_int_equal(e.status, -ENODEV);
	assert_int_equal(e.user_data, 5);
	assert_int_equal(xnem_get(own, 0, &other, 0, 1, NULL), -ENODEV);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), -ENODEV);
}

/* a request that the kernel has lost does not hang its waiter */
static void test_lost(void **state)
{
	xnem_req a = start(1);

	(void)state;
	k.nr_flight = 0;
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -EPROTO);
}

/* ---- batches ---- */

static void test_events(void **state)
{
	struct xnem_op ops[100];
	struct xnem_event e[100];
	bool seen[100] = { false };
	xnem_req a;

	(void)state;
	memset(ops, 0, sizeof(ops));
	for (unsigned int i = 0; i < 100; i++) {
		ops[i].kind = i % 2 ? XNEM_KIND_COPY : XNEM_KIND_PING;
		ops[i].user_data = i;
		ops[i].length = i % 2 ? i : 0;
		ops[i].src = other;
		ops[i].dst = other;
	}
	assert_int_equal(xnem_get_events(ctx, e, 1, 1, XNEM_FOREVER), -ENOENT);
	assert_int_equal(xnem_get_events(ctx, e, 0, 1, 0), 0);
	assert_int_equal(xnem_get_events(ctx, e, 2, 1, 0), -EINVAL);
	assert_int_equal(xnem_get_events(ctx, e, 0, 0, 0), -EINVAL);
	assert_int_equal(xnem_submit(ctx, ops, 0), 0);

	/* as many as there is room for, then EAGAIN */
	assert_int_equal(xnem_submit(ctx, ops, 100), 64);
	assert_int_equal(xnem_submit(ctx, ops, 100), -EAGAIN);
	assert_int_equal(k.nr_submit, 2);
	assert_int_equal(xnem_get_events(ctx, e, 1, 100, 1000000), -ETIMEDOUT);
	for (unsigned int i = 0; i < 10; i++)
		complete(3, 0, -1);
	assert_int_equal(xnem_get_events(ctx, e, 20, 100, 1000000), 10);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(e[i].status, 0);
		assert_int_equal(e[i].bytes, e[i].user_data % 2 ? e[i].user_data : 0);
		seen[e[i].user_data] = true;
	}
	a = start(1);
	while (k.nr_flight)
		complete(0, 0, -1);
	assert_int_equal(xnem_get_events(ctx, e, 54, 54, XNEM_FOREVER), 54);
	for (unsigned int i = 0; i < 54; i++) {
		assert_false(seen[e[i].user_data]);
		seen[e[i].user_data] = true;
	}
	assert_int_equal(xnem_get_events(ctx, e, 1, 100, XNEM_FOREVER), -ENOENT);
	assert_int_equal(xnem_wait(ctx, a, 0, NULL), 0);

	/* what comes before a wrong one is started */
	ops[5].kind = 9;
	assert_int_equal(xnem_submit(ctx, ops, 100), 5);
	assert_int_equal(xnem_submit(ctx, ops + 5, 1), -EINVAL);
	ops[5].kind = XNEM_KIND_PING;
	ops[5].flags = XNEM_OP_NOTIFY_DST;
	assert_int_equal(xnem_submit(ctx, ops + 5, 1), -EINVAL);
	while (k.nr_flight)
		complete(0, 0, -1);
	assert_int_equal(xnem_get_events(ctx, e, 5, 100, SECOND), 5);
}

static void test_fd(void **state)
{
	struct pollfd p = { .fd = xnem_fd(ctx), .events = POLLIN };
	struct xnem_event e;
	xnem_req a;

	(void)state;
	assert_true(p.fd >= 0);
	assert_int_equal(xnem_fd(ctx), p.fd);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* an event that a waiter's fetch has brought in is announced */
	a = start(1);
	assert_int_equal(xnem_get_start(own, 0, &other, 0, 1, 5, NULL), 0);
	complete(1, 0, -1);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, SECOND, NULL), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* and one that was left for lack of room */
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(xnem_get_start(own, 0, &other, 0, 1, 5, NULL), 0);
	complete(0, 0, -1);
	complete(0, 0, -1);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* ---- threads ---- */

struct waiter {
	pthread_t id;
	xnem_req req;
	uint64_t len;
	int result;
	uint64_t done;
};

static void *wait_for_one(void *arg)
{
	struct waiter *w = arg;

	w->result = xnem_wait(ctx, w->req, 20 * SECOND, &w->done);
	return NULL;
}

/* each waiter gets its own end, in whatever order they come */
static void test_waiters(void **state)
{
	struct waiter w[16];

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		w[i].len = i + 1;
		w[i].req = start(w[i].len);
		assert_int_equal(pthread_create(&w[i].id, NULL, wait_for_one, &w[i]), 0);
	}
	usleep(50000);
	/* the last first, one after the other: the fetcher has to go on or to
	 * hand over each time */
	while (k_flying()) {
		complete(k_flying() - 1, k_flying() % 2 ? -EFAULT : 0, -1);
		usleep(2000);
	}
	for (unsigned int i = 0; i < 16; i++) {
		pthread_join(w[i].id, NULL);
		assert_int_equal(w[i].result, (i + 1) % 2 ? -EFAULT : 0);
		assert_int_equal(w[i].done, w[i].len);
	}
	assert_int_equal(k.most_fetchers, 1);
}

/* a fetcher that leaves by its limit hands over */
static void test_handover(void **state)
{
	struct waiter w = { .len = 9 };
	xnem_req a = start(1);

	(void)state;
	w.req = start(w.len);
	assert_int_equal(pthread_create(&w.id, NULL, wait_for_one, &w), 0);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(xnem_wait(ctx, a, 3000000, NULL), -ETIMEDOUT);
	complete(1, 0, -1);
	pthread_join(w.id, NULL);
	assert_int_equal(w.result, 0);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, SECOND, NULL), 0);
}

static void *complete_all(void *arg)
{
	atomic_bool *stop = arg;

	while (!atomic_load(stop)) {
		pthread_mutex_lock(&k.lock);
		while (k.nr_flight)
			k_done(k.nr_flight / 2, 0, k.flight[k.nr_flight / 2].length);
		pthread_mutex_unlock(&k.lock);
		usleep(20);
	}
	return NULL;
}

static void *copy_much(void *arg)
{
	uint64_t *bad = arg;
	uint64_t done;
	xnem_req req;
	int err;

	for (unsigned int i = 1; i < 1500; i++) {
		err = xnem_get(own, 0, &other, 0, i, &done);
		if (err || done != i)
			++*bad;
		while ((err = xnem_put_start(own, 0, &other, 0, i, 0, &req)) == -EAGAIN)
			usleep(10);
		while (!err && (err = xnem_wait(ctx, req, 10000, &done)) == -ETIMEDOUT)
			err = 0;
		if (err || done != i)
			++*bad;
	}
	return NULL;
}

/* copies, handles and events from many threads, with little room */
static void test_storm(void **state)
{
	static atomic_bool stop;
	uint64_t bad[4] = { 0 }, sum = 0, started = 0, ended = 0;
	pthread_t completer, id[4];
	struct xnem_event e[16];
	int n;

	(void)state;
	atomic_store(&stop, false);
	k.max_inflight = 5;
	assert_int_equal(pthread_create(&completer, NULL, complete_all, &stop), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, copy_much, &bad[i]), 0);
	while (ended < 2000) {
		if (started < 2000) {
			n = xnem_get_start(own, 0, &other, 0, 3, started, NULL);
			if (!n)
				started++;
			else
				assert_int_equal(n, -EAGAIN);
		}
		n = xnem_get_events(ctx, e, started - ended > 3, 16, SECOND);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			sum += e[i].user_data;
		ended += (unsigned int)n;
	}
	assert_int_equal(sum, 1999000);
	for (unsigned int i = 0; i < 4; i++) {
		pthread_join(id[i], NULL);
		assert_int_equal(bad[i], 0);
	}
	atomic_store(&stop, true);
	pthread_join(completer, NULL);
	assert_int_equal(k.most_fetchers, 1);
}

/* ---- fork ---- */

static void test_fork(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct xnem_device_info info;
		struct xnem_region *r;
		struct xnem_event e;
		xnem_req req;
		int bad = 0;

		k.auto_complete = true;
		bad |= xnem_get_info(ctx, &info) != -EPERM;
		bad |= xnem_register(ctx, memory, 1, XNEM_READ, &r) != -EPERM;
		bad |= xnem_deregister(own) != -EPERM;
		bad |= xnem_get(own, 0, &other, 0, 1, NULL) != -EPERM;
		bad |= xnem_put_start(own, 0, &other, 0, 1, 0, &req) != -EPERM;
		bad |= xnem_copy(ctx, &other, 0, &other, 0, 1, NULL) != -EPERM;
		bad |= xnem_submit(ctx, NULL, 0) != -EPERM;
		bad |= xnem_get_events(ctx, &e, 0, 1, 0) != -EPERM;
		bad |= xnem_wait(ctx, 1, 0, NULL) != -EPERM;
		bad |= xnem_test(ctx, 1, NULL) != -EPERM;
		bad |= xnem_fd(ctx) != -EPERM;
		bad |= xnem_ping(ctx, 1, NULL) != -EPERM;
		bad |= xnem_reachable(ctx, &other) != -EPERM;
		bad |= xnem_close(ctx) != 0;
		bad |= k.nr_deregister != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	k.auto_complete = true;
	assert_int_equal(xnem_get(own, 0, &other, 0, 1, NULL), 0);
}

/* ---- text ---- */

static void test_text(void **state)
{
	(void)state;
	assert_string_equal(xnem_errname(-EXDEV), "EXDEV");
	assert_string_equal(xnem_errname(ENOENT), "ENOENT");
	assert_string_equal(xnem_errname(0), "OK");
	assert_string_equal(xnem_errname(-12345), "E?");
	assert_string_equal(xnem_errname(INT32_MIN), "E?");
	assert_string_equal(xnem_strerror(-EXDEV), xnem_strerror(EXDEV));
	assert_string_equal(xnem_version(), XNEM_VERSION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_open),	 TEST(test_cookie_text), TEST(test_fabric),
		TEST(test_new_life),	 TEST(test_register),	 TEST(test_close),
		TEST(test_short),	 TEST(test_wait),	 TEST(test_eintr),
		TEST(test_ping_timeout), TEST(test_gone),	 TEST(test_lost),
		TEST(test_events),	 TEST(test_fd),		 TEST(test_waiters),
		TEST(test_handover),	 TEST(test_storm),	 TEST(test_fork),
		TEST(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
