// SPDX-License-Identifier: MIT
/*
 * Xenstore, grants, the event channel, and the queue; see frontend.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "frontend.h"

/* Pages of the rings: 2^order. */
#define SQ_ORDER 1
#define CQ_ORDER 1

void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "xnem-frozen: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *need_memory(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		die("no %zu bytes of memory", bytes);
	return p;
}

/* ---- xenstore: xen/io/xs_wire.h ---- */

enum {
	XS_READ = 2,
	XS_WATCH = 4,
	XS_TRANSACTION_START = 6,
	XS_TRANSACTION_END = 7,
	XS_WRITE = 11,
	XS_WATCH_EVENT = 15,
	XS_ERROR = 16,
};

struct xs_head {
	uint32_t type, req_id, tx_id, len;
};

static void xs_receive(struct frontend *fe, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = read(fe->xenbus, p, len);

		if (n <= 0)
			die("xenstore: %s", n ? strerror(errno) : "end of file");
		p += n;
		len -= n;
	}
}

/* The next message, a zero behind its text. */
static uint32_t xs_message(struct frontend *fe, char text[XS_MAX + 1])
{
	struct xs_head head;

	xs_receive(fe, &head, sizeof(head));
	if (head.len > XS_MAX)
		die("xenstore: a message of %u bytes", head.len);
	xs_receive(fe, text, head.len);
	text[head.len] = '\0';
	return head.type;
}

/*
 * @path with its zero, and @value without or, for a watch, with one.  The answer's
 * text comes into @text.  False: it was an error, whose name is in @text.
 */
static bool xs_talk(struct frontend *fe, uint32_t type, uint32_t tx, const char *path,
		    const char *value, size_t value_len, char text[XS_MAX + 1])
{
	struct {
		struct xs_head head;
		char text[XS_MAX];
	} msg = { .head = { .type = type, .tx_id = tx } };
	size_t path_len = strlen(path) + 1;
	uint32_t got;

	if (path_len + value_len > sizeof(msg.text))
		die("xenstore: %s is too long", path);
	memcpy(msg.text, path, path_len);
	memcpy(msg.text + path_len, value, value_len);
	msg.head.len = path_len + value_len;
	if (write(fe->xenbus, &msg, sizeof(msg.head) + msg.head.len) !=
	    (ssize_t)(sizeof(msg.head) + msg.head.len))
		die("xenstore: %s", strerror(errno));
	/* A watch may fire in between; whoever waits looks by itself first. */
	do {
		got = xs_message(fe, text);
	} while (got == XS_WATCH_EVENT);
	if (got != type && got != XS_ERROR)
		die("xenstore: %u answers %u", got, type);
	return got == type;
}

bool xs_read(struct frontend *fe, const char *dir, const char *node, char text[XS_MAX + 1])
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", node);
	return xs_talk(fe, XS_READ, 0, path, "", 0, text);
}

static void xs_need(struct frontend *fe, const char *dir, const char *node, char text[XS_MAX + 1])
{
	if (!xs_read(fe, dir, node, text))
		die("no %s/%s in xenstore: %s", dir, node, text);
}

bool xs_write_raw(struct frontend *fe, const char *node, const void *value, size_t len)
{
	char path[256], text[XS_MAX + 1];

	snprintf(path, sizeof(path), "%s/%s", fe->dir, node);
	return xs_talk(fe, XS_WRITE, 0, path, value, len, text);
}

/* In transaction @tx, or 0. */
static void xs_write(struct frontend *fe, uint32_t tx, const char *node, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void xs_write(struct frontend *fe, uint32_t tx, const char *node, const char *format, ...)
{
	char path[256], value[512], text[XS_MAX + 1];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", fe->dir, node);
	if (!xs_talk(fe, XS_WRITE, tx, path, value, strlen(value), text))
		die("writing %s: %s", path, text);
}

/* ---- states ---- */

void set_state(struct frontend *fe, enum state state)
{
	xs_write(fe, 0, "state", "%d", state);
}

enum state backend_state(struct frontend *fe)
{
	char text[XS_MAX + 1];

	return xs_read(fe, fe->backend_dir, "state", text) ? (enum state)atoi(text) : STATE_GONE;
}

bool wait_backend(struct frontend *fe, enum state a, enum state b, uint32_t ms)
{
	uint64_t end = now_ms() + ms;
	struct pollfd p = { .fd = fe->xenbus, .events = POLLIN };
	char text[XS_MAX + 1];

	for (;;) {
		enum state state = backend_state(fe);
		uint64_t now = now_ms();

		if (state == a || state == b)
			return true;
		if (now >= end)
			return false;
		/* A watch that fired during the look above was thrown away: not for long. */
		if (poll(&p, 1, end - now < 100 ? end - now : 100) > 0)
			xs_message(fe, text);
	}
}

/* ---- grants: xen/gntalloc.h ---- */

struct gntalloc_alloc {
	uint16_t domid, flags;
	uint32_t count;
	uint64_t index;
	uint32_t refs[];
};

struct gntalloc_dealloc {
	uint64_t index;
	uint32_t count;
};

#define GNTALLOC_ALLOC _IOC(_IOC_NONE, 'G', 5, 24)
#define GNTALLOC_DEALLOC _IOC(_IOC_NONE, 'G', 6, sizeof(struct gntalloc_dealloc))
#define GNTALLOC_WRITABLE 1

struct pages *grant_pages(struct frontend *fe, uint32_t nr, bool writable)
{
	struct gntalloc_alloc *op = need_memory(sizeof(*op) + (nr + 1) * sizeof(op->refs[0]));
	struct pages *p = need_memory(sizeof(*p));

	op->domid = fe->backend_id;
	op->flags = writable ? GNTALLOC_WRITABLE : 0;
	op->count = nr;
	if (ioctl(fe->gntalloc, GNTALLOC_ALLOC, op))
		die("granting %u pages: %s", nr, strerror(errno));
	p->index = op->index;
	p->nr = nr;
	p->ref = need_memory(nr * sizeof(p->ref[0]));
	memcpy(p->ref, op->refs, nr * sizeof(p->ref[0]));
	free(op);
	p->mem = mmap(NULL, (size_t)nr * XNEM_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      fe->gntalloc, p->index);
	if (p->mem == MAP_FAILED)
		die("mapping %u granted pages: %s", nr, strerror(errno));
	memset(p->mem, 0, (size_t)nr * XNEM_PAGE_SIZE);
	p->next = fe->pages;
	fe->pages = p;
	return p;
}

void revoke_pages(struct frontend *fe, struct pages *p)
{
	struct gntalloc_dealloc op = { .index = p->index, .count = p->nr };
	struct pages **link;

	for (link = &fe->pages; *link != p; link = &(*link)->next)
		if (!*link)
			die("revoking pages twice");
	*link = p->next;
	munmap(p->mem, (size_t)p->nr * XNEM_PAGE_SIZE);
	if (ioctl(fe->gntalloc, GNTALLOC_DEALLOC, &op))
		die("revoking %u pages: %s", p->nr, strerror(errno));
	free(p->ref);
	free(p);
}

/*
 * Linux revokes such a page later, and says so in its log; newer ones when they are
 * asked to.  That it says so has a test of its own.
 */
static void ask_for_reports(void)
{
	static const char what[] = "file drivers/xen/grant-table.c +p";
	int fd = open("/proc/dynamic_debug/control", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, what, sizeof(what) - 1) < 0)
		die("/proc/dynamic_debug/control: %s", strerror(errno));
	close(fd);
}

bool revoked_in_use(struct frontend *fe)
{
	char record[8192];
	bool found = false;
	ssize_t n;

	while ((n = read(fe->kmsg, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		record[n] = '\0';
		found |= strstr(record, "deferring g.e.") || strstr(record, "leaking g.e.");
	}
	return found;
}

void frontend_open(struct frontend *fe)
{
	char text[XS_MAX + 1], path[192];

	memset(fe, 0, sizeof(*fe));
	fe->q = fe->queues;
	fe->xenbus = open("/dev/xen/xenbus", O_RDWR | O_CLOEXEC);
	fe->evtchn = open("/dev/xen/evtchn", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	fe->gntalloc = open("/dev/xen/gntalloc", O_RDWR | O_CLOEXEC);
	fe->kmsg = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fe->xenbus < 0 || fe->evtchn < 0 || fe->gntalloc < 0 || fe->kmsg < 0)
		die("/dev/xen/{xenbus,evtchn,gntalloc}, /dev/kmsg: %s", strerror(errno));
	lseek(fe->kmsg, 0, SEEK_END);
	ask_for_reports();

	snprintf(fe->dir, sizeof(fe->dir), "device/xnem/0");
	xs_need(fe, "", "domid", text);
	fe->domid = strtoul(text, NULL, 10);
	xs_need(fe, fe->dir, "backend-id", text);
	fe->backend_id = strtoul(text, NULL, 10);
	xs_need(fe, fe->dir, "backend", text);
	if (snprintf(fe->backend_dir, sizeof(fe->backend_dir), "%s", text) >=
	    (int)sizeof(fe->backend_dir))
		die("a backend's path of %zu bytes", strlen(text));
	snprintf(path, sizeof(path), "%s/state", fe->backend_dir);
	if (!xs_talk(fe, XS_WATCH, 0, path, "state", sizeof("state"), text))
		die("watching %s: %s", path, text);
}

/* ---- the event channel: xen/evtchn.h ---- */

#define EVTCHN_BIND_UNBOUND_PORT _IOC(_IOC_NONE, 'E', 2, 4)
#define EVTCHN_UNBIND _IOC(_IOC_NONE, 'E', 3, 4)
#define EVTCHN_NOTIFY _IOC(_IOC_NONE, 'E', 4, 4)

void notify(struct frontend *fe)
{
	uint32_t port = fe->q->port;

	if (ioctl(fe->evtchn, EVTCHN_NOTIFY, &port))
		die("notifying the backend: %s", strerror(errno));
}

/* Late EOI: a channel is open again when all that the event was for is done. */
static void event_done(struct frontend *fe)
{
	struct queue *q;

	for (q = fe->queues; q < fe->queues + QUEUES_MAX; q++) {
		if (!q->eoi_owed)
			continue;
		q->eoi_owed = false;
		if (write(fe->evtchn, &q->port, sizeof(q->port)) != sizeof(q->port))
			die("opening the event channel again: %s", strerror(errno));
	}
}

/* ---- the queue ---- */

static void take(struct frontend *fe)
{
	uint32_t prod = load_acquire(&fe->q->header->cq.prod);

	if (prod - fe->q->cq_cons > fe->q->cq_size)
		die("completion index beyond the ring");
	if (prod == fe->q->cq_cons)
		return;
	for (; fe->q->cq_cons != prod; fe->q->cq_cons++) {
		struct xnem_completion c = fe->q->cq[fe->q->cq_cons % fe->q->cq_size];

		if (c.id >= fe->q->max_inflight || !fe->q->answers[c.id].busy ||
		    fe->q->answers[c.id].done || c.pad || c.status > XNEM_ST_MAX)
			die("an answer that is none: id %u, status %u, pad %u", c.id, c.status,
			    c.pad);
		fe->q->answers[c.id].c = c;
		fe->q->answers[c.id].done = true;
	}
	full_barrier();
	store_release(&fe->q->header->cq.cons, fe->q->cq_cons);
}

void publish(struct frontend *fe)
{
	uint32_t from = fe->q->sq_shown, event;

	if (from == fe->q->sq_prod)
		return;
	fe->q->sq_shown = fe->q->sq_prod;
	store_release(&fe->q->header->sq.prod, fe->q->sq_prod);
	full_barrier();
	event = load_acquire(&fe->q->header->sq.event);
	/* In (from, prod], modulo 2^32. */
	if (fe->q->sq_prod - event < fe->q->sq_prod - from)
		notify(fe);
}

void post_raw(struct frontend *fe, const struct xnem_request *req)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (fe->q->sq_prod - load_acquire(&fe->q->header->sq.cons) >= fe->q->sq_size) {
		publish(fe);
		sched_yield();
		if (now_ms() > end)
			die("the backend takes no requests");
	}
	full_barrier();
	fe->q->sq[fe->q->sq_prod++ % fe->q->sq_size] = *req;
}

uint32_t post(struct frontend *fe, const struct xnem_request *req)
{
	struct xnem_request copy = *req;
	uint32_t id;

	for (id = 0; id < fe->q->max_inflight; id++)
		if (!fe->q->answers[id].busy)
			break;
	if (id == fe->q->max_inflight)
		die("a test with more than %u requests in flight", fe->q->max_inflight);
	fe->q->answers[id].busy = true;
	fe->q->answers[id].done = false;
	copy.id = id;
	post_raw(fe, &copy);
	return id;
}

bool wait_event(struct frontend *fe, uint32_t ms)
{
	struct pollfd p = { .fd = fe->evtchn, .events = POLLIN };
	struct queue *q;
	uint32_t port;

	event_done(fe);
	if (poll(&p, 1, ms) <= 0)
		return false;
	if (read(fe->evtchn, &port, sizeof(port)) != sizeof(port))
		die("reading the event channel: %s", strerror(errno));
	/* Another one's is that of a connection before. */
	for (q = fe->queues; q < fe->queues + QUEUES_MAX; q++)
		if (port == q->port)
			q->eoi_owed = true;
	return true;
}

void sleep_on_event(struct frontend *fe, uint32_t ms)
{
	/* Before it asks for the next one: an event that comes now is not lost. */
	event_done(fe);
	__atomic_store_n(&fe->q->header->cq.event, fe->q->cq_cons + 1, __ATOMIC_RELAXED);
	full_barrier();
	if (load_acquire(&fe->q->header->cq.prod) == fe->q->cq_cons)
		wait_event(fe, ms);
}

bool answered(struct frontend *fe, uint32_t id)
{
	take(fe);
	return fe->q->answers[id].done;
}

struct xnem_completion wait_for(struct frontend *fe, uint32_t id, uint32_t ms)
{
	uint64_t end = now_ms() + ms, now;

	while (!answered(fe, id)) {
		now = now_ms();
		if (now >= end)
			return (struct xnem_completion){ .id = id, .status = NO_ANSWER };
		sleep_on_event(fe, end - now);
	}
	fe->q->answers[id].busy = false;
	return fe->q->answers[id].c;
}

struct xnem_completion call(struct frontend *fe, const struct xnem_request *req)
{
	uint32_t id = post(fe, req);

	publish(fe);
	return wait_for(fe, id, PATIENCE_MS);
}

/* ---- connecting ---- */

static uint32_t limit(const char *limits, const char *key)
{
	size_t len = strlen(key);
	const char *p;

	for (p = limits; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		if (!strncmp(p, key, len) && p[len] == '=')
			return strtoul(p + len + 1, NULL, 10);
	}
	return 0;
}

static void read_offers(struct frontend *fe)
{
	char text[XS_MAX + 1];
	struct offers *o = &fe->offers;

	xs_need(fe, fe->backend_dir, "versions", text);
	if (sscanf(text, "%" SCNu32 " %" SCNu32, &o->version_min, &o->version_max) != 2)
		die("versions: %s", text);
	xs_need(fe, fe->backend_dir, "features", text);
	o->features = strtoull(text, NULL, 16);
	xs_need(fe, fe->backend_dir, "fabric-id", text);
	o->fabric_id = strtoull(text, NULL, 16);
	xs_need(fe, fe->backend_dir, "limits", text);
	o->queues = limit(text, "queues");
	o->sq_order = limit(text, "sq-order");
	o->cq_order = limit(text, "cq-order");
	o->inflight = limit(text, "inflight");
	o->contexts = limit(text, "contexts");
	o->regions = limit(text, "regions");
	o->region_pages = limit(text, "region-pages");
	o->pages = limit(text, "pages");
	o->windows = limit(text, "windows");
	o->window_pages = limit(text, "window-pages");
}

static void make_queue(struct frontend *fe, struct queue *q)
{
	uint32_t remote = fe->backend_id;
	int port;

	memset(q, 0, sizeof(*q));
	q->pages[0] = grant_pages(fe, 1, true);
	q->pages[1] = grant_pages(fe, 1u << SQ_ORDER, true);
	q->pages[2] = grant_pages(fe, 1u << CQ_ORDER, true);
	q->header = (void *)q->pages[0]->mem;
	q->header->sq.event = 1;
	q->header->cq.event = 1;
	q->sq = (void *)q->pages[1]->mem;
	q->cq = (void *)q->pages[2]->mem;
	q->sq_size = XNEM_SQ_SLOTS_PER_PAGE << SQ_ORDER;
	q->cq_size = XNEM_CQ_SLOTS_PER_PAGE << CQ_ORDER;
	q->max_inflight = q->cq_size < fe->offers.inflight ? q->cq_size : fe->offers.inflight;
	q->answers = need_memory(q->max_inflight * sizeof(q->answers[0]));
	port = ioctl(fe->evtchn, EVTCHN_BIND_UNBOUND_PORT, &remote);
	if (port < 0)
		die("allocating an event channel: %s", strerror(errno));
	q->port = port;
}

static void print_refs(char text[200], const struct pages *p)
{
	size_t len = 0;
	uint32_t i;

	for (i = 0; i < p->nr; i++)
		len += snprintf(text + len, 200 - len, "%s%u", i ? " " : "", p->ref[i]);
}

static void write_queue(struct frontend *fe, uint32_t tx, uint32_t i, const char *header_ref)
{
	static const char *const names[] = { "header-ref", "sq-refs", "cq-refs" };
	const struct queue *q = &fe->queues[i];
	char node[64], refs[200];
	uint32_t k;

	for (k = 0; k < 3; k++) {
		snprintf(node, sizeof(node), "queue-%u/%s", i, names[k]);
		print_refs(refs, q->pages[k]);
		xs_write(fe, tx, node, "%s", k == 0 && header_ref ? header_ref : refs);
	}
	snprintf(node, sizeof(node), "queue-%u/event-channel", i);
	xs_write(fe, tx, node, "%u", q->port);
}

static bool write_nodes(struct frontend *fe, const struct wish *wish)
{
	char text[XS_MAX + 1];
	uint32_t tx, i;

	if (!xs_talk(fe, XS_TRANSACTION_START, 0, "", "", 0, text))
		die("starting a transaction: %s", text);
	tx = strtoul(text, NULL, 10);
	xs_write(fe, tx, "version", "%s", wish->version ? wish->version : "1");
	if (wish->features)
		xs_write(fe, tx, "features", "%s", wish->features);
	else
		xs_write(fe, tx, "features", "%" PRIx64, (uint64_t)FROZEN_FEATURES);
	xs_write(fe, tx, "windows", "%u", fe->offers.windows);
	xs_write(fe, tx, "num-queues", "%u", fe->nr_queues);
	for (i = 0; i < fe->nr_queues; i++)
		write_queue(fe, tx, i, i ? NULL : wish->header_ref);
	if (xs_talk(fe, XS_TRANSACTION_END, tx, "T", "", 0, text))
		return true;
	if (strcmp(text, "EAGAIN"))
		die("ending a transaction: %s", text);
	return false;
}

bool connect_device(struct frontend *fe, const struct wish *wish)
{
	static const struct wish none;
	uint32_t i;

	if (!wish)
		wish = &none;
	set_state(fe, STATE_INITIALISING);
	if (!wait_backend(fe, STATE_INIT_WAIT, STATE_INIT_WAIT, PATIENCE_MS))
		die("the backend does not come to InitWait: it is in state %d", backend_state(fe));
	read_offers(fe);
	fe->nr_queues = wish->queues ? wish->queues : 1;
	for (i = 0; i < fe->nr_queues; i++)
		make_queue(fe, &fe->queues[i]);
	fe->q = fe->queues;
	while (!write_nodes(fe, wish))
		;
	set_state(fe, STATE_INITIALISED);
	if (!wait_backend(fe, STATE_CONNECTED, STATE_CLOSING, PATIENCE_MS))
		die("the backend neither connects nor refuses: it is in state %d",
		    backend_state(fe));
	if (backend_state(fe) != STATE_CONNECTED)
		return false;
	set_state(fe, STATE_CONNECTED);
	return true;
}

bool disconnect_device(struct frontend *fe)
{
	struct queue *q;

	set_state(fe, STATE_CLOSING);
	if (!wait_backend(fe, STATE_CLOSED, STATE_GONE, PATIENCE_MS))
		return false;
	/* Nothing is shared any more. */
	for (q = fe->queues; q < fe->queues + QUEUES_MAX; q++) {
		if (q->port && ioctl(fe->evtchn, EVTCHN_UNBIND, &q->port))
			die("closing the event channel: %s", strerror(errno));
		free(q->answers);
		memset(q, 0, sizeof(*q));
	}
	while (fe->pages)
		revoke_pages(fe, fe->pages);
	set_state(fe, STATE_CLOSED);
	return true;
}
