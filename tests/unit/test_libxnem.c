// SPDX-License-Identifier: MIT
/*
 * libxnem over a fake kernel (ioctl is wrapped): what the library itself adds.
 *
 * The fake completes a request when a test says so, or at once (auto).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/xnem.h>

#include "../../libxnem/src/wire.h"
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
	/* the context's pages, if the device has any */
	uint32_t pages_bytes, inbox_slots;
	unsigned char *pages;
	uint32_t cpage_prod, inbox_prod;
	/* the backend keeps this entry back, or wakes up for nothing */
	bool mute, spurious;
	/* last arguments */
	struct xnem_register reg;
	struct xnem_seg segs[16];
	struct xnem_cache_get cache_get;
	struct xnem_submit_req sent[MAX];
	unsigned int nr_sent;
	uint32_t put;
	uint64_t limit_pages;
	int eventfd;
	int next_cache_get, next_cancel;
	bool hit;
	uint64_t cancelled[64];
	unsigned int nr_cancelled;
	uint64_t refuse_addr;
	/* the library's so manieth look at the clock finds that in the inbox */
	unsigned int clock_looks;
	uint32_t clock_kind;
} k;

static struct xnem_context_control *k_control(void)
{
	return (void *)k.pages;
}

static struct xnem_inbox_slot *k_inbox(uint32_t i)
{
	return (struct xnem_inbox_slot *)(k.pages + 8192) + i % k.inbox_slots;
}

/* k.lock is held; false: no room */
static bool k_deliver(uint32_t kind, uint64_t value, const void *data, uint64_t bytes)
{
	struct xnem_inbox_slot *slot = k_inbox(k.inbox_prod);
	uint32_t cons = __atomic_load_n(&k_control()->inbox_cons, __ATOMIC_ACQUIRE);

	if (k.inbox_prod - cons >= k.inbox_slots)
		return false;
	slot->value = value;
	slot->bytes = bytes;
	slot->from.id = 7;
	slot->from.key = 8;
	slot->tag = 1000;
	slot->domid = 3;
	memset(slot->data, 0, sizeof(slot->data));
	if (data)
		memcpy(slot->data, data, bytes);
	slot->kind = kind;
	__atomic_store_n(&slot->seq, ++k.inbox_prod, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&k.changed);
	return true;
}

static bool deliver(uint32_t kind, uint64_t value, const void *data, uint64_t bytes)
{
	bool room;

	pthread_mutex_lock(&k.lock);
	room = k_deliver(kind, value, data, bytes);
	pthread_mutex_unlock(&k.lock);
	return room;
}

static uint32_t k_status(int status)
{
	switch (status) {
	case 0:
		return XNEM_ST_OK;
	case -EBUSY:
		return XNEM_ST_BUSY;
	case -EFAULT:
		return XNEM_ST_FAULT;
	case -ECANCELED:
		return XNEM_ST_CANCELLED;
	default:
		return XNEM_ST_COOKIE;
	}
}

static void k_done(unsigned int i, int status, uint64_t bytes)
{
	if (k.flight[i].flags & XNEM_SUBMIT_CPAGE) {
		struct xnem_cpage_entry *e = (struct xnem_cpage_entry *)(k.pages + 4096) +
					     k.cpage_prod % XNEM_CPAGE_ENTRIES;

		k.cpage_prod++;
		e->user_data = k.flight[i].user_data;
		e->bytes_done = bytes;
		e->status = k_status(status);
		if (!k.mute)
			__atomic_store_n(&e->seq, k.cpage_prod, __ATOMIC_RELEASE);
		goto out;
	}
	k.done[k.nr_done++] = (struct xnem_complete){
		.user_data = k.flight[i].user_data,
		.bytes_done = bytes,
		.status = status,
	};
out:
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
		if (k.refuse_addr && q[s->submitted].dst_offset == k.refuse_addr) {
			e = EFAULT;
			break;
		}
		k.sent[k.nr_sent++ % MAX] = q[s->submitted];
		k.flight[k.nr_flight++] = q[s->submitted];
		if (k.auto_complete)
			k_done(k.nr_flight - 1, 0, q[s->submitted].length);
	}
	return s->submitted ? 0 : e ? e : EAGAIN;
}

static bool k_news(const struct xnem_get_completions *g)
{
	return ((g->flags & XNEM_COMPLETE_CPAGE) && k.cpage_prod != g->cpage_seen) ||
	       ((g->flags & XNEM_COMPLETE_INBOX) && k.inbox_prod != g->inbox_seen);
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
	while (k.nr_done < g->min_count && (k.nr_flight || g->flags & XNEM_COMPLETE_INBOX) &&
	       k.connected && g->timeout_ns && !e && !k.gone && !k.next_complete && !k_news(g) &&
	       !k.spurious)
		e = g->timeout_ns < 0 ? pthread_cond_wait(&k.changed, &k.lock) :
					pthread_cond_timedwait(&k.changed, &k.lock, &until);
	k.fetchers--;
	if (k.next_complete)
		return take(&k.next_complete);
	g->count = k.nr_done < g->max_count ? k.nr_done : g->max_count;
	if (!g->count && k.gone)
		return ENODEV;
	if (g->flags & XNEM_COMPLETE_INBOX && k.spurious) {
		k.spurious = false;
		return 0;
	}
	if (!g->count && g->min_count && !k_news(g))
		return k.nr_flight || (g->flags & XNEM_COMPLETE_INBOX && k.connected) ? ETIME :
											ENOENT;
	memcpy((void *)(uintptr_t)g->completions, k.done, g->count * sizeof(k.done[0]));
	k.nr_done -= g->count;
	memmove(k.done, k.done + g->count, k.nr_done * sizeof(k.done[0]));
	return 0;
}

static int k_call(unsigned long call, void *arg)
{
	struct xnem_register *r = arg;
	struct xnem_cache_get *get = arg;
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
		info->pages_bytes = k.pages_bytes;
		info->inbox_slots = k.inbox_slots;
		info->max_segments = 16;
		info->windows = 2;
		info->window_pages = 256;
		info->queues = 3;
		if (k.pages && k.inbox_slots) {
			info->address.id = 0x55;
			info->address.key = 0x66;
		}
		return 0;
	case XNEM_IOC_CACHE_GET:
		k.cache_get = *get;
		get->limit = k.limit;
		e = take(&k.next_cache_get);
		if (e)
			return e;
		get->handle = 44;
		get->cookie.id = 0x123;
		get->cookie.key = 0x456;
		get->offset = get->addr & 4095;
		get->hit = k.hit;
		return 0;
	case XNEM_IOC_CACHE_PUT:
		k.put = ((struct xnem_cache_put *)arg)->handle;
		return k.put == 44 ? 0 : EINVAL;
	case XNEM_IOC_CACHE_LIMIT:
		k.limit_pages = ((struct xnem_cache_limit *)arg)->max_pages;
		return 0;
	case XNEM_IOC_CANCEL:
		e = take(&k.next_cancel);
		if (e)
			return e;
		for (unsigned int i = 0; i < k.nr_flight; i++)
			if (k.flight[i].user_data == ((struct xnem_cancel *)arg)->user_data) {
				k.cancelled[k.nr_cancelled++ % 64] = k.flight[i].user_data;
				return 0;
			}
		return ENOENT;
	case XNEM_IOC_EVENTFD:
		k.eventfd = ((struct xnem_eventfd *)arg)->fd;
		return 0;
	case XNEM_IOC_STATS:
		((struct xnem_stats *)arg)->requests = 5;
		((struct xnem_stats *)arg)->windows = 6;
		return 0;
	case XNEM_IOC_REGISTER:
		k.reg = *r;
		for (unsigned int i = 0; i < r->nr_segments && i < 16; i++)
			k.segs[i] = ((struct xnem_seg *)(uintptr_t)r->addr)[i];
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

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0)
		return __real_mmap(addr, len, prot, flags, fd, offset);
	assert_int_equal(len, k.pages_bytes);
	assert_int_equal(prot, PROT_READ | PROT_WRITE);
	assert_int_equal(flags, MAP_SHARED);
	assert_int_equal(offset, 0);
	if (k.pages) {
		errno = EBUSY;
		return MAP_FAILED;
	}
	k.pages = __real_mmap(NULL, len, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return k.pages;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id == CLOCK_MONOTONIC && k.clock_looks && !--k.clock_looks)
		deliver(k.clock_kind, 1, "x", 1);
	return __real_clock_gettime(id, ts);
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

static int setup_device(uint32_t pages_bytes, uint32_t inbox_slots)
{
	memset(&k, 0, sizeof(k));
	k.pages_bytes = pages_bytes;
	k.inbox_slots = inbox_slots;
	k.eventfd = -2;
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

static int setup(void **state)
{
	(void)state;
	return setup_device(0, 0);
}

/* with an inbox of 8 slots */
static int setup_inbox(void **state)
{
	(void)state;
	return setup_device(3 * 4096, 8);
}

static int setup_page(void **state)
{
	(void)state;
	return setup_device(2 * 4096, 0);
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

/* ---- the context's pages ---- */

static uint64_t syscalls(void)
{
	struct xnem_counts counts;

	assert_int_equal(xnem_get_counts(ctx, &counts), 0);
	assert_int_equal(counts.requests, 5);
	assert_int_equal(counts.windows, 6);
	return counts.syscalls;
}

/* looking costs no system call; what was read is told to the kernel */
static void test_page(void **state)
{
	struct xnem_event e[200];
	uint64_t before, done;
	xnem_req a, many[XNEM_CPAGE_ENTRIES + 10];

	(void)state;
	a = start(10);
	assert_true(k.sent[0].flags & XNEM_SUBMIT_CPAGE);
	before = syscalls();
	for (unsigned int i = 0; i < 200; i++) {
		assert_int_equal(xnem_test(ctx, a, NULL), -EINPROGRESS);
		assert_int_equal(xnem_get_events(ctx, e, 0, 1, 0), 0);
	}
	complete(0, 0, -1);
	assert_int_equal(xnem_test(ctx, a, &done), 0);
	assert_int_equal(done, 10);
	assert_int_equal(syscalls(), before + 1);
	assert_int_equal(k_control()->cpage_cons, 1);
	/* a descriptor to poll changes nothing about that */
	assert_true(xnem_fd(ctx) >= 0);
	/* no more on the page than it holds */
	k.max_inflight = 300;
	for (unsigned int i = 0; i < XNEM_CPAGE_ENTRIES + 10; i++)
		many[i] = start(i);
	for (unsigned int i = 0; i < XNEM_CPAGE_ENTRIES + 10; i++)
		assert_int_equal(!!(k.sent[i + 1].flags & XNEM_SUBMIT_CPAGE),
				 i < XNEM_CPAGE_ENTRIES);
	while (k.nr_flight)
		complete(k.nr_flight - 1, 0, -1);
	for (unsigned int i = 0; i < XNEM_CPAGE_ENTRIES + 10; i++)
		assert_int_equal(xnem_wait(ctx, many[i], SECOND, NULL), 0);
	assert_int_equal(k_control()->cpage_cons, XNEM_CPAGE_ENTRIES + 1);
	/* what sleeps in the kernel finds it there, too */
	k.auto_complete = true;
	assert_int_equal(xnem_get(own, 0, &other, 0, 3, &done), 0);
	assert_int_equal(done, 3);
}

/* one who is polled in vain learns of the end of the device */
static void test_page_gone(void **state)
{
	xnem_req a = start(10);
	int err = 0;

	(void)state;
	k.gone = true;
	for (unsigned int i = 0; i < 3000 && (!err || err == -EINPROGRESS); i++)
		err = xnem_test(ctx, a, NULL);
	assert_int_equal(err, -ENODEV);
}

/* a backend that counts an end and does not write it */
static void test_page_mute(void **state)
{
	xnem_req a = start(10);

	(void)state;
	k.mute = true;
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -EPROTO);
}

/* lost in the kernel, although that also waits for the inbox */
static void test_inbox_lost(void **state)
{
	struct xnem_event e;
	xnem_req a = start(1);

	(void)state;
	k.nr_flight = 0;
	assert_int_equal(xnem_wait(ctx, a, XNEM_FOREVER, NULL), -EPROTO);
	assert_int_equal(xnem_get_start(own, 0, &other, 0, 1, 5, NULL), 0);
	k.nr_flight = 0;
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), 1);
	assert_int_equal(e.status, -EPROTO);
	/* woken up for nothing, that is no end */
	assert_int_equal(xnem_get_start(own, 0, &other, 0, 1, 5, NULL), 0);
	k.spurious = true;
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, 20000000), -ETIMEDOUT);
	complete(0, 0, -1);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), 1);
	assert_int_equal(e.status, 0);
}

static void test_no_inbox(void **state)
{
	struct xnem_device_info info;
	struct xnem_address address;
	struct xnem_message m;
	struct xnem_event e;

	(void)state;
	assert_int_equal(xnem_get_address(ctx, &address), -EOPNOTSUPP);
	assert_int_equal(xnem_recv(ctx, &m, 0), -EOPNOTSUPP);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), -ENOENT);
	assert_int_equal(xnem_get_info(ctx, &info), 0);
	assert_int_equal(info.inbox_slots, 0);
	assert_int_equal(info.max_segments, 16);
	assert_int_equal(info.windows, 2);
	assert_int_equal(info.window_pages, 256);
	assert_int_equal(info.queues, 3);
}

static void test_messages(void **state)
{
	static const struct xnem_address none;
	struct xnem_address address, far;
	struct xnem_message m;
	struct xnem_event e;
	uint64_t before;

	(void)state;
	assert_int_equal(xnem_get_address(ctx, &address), 0);
	assert_memory_not_equal(&address, &none, sizeof(none));
	assert_int_equal(xnem_recv(ctx, &m, 0), -EAGAIN);
	assert_int_equal(xnem_recv(ctx, &m, 1000000), -ETIMEDOUT);
	assert_true(deliver(XNEM_INBOX_MESSAGE, 0, "hello", 5));
	before = syscalls();
	assert_int_equal(xnem_recv(ctx, &m, 0), 0);
	assert_int_equal(syscalls(), before + 1);
	assert_int_equal(m.length, 5);
	assert_memory_equal(m.data, "hello\0\0\0", 8);
	assert_int_equal(m.tag, 1000);
	assert_int_equal(m.domid, 3);
	assert_int_equal(m.from.bytes[0], 7);
	assert_int_equal(m.from.bytes[8], 8);
	assert_memory_equal(m.from.bytes + 16, address.bytes + 16, 8);
	assert_int_equal(k_control()->inbox_cons, 1);

	/* the two kinds do not get into each other's way, but share the room */
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(deliver(XNEM_INBOX_NOTIFY, 100 + i, NULL, 4096));
		assert_true(deliver(XNEM_INBOX_MESSAGE, 0, &i, sizeof(i)));
	}
	assert_false(deliver(XNEM_INBOX_MESSAGE, 0, NULL, 0));
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(xnem_recv(ctx, &m, XNEM_FOREVER), 0);
		assert_memory_equal(m.data, &i, sizeof(i));
	}
	/* the oldest notification holds all up */
	assert_int_equal(k_control()->inbox_cons, 1);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), 1);
		assert_int_equal(e.kind, XNEM_EVENT_NOTIFY);
		assert_int_equal(e.user_data, 100 + i);
		assert_int_equal(e.bytes, 4096);
		assert_int_equal(e.status, 0);
	}
	assert_int_equal(k_control()->inbox_cons, 8);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, 1000000), -ETIMEDOUT);
	assert_int_equal(xnem_recv(ctx, &m, XNEM_FOREVER), 0);
	assert_int_equal(k_control()->inbox_cons, 9);
	assert_int_equal(xnem_recv(ctx, &m, 0), -EAGAIN);

	/* many times around */
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(deliver(i % 3 ? XNEM_INBOX_MESSAGE : XNEM_INBOX_NOTIFY, i, &i, 4));
		if (i % 3)
			assert_int_equal(xnem_recv(ctx, &m, 0), 0);
		else
			assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 1);
		assert_int_equal(k_control()->inbox_cons, 10 + i);
	}

	k.auto_complete = true;
	assert_int_equal(xnem_send(ctx, &address, "abc", 3, 0), 0);
	assert_int_equal(k.sent[0].op, XNEM_REQ_OP_MESSAGE);
	assert_int_equal(k.sent[0].length, 3);
	assert_int_equal(k.sent[0].dst.id, 0x55);
	assert_int_equal(xnem_send(ctx, &address, memory, 65, 0), -EMSGSIZE);
	far = address;
	far.bytes[16] ^= 1;
	assert_int_equal(xnem_send(ctx, &far, "abc", 3, 0), -EXDEV);
}

static void *complete_busy(void *arg)
{
	atomic_int *n = arg;

	while (atomic_load(n) > 0) {
		pthread_mutex_lock(&k.lock);
		if (k.nr_flight)
			k_done(0, atomic_fetch_sub(n, 1) == 1 ? 0 : -EBUSY, 0);
		pthread_mutex_unlock(&k.lock);
		usleep(100);
	}
	return NULL;
}

static void test_send_busy(void **state)
{
	struct xnem_address address;
	atomic_int n = 1000000;
	pthread_t id;

	(void)state;
	assert_int_equal(xnem_get_address(ctx, &address), 0);
	assert_int_equal(pthread_create(&id, NULL, complete_busy, &n), 0);
	assert_int_equal(xnem_send(ctx, &address, "a", 1, 0), -EBUSY);
	assert_int_equal(xnem_send(ctx, &address, "a", 1, 5000000), -EBUSY);
	atomic_store(&n, 5);
	assert_int_equal(xnem_send(ctx, &address, "a", 1, XNEM_FOREVER), 0);
	pthread_join(id, NULL);
}

static void *deliver_late(void *arg)
{
	usleep(20000);
	deliver((uint32_t)(uintptr_t)arg, 1, "x", 1);
	return NULL;
}

static void *recv_one(void *arg)
{
	return (void *)(intptr_t)xnem_recv(ctx, arg, 20 * SECOND);
}

/* asleep in the kernel, and behind somebody who is */
static void test_inbox_sleep(void **state)
{
	struct xnem_message m;
	struct waiter w = { .len = 9 };
	pthread_t id, receiver;
	struct xnem_event e;
	void *ret;

	(void)state;
	pthread_create(&id, NULL, deliver_late, (void *)(uintptr_t)XNEM_INBOX_NOTIFY);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), 1);
	pthread_join(id, NULL);
	/*
	 * The first time that threads meet, the one who waits for a request is
	 * not woken up for the inbox; from then on it is.
	 */
	for (unsigned int i = 0; i < 3; i++) {
		w.req = start(w.len);
		assert_int_equal(pthread_create(&w.id, NULL, wait_for_one, &w), 0);
		usleep(5000);
		assert_int_equal(pthread_create(&receiver, NULL, recv_one, &m), 0);
		pthread_create(&id, NULL, deliver_late, (void *)(uintptr_t)XNEM_INBOX_MESSAGE);
		pthread_join(id, NULL);
		if (!i)
			complete(0, 0, -1);
		pthread_join(receiver, &ret);
		assert_null(ret);
		if (i)
			complete(0, 0, -1);
		pthread_join(w.id, NULL);
		assert_int_equal(w.result, 0);
	}
	assert_int_equal(k.most_fetchers, 1);
}

/* what comes in between the look and the sleep is not slept over */
static void test_inbox_race(void **state)
{
	struct timespec before, after;
	struct xnem_message m;
	struct xnem_event e;

	(void)state;
	__real_clock_gettime(CLOCK_MONOTONIC, &before);
	for (unsigned int i = 1; i < 6; i++) {
		k.clock_kind = XNEM_INBOX_MESSAGE;
		k.clock_looks = i;
		assert_int_equal(xnem_recv(ctx, &m, 3 * SECOND), 0);
		k.clock_kind = XNEM_INBOX_NOTIFY;
		k.clock_looks = i;
		assert_int_equal(xnem_get_events(ctx, &e, 1, 1, 3 * SECOND), 1);
	}
	__real_clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec - before.tv_sec < 3);
}

/* the inbox ends with its backend; what is in it can be read */
static void test_inbox_end(void **state)
{
	struct xnem_address address;
	struct xnem_message m;
	struct xnem_event e;

	(void)state;
	assert_true(deliver(XNEM_INBOX_MESSAGE, 0, "y", 1));
	k.connected = false;
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), -ENOTCONN);
	/* said once */
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), -ENOENT);
	assert_int_equal(xnem_recv(ctx, &m, XNEM_FOREVER), 0);
	assert_int_equal(xnem_recv(ctx, &m, XNEM_FOREVER), -ENOTCONN);
	k.connected = true;
	k.fabric = 0xfab3;
	assert_int_equal(xnem_recv(ctx, &m, XNEM_FOREVER), -ENOTCONN);
	assert_int_equal(xnem_get_address(ctx, &address), -ENOTCONN);
}

/* the same, for one who only looks */
static void test_inbox_end_polled(void **state)
{
	struct xnem_message m;
	struct xnem_event e;
	int err = -EAGAIN;

	(void)state;
	k.fabric = 0xfab4;
	for (unsigned int i = 0; i < 3000 && err == -EAGAIN; i++)
		err = xnem_recv(ctx, &m, 0);
	assert_int_equal(err, -ESTALE);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), -ESTALE);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 0);
}

/* ---- operations' flags ---- */

static void test_op_flags(void **state)
{
	struct xnem_op op = { .kind = XNEM_KIND_COPY, .length = 100, .src = other, .dst = other };
	const uint32_t all[] = { XNEM_OP_FENCE,	  XNEM_OP_NOTIFY_SRC, XNEM_OP_NOTIFY_DST,
				 XNEM_OP_BOUNDED, XNEM_OP_SRC_ADDR,   XNEM_OP_DST_ADDR };
	const uint32_t kernel[] = { XNEM_SUBMIT_FENCE,	    XNEM_SUBMIT_NOTIFY_SRC,
				    XNEM_SUBMIT_NOTIFY_DST, XNEM_SUBMIT_BOUNDED,
				    XNEM_SUBMIT_SRC_ADDR,   XNEM_SUBMIT_DST_ADDR };
	struct xnem_event e;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		op.flags = all[i];
		op.immediate = i == 1 || i == 2 ? 77 : 0;
		op.src = op.dst = other;
		if (all[i] == XNEM_OP_SRC_ADDR) {
			assert_int_equal(xnem_submit(ctx, &op, 1), -EINVAL);
			memset(&op.src, 0, sizeof(op.src));
		}
		if (all[i] == XNEM_OP_DST_ADDR) {
			assert_int_equal(xnem_submit(ctx, &op, 1), -EINVAL);
			memset(&op.dst, 0, sizeof(op.dst));
		}
		assert_int_equal(xnem_submit(ctx, &op, 1), 1);
		assert_int_equal(k.sent[i].flags, kernel[i]);
		assert_int_equal(k.sent[i].immediate, op.immediate);
		/* short success is right with BOUNDED alone */
		complete(0, 0, 99);
		assert_int_equal(xnem_get_events(ctx, &e, 1, 1, SECOND), 1);
		assert_int_equal(e.status, all[i] == XNEM_OP_BOUNDED ? 0 : -EPROTO);
		assert_int_equal(e.bytes, 99);
	}
	op.src = op.dst = other;
	op.flags = 1u << 6;
	assert_int_equal(xnem_submit(ctx, &op, 1), -EINVAL);
	op.flags = 0;
	op.immediate = 1;
	assert_int_equal(xnem_submit(ctx, &op, 1), -EINVAL);
	/* copied, but the owner was not told */
	op.flags = XNEM_OP_NOTIFY_DST;
	assert_int_equal(xnem_submit(ctx, &op, 1), 1);
	complete(0, -EBUSY, 100);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, SECOND), 1);
	assert_int_equal(e.status, -EBUSY);
	assert_int_equal(e.bytes, 100);

	op = (struct xnem_op){ .kind = XNEM_KIND_MESSAGE, .dst = other, .length = 65 };
	op.src_offset = (uintptr_t)memory;
	assert_int_equal(xnem_submit(ctx, &op, 1), -EMSGSIZE);
	op.length = 64;
	op.flags = XNEM_OP_FENCE;
	assert_int_equal(xnem_submit(ctx, &op, 1), 1);
	complete(0, 0, 0);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, SECOND), 1);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.bytes, 64);
	op.flags = XNEM_OP_BOUNDED;
	assert_int_equal(xnem_submit(ctx, &op, 1), -EINVAL);

	/* which memory was short */
	op = (struct xnem_op){ .kind = XNEM_KIND_COPY, .dst = other, .length = 5 };
	op.flags = XNEM_OP_SRC_ADDR;
	k.next_submit = ENOMEM;
	assert_int_equal(xnem_submit(ctx, &op, 1), -ENOBUFS);
	assert_int_equal(k.put, 44);
	k.next_submit = ENOMEM;
	k.next_cache_get = ENOMEM;
	k.limit = 1;
	assert_int_equal(xnem_submit(ctx, &op, 1), -ENOMEM);
}

/* a page that the kernel does not know any more is done without; others' errors stay theirs */
static void test_page_left(void **state)
{
	xnem_req req;

	(void)state;
	k.next_submit = EINVAL;
	req = start(1);
	assert_false(k.sent[0].flags & XNEM_SUBMIT_CPAGE);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, req, SECOND, NULL), 0);
	req = start(1);
	assert_false(k.sent[1].flags & XNEM_SUBMIT_CPAGE);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, req, SECOND, NULL), 0);
}

/* ---- cache, segments ---- */

static void test_cache(void **state)
{
	struct xnem_use use = { 0 };
	unsigned int infos;
	struct xnem *c;

	(void)state;
	assert_int_equal(xnem_cache_get(ctx, memory + 5, 10, XNEM_READ | XNEM_ANY_USER, &use), 0);
	assert_int_equal(k.cache_get.addr, (uintptr_t)memory + 5);
	assert_int_equal(k.cache_get.length, 10);
	assert_int_equal(k.cache_get.access, XNEM_REG_READ);
	assert_int_equal(k.cache_get.flags, XNEM_REG_ANY_USER);
	assert_int_equal(xnem_cookie_fabric(&use.cookie), 0xfab1);
	assert_int_equal(use.offset, ((uintptr_t)memory + 5) & 4095);
	assert_int_equal(use.hit, 0);
	k.hit = true;
	infos = k.nr_info;
	assert_int_equal(xnem_cache_get(ctx, memory, 10, XNEM_WRITE, &use), 0);
	assert_int_equal(k.nr_info, infos);
	assert_int_equal(use.hit, 1);
	assert_int_equal(xnem_cache_put(ctx, &use), 0);
	assert_int_equal(k.put, 44);
	use.handle = 45;
	assert_int_equal(xnem_cache_put(ctx, &use), -EINVAL);
	assert_int_equal(xnem_cache_get(ctx, memory, 10, XNEM_ONCE | XNEM_READ, &use), -EINVAL);
	k.next_cache_get = ENOMEM;
	assert_int_equal(xnem_cache_get(ctx, memory, 10, XNEM_READ, &use), -ENOBUFS);
	k.next_cache_get = ENOMEM;
	k.limit = 1;
	assert_int_equal(xnem_cache_get(ctx, memory, 10, XNEM_READ, &use), -ENOMEM);

	assert_int_equal(xnem_cache_limit(ctx, 8192), 0);
	assert_int_equal(k.limit_pages, 2);
	assert_int_equal(xnem_cache_limit(ctx, UINT64_MAX), 0);
	assert_true(k.limit_pages == UINT64_MAX);
	setenv("XNEM_CACHE_BYTES", "40960", 1);
	assert_int_equal(xnem_open("/dev/null", &c), 0);
	assert_int_equal(k.limit_pages, 10);
	assert_int_equal(xnem_close(c), 0);
	setenv("XNEM_CACHE_BYTES", "much", 1);
	assert_int_equal(xnem_open("/dev/null", &c), 0);
	assert_int_equal(k.limit_pages, 10);
	assert_int_equal(xnem_close(c), 0);
	unsetenv("XNEM_CACHE_BYTES");
}

static void test_registerv(void **state)
{
	struct iovec iov[4] = { { memory + 100, 10 }, { NULL, 0 }, { memory, 20 }, { memory, 3 } };
	struct xnem_region *r = NULL;

	(void)state;
	assert_int_equal(xnem_registerv(ctx, iov, 4, XNEM_READ | XNEM_ONCE, &r), 0);
	assert_int_equal(k.reg.nr_segments, 3);
	assert_int_equal(k.reg.length, 33);
	assert_int_equal(k.reg.flags, XNEM_REG_ONCE);
	assert_int_equal(k.segs[1].addr, (uintptr_t)memory);
	assert_int_equal(k.segs[1].length, 20);
	assert_ptr_equal(xnem_region_addr(r), memory + 100);
	assert_int_equal(xnem_region_length(r), 33);
	assert_int_equal(xnem_deregister(r), 0);
	assert_int_equal(xnem_registerv(ctx, iov, 2, XNEM_READ | XNEM_WINDOWED, &r), 0);
	assert_int_equal(k.reg.nr_segments, 0);
	assert_int_equal(k.reg.flags, XNEM_REG_WINDOWED);
	assert_int_equal(k.reg.addr, (uintptr_t)memory + 100);
	assert_int_equal(xnem_deregister(r), 0);
	assert_int_equal(xnem_registerv(ctx, iov, 0, XNEM_READ, &r), -EINVAL);
	iov[1].iov_len = SIZE_MAX - 15;
	assert_int_equal(xnem_registerv(ctx, iov, 4, XNEM_READ, &r), -EINVAL);
}

/* ---- vectors ---- */

static void test_vector(void **state)
{
	struct iovec iov[100];
	struct xnem_event e;
	uint64_t done, sum = 0;
	xnem_req req;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		iov[i] = (struct iovec){ memory + 100 * i, i % 10 };
		sum += i % 10;
	}
	/* 90 pieces are not empty; 64 fit */
	assert_int_equal(xnem_getv_start(ctx, iov, 100, &other, 1000, 0, &req), 0);
	assert_int_equal(k.nr_flight, 64);
	assert_int_equal(k.sent[0].flags & ~XNEM_SUBMIT_CPAGE, XNEM_SUBMIT_DST_ADDR);
	assert_int_equal(k.sent[0].dst_offset, (uintptr_t)memory + 100);
	assert_int_equal(k.sent[1].src_offset, 1001);
	assert_int_equal(k.sent[1].length, 2);
	assert_int_equal(k.sent[0].dst.id, 0);
	assert_int_equal(k.sent[0].src.key, 0x99aabbccddeeff01);
	assert_int_equal(xnem_test(ctx, req, &done), -EINPROGRESS);
	for (unsigned int i = 0; i < 64; i++)
		complete(k.nr_flight / 2, 0, -1);
	assert_int_equal(xnem_test(ctx, req, &done), -EINPROGRESS);
	assert_int_equal(k.nr_flight, 26);
	while (k.nr_flight)
		complete(0, 0, -1);
	assert_int_equal(xnem_test(ctx, req, &done), 0);
	assert_int_equal(done, sum);
	assert_int_equal(k.sent[89].src_offset, 1000 + sum - 9);
	assert_int_equal(xnem_test(ctx, req, &done), -EBADR);

	/* the failure nearest to the start is that of the whole */
	assert_int_equal(xnem_putv_start(ctx, iov, 6, &other, 0, 78, NULL), 0);
	assert_int_equal(k.nr_flight, 5);
	assert_int_equal(k.flight[1].dst_offset, 1);
	assert_int_equal(k.flight[1].src_offset, (uintptr_t)memory + 200);
	complete(4, -EACCES, 0);
	complete(3, 0, -1);
	complete(2, -EFAULT, 2);
	complete(1, 0, -1);
	assert_int_equal(xnem_get_events(ctx, &e, 0, 1, 0), 0);
	complete(0, 0, -1);
	assert_int_equal(xnem_get_events(ctx, &e, 1, 1, SECOND), 1);
	assert_int_equal(e.user_data, 78);
	assert_int_equal(e.status, -EFAULT);
	assert_int_equal(e.bytes, 5);
	if (!k.inbox_slots)
		assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), -ENOENT);

	/* a piece that is refused ends the rest; the first one, all */
	k.refuse_addr = (uintptr_t)memory + 300;
	assert_int_equal(xnem_getv_start(ctx, iov, 6, &other, 0, 0, &req), 0);
	assert_int_equal(k.nr_flight, 2);
	complete(0, 0, -1);
	complete(0, 0, -1);
	assert_int_equal(xnem_wait(ctx, req, SECOND, &done), -EFAULT);
	assert_int_equal(done, 3);
	k.refuse_addr = (uintptr_t)memory + 100;
	assert_int_equal(xnem_getv_start(ctx, iov, 6, &other, 0, 0, NULL), -EFAULT);
	if (!k.inbox_slots)
		assert_int_equal(xnem_get_events(ctx, &e, 1, 1, XNEM_FOREVER), -ENOENT);
	k.refuse_addr = 0;
	k.auto_complete = true;
	assert_int_equal(xnem_getv(ctx, iov, 100, &other, 0, &done), 0);
	assert_int_equal(done, sum);
	assert_int_equal(xnem_putv(ctx, iov, 1, &other, 0, &done), -EINVAL);
	assert_int_equal(xnem_putv(ctx, iov, 1025, &other, 0, &done), -EINVAL);
	assert_int_equal(xnem_putv(ctx, iov, 5, &other, UINT64_MAX, &done), -EINVAL);
}

/* no room of one's own making: tried again until there is */
static void *make_room(void *arg)
{
	(void)arg;
	usleep(20000);
	pthread_mutex_lock(&k.lock);
	k.max_inflight = 64;
	pthread_mutex_unlock(&k.lock);
	return NULL;
}

static void test_vector_room(void **state)
{
	struct iovec iov[2] = { { memory, 1 }, { memory, 2 } };
	pthread_t id;
	uint64_t done;
	xnem_req req;

	(void)state;
	k.max_inflight = 1;
	k.auto_complete = true;
	assert_int_equal(xnem_getv(ctx, iov, 2, &other, 0, &done), 0);
	assert_int_equal(done, 3);
	k.auto_complete = false;
	assert_int_equal(xnem_getv_start(ctx, iov, 2, &other, 0, 0, &req), 0);
	pthread_mutex_lock(&k.lock);
	k.auto_complete = true;
	k.max_inflight = 0;
	k_done(0, 0, 1);
	pthread_mutex_unlock(&k.lock);
	pthread_create(&id, NULL, make_room, NULL);
	assert_int_equal(xnem_wait(ctx, req, XNEM_FOREVER, &done), 0);
	assert_int_equal(done, 3);
	pthread_join(id, NULL);
	/* none at all */
	k.max_inflight = 0;
	assert_int_equal(xnem_getv_start(ctx, iov, 2, &other, 0, 0, &req), -EAGAIN);
	/* closed before the rest is started */
	k.max_inflight = 1;
	k.auto_complete = false;
	assert_int_equal(xnem_getv_start(ctx, iov, 2, &other, 0, 0, &req), 0);
}

static void test_cancel(void **state)
{
	struct iovec iov[3] = { { memory, 1 }, { memory, 2 }, { memory, 3 } };
	xnem_req a = start(10);
	uint64_t done;

	(void)state;
	assert_int_equal(xnem_cancel(ctx, a), 0);
	assert_int_equal(k.cancelled[0], k.flight[0].user_data);
	k.next_cancel = EAGAIN;
	assert_int_equal(xnem_cancel(ctx, a), -EAGAIN);
	complete(0, -ECANCELED, 4);
	assert_int_equal(xnem_cancel(ctx, a), -EBADR);
	assert_int_equal(xnem_wait(ctx, a, SECOND, &done), -ECANCELED);
	assert_int_equal(done, 4);
	assert_int_equal(xnem_cancel(ctx, a), -EBADR);
	assert_int_equal(xnem_cancel(ctx, XNEM_REQ_NONE), -EBADR);

	/* of a vector: what is in flight, and what has not been started */
	k.max_inflight = 2;
	assert_int_equal(xnem_getv_start(ctx, iov, 3, &other, 0, 0, &a), 0);
	assert_int_equal(xnem_cancel(ctx, a), 0);
	assert_int_equal(k.nr_cancelled, 3);
	complete(0, 0, -1);
	complete(0, -ECANCELED, 0);
	assert_int_equal(xnem_wait(ctx, a, SECOND, &done), -ECANCELED);
	assert_int_equal(done, 1);
	assert_int_equal(k.nr_flight, 0);
}

static void test_eventfd(void **state)
{
	(void)state;
	assert_int_equal(xnem_set_eventfd(ctx, 5), 0);
	assert_int_equal(k.eventfd, 5);
	assert_int_equal(xnem_set_eventfd(ctx, -1), 0);
	assert_int_equal(k.eventfd, -1);
	assert_int_equal(xnem_set_eventfd(ctx, -2), -EBADF);
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
		struct iovec iov = { memory, 1 };
		struct xnem_address address = { 0 };
		struct xnem_message message;
		struct xnem_counts counts;
		struct xnem_use use = { 0 };
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
		bad |= xnem_registerv(ctx, NULL, 0, 0, &r) != -EPERM;
		bad |= xnem_cache_get(ctx, memory, 1, XNEM_READ, &use) != -EPERM;
		bad |= xnem_cache_put(ctx, &use) != -EPERM;
		bad |= xnem_cache_limit(ctx, 0) != -EPERM;
		bad |= xnem_getv(ctx, &iov, 1, &other, 0, NULL) != -EPERM;
		bad |= xnem_putv_start(ctx, &iov, 1, &other, 0, 0, &req) != -EPERM;
		bad |= xnem_cancel(ctx, 1) != -EPERM;
		bad |= xnem_get_address(ctx, &address) != -EPERM;
		bad |= xnem_send(ctx, &address, "", 0, 0) != -EPERM;
		bad |= xnem_recv(ctx, &message, 0) != -EPERM;
		bad |= xnem_set_eventfd(ctx, -1) != -EPERM;
		bad |= xnem_get_counts(ctx, &counts) != -EPERM;
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
#define TEST_PAGE(name) cmocka_unit_test_setup_teardown(name, setup_page, teardown)
#define TEST_INBOX(name) cmocka_unit_test_setup_teardown(name, setup_inbox, teardown)
/* what has to be the same with and without the pages */
#define TEST_ALL(name) TEST(name), TEST_PAGE(name), TEST_INBOX(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_open),
		TEST(test_cookie_text),
		TEST(test_fabric),
		TEST(test_new_life),
		TEST(test_register),
		TEST(test_close),
		TEST(test_short),
		TEST_ALL(test_wait),
		TEST(test_eintr),
		TEST_ALL(test_ping_timeout),
		TEST(test_gone),
		TEST(test_lost),
		TEST(test_events),
		TEST(test_fd),
		TEST_ALL(test_waiters),
		TEST_ALL(test_handover),
		TEST_ALL(test_storm),
		TEST_PAGE(test_page),
		TEST_INBOX(test_page),
		TEST_PAGE(test_page_gone),
		TEST_INBOX(test_page_gone),
		TEST_PAGE(test_page_mute),
		TEST_INBOX(test_page_mute),
		TEST_PAGE(test_page_left),
		TEST_INBOX(test_inbox_lost),
		TEST(test_no_inbox),
		TEST_PAGE(test_no_inbox),
		TEST_INBOX(test_messages),
		TEST_INBOX(test_send_busy),
		TEST_INBOX(test_inbox_sleep),
		TEST_INBOX(test_inbox_race),
		TEST_INBOX(test_inbox_end),
		TEST_INBOX(test_inbox_end_polled),
		TEST(test_op_flags),
		TEST(test_cache),
		TEST(test_registerv),
		TEST_ALL(test_vector),
		TEST_ALL(test_vector_room),
		TEST_ALL(test_cancel),
		TEST(test_eventfd),
		TEST_ALL(test_fork),
		TEST(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
