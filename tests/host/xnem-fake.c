// SPDX-License-Identifier: MIT
/*
 * xnem-fake - a device for LD_PRELOAD, to try programs without Xen
 *
 *	XNEM_FAKE=table XNEM_DEVICE=/dev/null LD_PRELOAD=xnem-fake.so program
 *
 * The ioctls on the character device /dev/null are answered here as the
 * kernel's documentation says; copies go between the processes that share the
 * file XNEM_FAKE, by process_vm_readv, messages into pages of that file.  For
 * developing programs: it proves nothing about the drivers.  One context a
 * process; what would take an interrupt is looked for each millisecond.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/xnem.h>
#include <xen/io/xnemif.h>

#define MAX_REGIONS 1024
#define MAX_SEGMENTS 64
#define MAX_CONTEXTS 16
#define MAX_INFLIGHT 64
#define MAX_BYTES (64ull << 20)
#define MAX_CACHED 256
#define INBOX_SLOTS (2 * XNEM_INBOX_SLOTS_PER_PAGE)
#define PAGES_BYTES (4 * XNEM_PAGE_SIZE)
#define FABRIC 0xfab51cull
#define LOOK_NS 1000000

struct region {
	int pid;
	uint32_t access, flags, segments, used;
	uint64_t key, len;
	struct xnem_seg seg[MAX_SEGMENTS];
};

/* a context: the pages that its process maps, and what the backend knows */
struct context {
	unsigned char pages[PAGES_BYTES];
	int pid;
	uint32_t prod, lock;
	uint64_t key;
	unsigned char pad[XNEM_PAGE_SIZE - 24];
};

struct table {
	struct context context[MAX_CONTEXTS];
	uint64_t next_key;
	struct region region[MAX_REGIONS];
};

/* a buffer of this process that has a region: it is kept until the end */
struct cached {
	uint64_t addr, len;
	uint32_t access, flags, region;
};

static struct table *table;
static struct context *own;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct xnem_submit_req queue[MAX_INFLIGHT];
/* of a message: its bytes as they were */
static unsigned char text[MAX_INFLIGHT][XNEM_MESSAGE_MAX];
static struct xnem_complete done[MAX_INFLIGHT];
static unsigned int nr_queue, nr_done, nr_busy;
static struct cached cached[MAX_CACHED];
static unsigned int nr_cached;
static struct xnem_stats stats;
static uint32_t cpage_prod;
static bool mapped;
static pthread_t worker, watcher;
static bool working;
static pid_t opener;
/* what stands in for the device in epoll, and the program's own */
static int poll_fd = -1, event_fd = -1;
/* something new since the program's eventfd was signalled */
static bool news;

static int table_file(void)
{
	const char *path = getenv("XNEM_FAKE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || ftruncate(fd, sizeof(*table)))
		abort();
	return fd;
}

static void attach(void)
{
	int fd = table_file();

	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		abort();
	close(fd);
	opener = getpid();
	for (unsigned int i = 0; i < MAX_CONTEXTS && !own; i++) {
		struct context *c = &table->context[i];
		int none = 0;

		if (c->pid && kill(c->pid, 0))
			c->pid = 0;
		if (!__atomic_compare_exchange_n(&c->pid, &none, getpid(), false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		memset(c->pages, 0, sizeof(c->pages));
		c->prod = 0;
		c->lock = 0;
		c->key = __atomic_add_fetch(&table->next_key, 0x1000001, __ATOMIC_SEQ_CST);
		own = c;
	}
}

static bool readable(uint64_t addr, uint64_t len, bool write)
{
	struct iovec to, from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	char sink[1];

	/* touch a byte of each page through the kernel, which says if it can */
	for (uint64_t p = addr; p < addr + len; p = (p & ~4095ull) + 4096) {
		from.iov_base = (void *)(uintptr_t)p;
		from.iov_len = 1;
		to = (struct iovec){ .iov_base = sink, .iov_len = 1 };
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
			return false;
		if (write && process_vm_writev(getpid(), &to, 1, &from, 1, 0) != 1)
			return false;
	}
	return true;
}

/* ---- regions ---- */

static int check_memory(const struct xnem_register *r, const struct xnem_seg *seg, uint32_t n,
			uint32_t *limited)
{
	struct rlimit limit;
	uint64_t sum = 0;

	if (!r->length || !r->access || r->access & ~3u || r->flags & ~7u)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!seg[i].length || seg[i].addr + seg[i].length < seg[i].addr)
			return -EINVAL;
		sum += seg[i].length;
	}
	if (sum != r->length)
		return -EINVAL;
	if (r->length > MAX_BYTES)
		return -E2BIG;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	*limited = 0;
	if (geteuid() && r->length > limit.rlim_cur) {
		*limited = 1;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!readable(seg[i].addr, seg[i].length, r->access & XNEM_REG_WRITE))
			return -EFAULT;
	return 0;
}

static int do_register(struct xnem_register *r)
{
	struct xnem_seg one = { .addr = r->addr, .length = r->length };
	const struct xnem_seg *seg = &one;
	uint32_t n = r->nr_segments ? r->nr_segments : 1;
	unsigned int i;
	int err;

	if (r->reserved[0] || r->reserved[1] || r->reserved[2] || r->reserved0 || n > MAX_SEGMENTS)
		return -EINVAL;
	if (r->nr_segments) {
		if (!readable(r->addr, n * sizeof(*seg), false))
			return -EFAULT;
		seg = (const void *)(uintptr_t)r->addr;
	}
	err = check_memory(r, seg, n, &r->limit);
	if (err)
		return err;
	for (i = 0; i < MAX_REGIONS; i++) {
		int none = 0;

		if (table->region[i].pid && kill(table->region[i].pid, 0))
			table->region[i].pid = 0;
		if (__atomic_compare_exchange_n(&table->region[i].pid, &none, getpid(), false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			break;
	}
	if (i == MAX_REGIONS)
		return -EMFILE;
	memcpy(table->region[i].seg, seg, n * sizeof(*seg));
	table->region[i].segments = n;
	table->region[i].len = r->length;
	table->region[i].access = r->access;
	table->region[i].flags = r->flags;
	table->region[i].used = 0;
	table->region[i].key = __atomic_add_fetch(&table->next_key, 0x1000001, __ATOMIC_SEQ_CST);
	r->handle = i + 1;
	r->cookie.id = i + 1;
	r->cookie.key = table->region[i].key;
	stats.registered++;
	return 0;
}

static struct region *find(const struct xnem_uapi_cookie *c)
{
	struct region *r;

	if (!c->id || c->id > MAX_REGIONS)
		return NULL;
	r = &table->region[c->id - 1];
	return r->pid && r->key == c->key ? r : NULL;
}

static int do_cache_get(struct xnem_cache_get *g)
{
	struct xnem_register reg = {
		.addr = g->addr & ~4095ull,
		.access = g->access,
		.flags = g->flags,
	};
	uint64_t end = (g->addr + g->length + 4095) & ~4095ull;
	unsigned int i;
	int err;

	if (g->reserved0 || g->reserved[0] || g->reserved[1] || !g->length || end < g->addr ||
	    g->flags & ~1u)
		return -EINVAL;
	reg.length = end - reg.addr;
	pthread_mutex_lock(&lock);
	for (i = 0; i < nr_cached; i++)
		if (cached[i].addr == reg.addr && cached[i].len == reg.length &&
		    cached[i].flags == g->flags && !(g->access & ~cached[i].access))
			break;
	g->hit = i < nr_cached;
	err = g->hit ? 0 : i == MAX_CACHED ? -ENOSPC : do_register(&reg);
	g->limit = reg.limit;
	if (!err && !g->hit)
		cached[nr_cached++] =
			(struct cached){ reg.addr, reg.length, g->access, g->flags, reg.handle };
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	g->handle = i + 1;
	g->cookie.id = cached[i].region;
	g->cookie.key = table->region[cached[i].region - 1].key;
	g->offset = g->addr & 4095;
	if (g->hit)
		stats.cache_hits++;
	else
		stats.cache_misses++;
	return 0;
}

/* the buffer as a region, and where it is in that */
static int by_address(struct xnem_uapi_cookie *cookie, __u64 *offset, uint64_t len, uint32_t access)
{
	struct xnem_cache_get get = { .addr = *offset, .length = len, .access = access };
	int err;

	if (cookie->id || cookie->key)
		return -EINVAL;
	err = do_cache_get(&get);
	*cookie = get.cookie;
	*offset = get.offset;
	return err;
}

/* ---- inboxes ---- */

static struct context *owner_of(int pid)
{
	for (unsigned int i = 0; i < MAX_CONTEXTS; i++)
		if (table->context[i].pid == pid)
			return &table->context[i];
	return NULL;
}

static int deliver(struct context *to, uint32_t kind, uint64_t value, uint64_t bytes,
		   const void *data)
{
	struct xnem_context_control *control = (void *)to->pages;
	struct xnem_inbox_slot *slot;
	int err = -EBUSY;

	while (__atomic_exchange_n(&to->lock, 1, __ATOMIC_ACQUIRE))
		;
	if (to->prod - __atomic_load_n(&control->inbox_cons, __ATOMIC_ACQUIRE) < INBOX_SLOTS) {
		slot = (struct xnem_inbox_slot *)(to->pages + 2 * XNEM_PAGE_SIZE) +
		       to->prod % INBOX_SLOTS;
		slot->value = value;
		slot->bytes = bytes;
		slot->from.id = own - table->context + 1;
		slot->from.key = own->key;
		slot->tag = getuid();
		slot->domid = 0;
		memset(slot->data, 0, sizeof(slot->data));
		if (data)
			memcpy(slot->data, data, bytes);
		slot->kind = kind;
		__atomic_store_n(&slot->seq, ++to->prod, __ATOMIC_RELEASE);
		err = 0;
	}
	__atomic_store_n(&to->lock, 0, __ATOMIC_RELEASE);
	return err;
}

static int message(const struct xnem_submit_req *q, const void *data)
{
	struct context *to;

	if (!q->dst.id || q->dst.id > MAX_CONTEXTS)
		return -ENOENT;
	to = &table->context[q->dst.id - 1];
	if (!to->pid || kill(to->pid, 0) || to->key != q->dst.key)
		return -ENOENT;
	return deliver(to, XNEM_INBOX_MESSAGE, q->user_data, q->length, data);
}

/* ---- copies ---- */

/* moves up to n bytes that are in one segment; how many */
static int64_t move(const struct region *r, uint64_t pos, void *bounce, uint64_t n, bool write)
{
	struct iovec here = { .iov_base = bounce }, there;
	uint32_t i = 0;

	while (pos >= r->seg[i].length)
		pos -= r->seg[i++].length;
	if (n > r->seg[i].length - pos)
		n = r->seg[i].length - pos;
	here.iov_len = there.iov_len = n;
	there.iov_base = (void *)(uintptr_t)(r->seg[i].addr + pos);
	if ((write ? process_vm_writev(r->pid, &here, 1, &there, 1, 0) :
		     process_vm_readv(r->pid, &here, 1, &there, 1, 0)) != (ssize_t)n)
		return errno == ESRCH ? -EHOSTDOWN : -EFAULT;
	return (int64_t)n;
}

static int copy(const struct xnem_submit_req *q, uint64_t *bytes)
{
	struct region *src = find(&q->src), *dst = find(&q->dst);
	struct context *tell_src = NULL, *tell_dst = NULL;
	static char bounce[1 << 20];
	uint64_t length = q->length;
	int err = 0;

	if (!src || !dst || (src->flags & XNEM_REG_ONCE && src->used) ||
	    (dst->flags & XNEM_REG_ONCE && dst->used))
		return -ENOENT;
	if (!(src->access & XNEM_REG_READ) || !(dst->access & XNEM_REG_WRITE))
		return -EACCES;
	if (q->src_offset > src->len || q->dst_offset > dst->len)
		return -ERANGE;
	if (q->flags & XNEM_SUBMIT_BOUNDED) {
		if (length > src->len - q->src_offset)
			length = src->len - q->src_offset;
		if (length > dst->len - q->dst_offset)
			length = dst->len - q->dst_offset;
	}
	if (length > src->len - q->src_offset || length > dst->len - q->dst_offset)
		return -ERANGE;
	if (q->flags & XNEM_SUBMIT_NOTIFY_SRC && !(tell_src = owner_of(src->pid)))
		return -EDESTADDRREQ;
	if (q->flags & XNEM_SUBMIT_NOTIFY_DST && !(tell_dst = owner_of(dst->pid)))
		return -EDESTADDRREQ;
	src->used = dst->used = 1;
	while (*bytes < length) {
		uint64_t n = length - *bytes;
		int64_t got;

		got = move(src, q->src_offset + *bytes, bounce,
			   n < sizeof(bounce) ? n : sizeof(bounce), false);
		for (int64_t put = 0; put < got;) {
			int64_t some = move(dst, q->dst_offset + *bytes, bounce + put,
					    (uint64_t)(got - put), true);

			if (some < 0)
				return (int)some;
			put += some;
			*bytes += (uint64_t)some;
		}
		if (got < 0)
			return (int)got;
	}
	if (tell_dst)
		err = deliver(tell_dst, XNEM_INBOX_NOTIFY, q->immediate, length, NULL);
	if (!err && tell_src)
		err = deliver(tell_src, XNEM_INBOX_NOTIFY, q->immediate, length, NULL);
	return err;
}

static uint32_t wire_status(int err)
{
	static const struct {
		int err;
		uint32_t status;
	} all[] = {
		{ 0, XNEM_ST_OK },
		{ -ENOENT, XNEM_ST_COOKIE },
		{ -EACCES, XNEM_ST_ACCESS },
		{ -ERANGE, XNEM_ST_RANGE },
		{ -EFAULT, XNEM_ST_FAULT },
		{ -EHOSTDOWN, XNEM_ST_PEER_GONE },
		{ -EBUSY, XNEM_ST_BUSY },
		{ -EDESTADDRREQ, XNEM_ST_CONTEXT },
		{ -EINVAL, XNEM_ST_INVALID },
		{ -ECANCELED, XNEM_ST_CANCELLED },
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].err == err)
			return all[i].status;
	return XNEM_ST_MAX + 1;
}

/* the lock is held */
static void finish(const struct xnem_submit_req *q, int status, uint64_t bytes)
{
	stats.completions++;
	stats.errors += status != 0;
	stats.bytes += bytes;
	news = true;
	if (q->flags & XNEM_SUBMIT_CPAGE) {
		struct xnem_cpage_entry *e =
			(struct xnem_cpage_entry *)(own->pages + XNEM_PAGE_SIZE) +
			cpage_prod % XNEM_CPAGE_ENTRIES;

		e->user_data = q->user_data;
		e->bytes_done = bytes;
		e->status = wire_status(status);
		__atomic_store_n(&e->seq, ++cpage_prod, __ATOMIC_RELEASE);
	} else {
		done[nr_done++] = (struct xnem_complete){
			.user_data = q->user_data,
			.bytes_done = bytes,
			.status = status,
		};
	}
	pthread_cond_broadcast(&ended);
}

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		unsigned char data[XNEM_MESSAGE_MAX];
		struct xnem_submit_req q;
		uint64_t bytes = 0;
		int status = 0;

		if (!nr_queue) {
			pthread_cond_wait(&ended, &lock);
			continue;
		}
		q = queue[0];
		memcpy(data, text[0], sizeof(data));
		nr_queue--;
		memmove(queue, queue + 1, nr_queue * sizeof(q));
		memmove(text, text + 1, nr_queue * sizeof(text[0]));
		nr_busy++;
		pthread_mutex_unlock(&lock);
		if (q.op == XNEM_REQ_OP_COPY)
			status = copy(&q, &bytes);
		else if (q.op == XNEM_REQ_OP_MESSAGE)
			status = message(&q, data);
		pthread_mutex_lock(&lock);
		nr_busy--;
		finish(&q, status, bytes);
	}
	return NULL;
}

static bool inbox_has_more(uint32_t seen)
{
	return own && mapped && __atomic_load_n(&own->prod, __ATOMIC_ACQUIRE) != seen;
}

/* instead of interrupts */
static void *watch(void *arg)
{
	const struct timespec ts = { .tv_nsec = LOOK_NS };
	uint64_t one = 1, count;
	uint32_t told = 0;
	ssize_t n;

	(void)arg;
	for (;;) {
		struct xnem_context_control *control = own ? (void *)own->pages : NULL;
		bool ready;

		nanosleep(&ts, NULL);
		pthread_mutex_lock(&lock);
		ready = nr_done ||
			(mapped &&
			 (cpage_prod != control->cpage_cons ||
			  inbox_has_more(__atomic_load_n(&control->inbox_cons, __ATOMIC_ACQUIRE))));
		if (inbox_has_more(told)) {
			told = own->prod;
			news = true;
		}
		n = ready ? write(poll_fd, &one, sizeof(one)) :
			    read(poll_fd, &count, sizeof(count));
		if (news && event_fd >= 0)
			n = write(event_fd, &one, sizeof(one));
		news = false;
		(void)n;
		pthread_cond_broadcast(&ended);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* the lock is held */
static void start_threads(void)
{
	if (working)
		return;
	working = true;
	poll_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_create(&worker, NULL, work, NULL);
	pthread_create(&watcher, NULL, watch, NULL);
}

static int enqueue(const struct xnem_submit_req *from)
{
	struct xnem_submit_req q = *from;
	int err = 0;

	if (q.op > XNEM_REQ_OP_MESSAGE || q.flags & ~0x7fu || q.reserved ||
	    (q.immediate && !(q.flags & (XNEM_SUBMIT_NOTIFY_SRC | XNEM_SUBMIT_NOTIFY_DST))) ||
	    (q.flags & XNEM_SUBMIT_CPAGE && !mapped) ||
	    (q.op != XNEM_REQ_OP_COPY && q.flags & ~(XNEM_SUBMIT_CPAGE | XNEM_SUBMIT_FENCE)) ||
	    (q.op == XNEM_REQ_OP_MESSAGE && q.length > XNEM_MESSAGE_MAX))
		return -EINVAL;
	if (q.op == XNEM_REQ_OP_MESSAGE && !readable(q.src_offset, q.length, false))
		return -EFAULT;
	if (q.flags & XNEM_SUBMIT_SRC_ADDR)
		err = by_address(&q.src, &q.src_offset, q.length, XNEM_REG_READ);
	if (!err && q.flags & XNEM_SUBMIT_DST_ADDR)
		err = by_address(&q.dst, &q.dst_offset, q.length, XNEM_REG_WRITE);
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	if (nr_queue + nr_done + nr_busy >= MAX_INFLIGHT) {
		err = -EAGAIN;
	} else {
		if (q.op == XNEM_REQ_OP_MESSAGE)
			memcpy(text[nr_queue], (void *)(uintptr_t)q.src_offset, q.length);
		queue[nr_queue++] = q;
		stats.requests++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* one after the other: all are fences */
static int do_submit(struct xnem_submit *s)
{
	const struct xnem_submit_req *q = (const void *)(uintptr_t)s->reqs;
	int err = 0;

	if (s->reserved[0] || s->reserved[1] || !s->count || s->count > 1024)
		return -EINVAL;
	if (!readable(s->reqs, s->count * sizeof(*q), false))
		return -EFAULT;
	for (s->submitted = 0; s->submitted < s->count; q++, s->submitted++) {
		err = enqueue(q);
		if (err)
			break;
	}
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	return s->submitted ? 0 : err;
}

static bool more(const struct xnem_get_completions *g)
{
	return (g->flags & XNEM_COMPLETE_CPAGE && cpage_prod != g->cpage_seen) ||
	       (g->flags & XNEM_COMPLETE_INBOX && inbox_has_more(g->inbox_seen));
}

static int do_complete(struct xnem_get_completions *g)
{
	bool inbox = g->flags & XNEM_COMPLETE_INBOX;
	struct timespec until;
	int err = 0;

	if ((g->flags & ~(XNEM_COMPLETE_CPAGE | XNEM_COMPLETE_INBOX)) || !g->max_count ||
	    (!inbox && g->inbox_seen) || g->min_count > g->max_count)
		return -EINVAL;
	clock_gettime(CLOCK_REALTIME, &until);
	if (g->timeout_ns > 0) {
		uint64_t ns = until.tv_nsec + (uint64_t)g->timeout_ns;

		until.tv_sec += ns / 1000000000;
		until.tv_nsec = ns % 1000000000;
	}
	pthread_mutex_lock(&lock);
	while (nr_done < g->min_count && (nr_queue || nr_busy || inbox) && !more(g) &&
	       g->timeout_ns && !err)
		err = g->timeout_ns < 0 ? pthread_cond_wait(&ended, &lock) :
					  pthread_cond_timedwait(&ended, &lock, &until);
	g->count = nr_done < g->max_count ? nr_done : g->max_count;
	if (!g->count && g->min_count && !more(g)) {
		err = nr_queue || nr_busy || inbox ? -ETIME : -ENOENT;
	} else if (g->count && !readable(g->completions, g->count * sizeof(done[0]), true)) {
		err = -EFAULT;
	} else {
		memcpy((void *)(uintptr_t)g->completions, done, g->count * sizeof(done[0]));
		nr_done -= g->count;
		memmove(done, done + g->count, nr_done * sizeof(done[0]));
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int do_deregister(const struct xnem_deregister *d)
{
	if (d->reserved[0] || d->reserved[1] || d->reserved[2] || !d->handle ||
	    d->handle > MAX_REGIONS || table->region[d->handle - 1].pid != getpid())
		return -EINVAL;
	pthread_mutex_lock(&lock);
	while (nr_queue || nr_busy)
		pthread_cond_wait(&ended, &lock);
	pthread_mutex_unlock(&lock);
	table->region[d->handle - 1].key = 0;
	table->region[d->handle - 1].pid = 0;
	return 0;
}

/* only what the worker has not begun */
static int do_cancel(struct xnem_cancel *c)
{
	int err = -ENOENT;

	if (c->reserved)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	for (unsigned int i = nr_queue; i-- > 0;) {
		struct xnem_submit_req q = queue[i];

		if (q.user_data != c->user_data)
			continue;
		nr_queue--;
		memmove(&queue[i], &queue[i + 1], (nr_queue - i) * sizeof(q));
		memmove(&text[i], &text[i + 1], (nr_queue - i) * sizeof(text[0]));
		finish(&q, -ECANCELED, 0);
		c->count++;
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int do_eventfd(const struct xnem_eventfd *e)
{
	int fd = e->fd < 0 ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	char path[64], to[64] = "";

	if (e->fd >= 0 && fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0 && (readlink(path, to, sizeof(to) - 1) < 0 || !strstr(to, "eventfd"))) {
		close(fd);
		return -EINVAL;
	}
	pthread_mutex_lock(&lock);
	if (event_fd >= 0)
		close(event_fd);
	event_fd = fd;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int do_info(struct xnem_info *i)
{
	for (unsigned int k = 0; k < sizeof(i->reserved) / sizeof(i->reserved[0]); k++)
		if (i->reserved[k])
			return -EINVAL;
	*i = (struct xnem_info){
		.abi_version = XNEM_ABI_VERSION,
		.fabric_id = FABRIC,
		.connected = 1,
		.max_inflight = MAX_INFLIGHT,
		.max_region_bytes = MAX_BYTES,
		.max_pages = 1 << 16,
		.pages_bytes = own ? PAGES_BYTES : 0,
		.inbox_slots = own ? INBOX_SLOTS : 0,
		.max_segments = MAX_SEGMENTS,
		.queues = 1,
	};
	if (mapped) {
		i->address.id = own - table->context + 1;
		i->address.key = own->key;
	}
	return 0;
}

static int fake(unsigned long call, void *arg)
{
	if (opener != getpid())
		return -EPERM;
	if (_IOC_TYPE(call) != XNEM_IOC_MAGIC || _IOC_NR(call) < 0x40 || _IOC_NR(call) > 0x4a)
		return -ENOTTY;
	if ((uintptr_t)arg < 4096)
		return -EFAULT;
	pthread_mutex_lock(&lock);
	start_threads();
	pthread_mutex_unlock(&lock);
	switch (call) {
	case XNEM_IOC_INFO:
		return do_info(arg);
	case XNEM_IOC_REGISTER:
		return do_register(arg);
	case XNEM_IOC_DEREGISTER:
		return do_deregister(arg);
	case XNEM_IOC_SUBMIT:
		return do_submit(arg);
	case XNEM_IOC_COMPLETE:
		return do_complete(arg);
	case XNEM_IOC_CACHE_GET:
		return do_cache_get(arg);
	case XNEM_IOC_CACHE_PUT:
		return ((struct xnem_cache_put *)arg)->handle - 1 < nr_cached ? 0 : -EINVAL;
	case XNEM_IOC_CACHE_LIMIT:
		return 0;
	case XNEM_IOC_CANCEL:
		return do_cancel(arg);
	case XNEM_IOC_EVENTFD:
		return do_eventfd(arg);
	case XNEM_IOC_STATS:
		for (unsigned int i = 0; i < 7; i++)
			if (((struct xnem_stats *)arg)->reserved[i])
				return -EINVAL;
		*(struct xnem_stats *)arg = stats;
		return 0;
	default:
		return -ENOTTY;
	}
}

static bool is_device(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long call, ...)
{
	int (*real)(int fd, unsigned long call, void *arg);
	va_list args;
	void *arg;
	int ret;

	va_start(args, call);
	arg = va_arg(args, void *);
	va_end(args);
	if (!is_device(fd)) {
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
		return real(fd, call, arg);
	}
	if (!table)
		attach();
	ret = fake(call, arg);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return 0;
}

__attribute__((visibility("default"))) void *mmap(void *addr, size_t len, int prot, int flags,
						  int fd, off_t offset)
{
	void *(*real)(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
	void *pages;
	int file;

	*(void **)&real = dlsym(RTLD_NEXT, "mmap");
	if (!is_device(fd))
		return real(addr, len, prot, flags, fd, offset);
	if (own && opener != getpid()) {
		errno = EPERM;
		return MAP_FAILED;
	}
	if (!own || mapped || len != PAGES_BYTES || offset) {
		errno = !own ? EOPNOTSUPP : mapped ? EBUSY : EINVAL;
		return MAP_FAILED;
	}
	file = table_file();
	pages = real(addr, len, prot, flags, file, (char *)own - (char *)table);
	close(file);
	if (pages != MAP_FAILED) {
		madvise(pages, len, MADV_DONTFORK);
		mapped = true;
	}
	return pages;
}

/* the device cannot be polled */
__attribute__((visibility("default"))) int epoll_ctl(int epfd, int op, int fd,
						     struct epoll_event *event)
{
	int (*real)(int epfd, int op, int fd, struct epoll_event *event);

	*(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
	return real(epfd, op, is_device(fd) ? poll_fd : fd, event);
}
