// SPDX-License-Identifier: MIT
/*
 * xnem-hostile-backend - does a hostile backend harm a guest more than it must?
 *
 * Runs in the driver domain while no xnem-backend is loaded there, and serves the
 * device of one guest, whose frontend is the ordinary one: first as a backend should
 * (though it copies nothing), and at the first copy it is asked for it breaks the
 * rules.  Processes of the guest that wait are looked at by the scenario.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

static const char usage_text[] =
	"usage: xnem-hostile-backend ATTACK DOMID\n"
	"       xnem-hostile-backend list\n"
	"\n"
	"Serves the device of guest DOMID.  Prints connected, and attacked when it has; an\n"
	"attack of which `list` says cut must make the frontend close within 5 seconds.\n"
	"At SIGTERM it lets go of everything and ends.\n"
	"\n"
	"Exit status: 0 as it must be, 1 not, 2 cannot tell, 64 wrong arguments.\n";

/** Of its fabric; the scenario makes cookies with it. */
#define FABRIC "8877665544332211"
#define GOOD_LIMITS                                                                          \
	"queues=1 sq-order=1 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 " \
	"pages=4096 windows=4 window-pages=4"

/* The other names fit a frontend; here @fe->dir is the backend's, and the other the guest's. */
#define peer_state backend_state
#define wait_peer wait_backend

static volatile sig_atomic_t over;

static void end(int sig)
{
	(void)sig;
	over = 1;
}

/* ---- xen/gntdev.h, xen/evtchn.h ---- */

struct gntdev_map {
	uint32_t count, pad;
	uint64_t index;
	uint32_t domid, ref;
};

#define GNTDEV_MAP _IOC(_IOC_NONE, 'G', 0, sizeof(struct gntdev_map))
#define EVTCHN_BIND_INTERDOMAIN _IOC(_IOC_NONE, 'E', 1, 8)
#define EVTCHN_UNBIND _IOC(_IOC_NONE, 'E', 3, 4)

struct backend {
	struct frontend fe;
	uint32_t guest;
	int gntdev;
	/** Consumed requests, made answers. */
	uint32_t sq_cons, cq_prod;
	uint64_t regions;
	/** The reference of the last region's first page. */
	uint32_t data_ref;
};

/* At @at, or anywhere. */
static void *map_page(struct backend *be, uint32_t ref, bool writable, void *at)
{
	struct gntdev_map op = { .count = 1, .domid = be->guest, .ref = ref };
	void *p;

	if (ioctl(be->gntdev, GNTDEV_MAP, &op))
		die("gntdev: reference %u: %s", ref, strerror(errno));
	p = mmap(at, XNEM_PAGE_SIZE, PROT_READ | (writable ? PROT_WRITE : 0),
		 MAP_SHARED | (at ? MAP_FIXED : 0), be->gntdev, op.index);
	if (p == MAP_FAILED)
		die("mapping reference %u: %s", ref, strerror(errno));
	return p;
}

static void put_text(struct backend *be, const char *node, const char *text)
{
	if (!xs_write_raw(&be->fe, node, text, strlen(text)))
		die("writing %s", node);
}

/* No completion pages: it does not write them. */
static void offer(struct backend *be, const char *limits)
{
	char features[32];

	snprintf(features, sizeof(features), "%x",
		 (unsigned int)(FROZEN_FEATURES & ~XNEM_FEAT_CPAGE));
	put_text(be, "versions", "1 1");
	put_text(be, "features", features);
	put_text(be, "limits", limits);
	put_text(be, "fabric-id", FABRIC);
	set_state(&be->fe, STATE_INIT_WAIT);
}

static void start(struct backend *be, const char *guest)
{
	struct frontend *fe = &be->fe;
	char text[XS_MAX + 1];

	memset(be, 0, sizeof(*be));
	fe->q = fe->queues;
	be->guest = strtoul(guest, NULL, 10);
	fe->xenbus = open("/dev/xen/xenbus", O_RDWR | O_CLOEXEC);
	fe->evtchn = open("/dev/xen/evtchn", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	be->gntdev = open("/dev/xen/gntdev", O_RDWR | O_CLOEXEC);
	if (fe->xenbus < 0 || fe->evtchn < 0 || be->gntdev < 0)
		die("/dev/xen/{xenbus,evtchn,gntdev}: %s", strerror(errno));
	snprintf(fe->dir, sizeof(fe->dir), "backend/xnem/%u/0", be->guest);
	if (!xs_read(fe, fe->dir, "frontend", text))
		die("no device of domain %s", guest);
	snprintf(fe->backend_dir, sizeof(fe->backend_dir), "%.*s", 127, text);
}

static void bind_port(struct backend *be)
{
	char text[XS_MAX + 1];
	uint32_t op[2] = { be->guest };
	int port;

	if (!xs_read(&be->fe, be->fe.backend_dir, "queue-0/event-channel", text))
		die("no event channel");
	op[1] = strtoul(text, NULL, 10);
	port = ioctl(be->fe.evtchn, EVTCHN_BIND_INTERDOMAIN, op);
	if (port < 0)
		die("binding port %u: %s", op[1], strerror(errno));
	be->fe.q->port = port;
}

/* The pages of a ring, one behind the other. */
static void *need_ring(struct backend *be, const char *node, uint32_t pages)
{
	unsigned char *area = mmap(NULL, (size_t)pages * XNEM_PAGE_SIZE, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[XS_MAX + 1], *s = text;
	uint32_t i;

	if (!xs_read(&be->fe, be->fe.backend_dir, node, text))
		die("no %s", node);
	for (i = 0; i < pages; i++)
		map_page(be, strtoul(s, &s, 10), true, area + i * XNEM_PAGE_SIZE);
	return area;
}

static uint32_t ring_pages(struct backend *be, const char *node)
{
	char text[XS_MAX + 1], *s;
	uint32_t n = 1;

	if (!xs_read(&be->fe, be->fe.backend_dir, node, text))
		die("no %s", node);
	for (s = text; *s; s++)
		n += *s == ' ';
	return n;
}

static bool join(struct backend *be)
{
	struct frontend *fe = &be->fe;
	uint32_t pages;

	if (!wait_peer(fe, STATE_INITIALISED, STATE_CONNECTED, PATIENCE_MS))
		return false;
	fe->q->header = need_ring(be, "queue-0/header-ref", 1);
	pages = ring_pages(be, "queue-0/sq-refs");
	fe->q->sq = need_ring(be, "queue-0/sq-refs", pages);
	fe->q->sq_size = pages * XNEM_SQ_SLOTS_PER_PAGE;
	pages = ring_pages(be, "queue-0/cq-refs");
	fe->q->cq = need_ring(be, "queue-0/cq-refs", pages);
	fe->q->cq_size = pages * XNEM_CQ_SLOTS_PER_PAGE;
	bind_port(be);
	set_state(fe, STATE_CONNECTED);
	return wait_peer(fe, STATE_CONNECTED, STATE_CONNECTED, PATIENCE_MS);
}

/* As a backend does that is honest in this. */
static void let_go(struct backend *be)
{
	struct frontend *fe = &be->fe;

	munmap(fe->q->header, XNEM_PAGE_SIZE);
	munmap(fe->q->sq, fe->q->sq_size * sizeof(fe->q->sq[0]));
	munmap(fe->q->cq, fe->q->cq_size * sizeof(fe->q->cq[0]));
	close(be->gntdev);
	be->gntdev = open("/dev/xen/gntdev", O_RDWR | O_CLOEXEC);
	if (be->gntdev < 0 || ioctl(fe->evtchn, EVTCHN_UNBIND, &fe->q->port))
		die("letting go of a connection: %s", strerror(errno));
}

/* From whatever state the frontend is in to a device that works. */
static bool connect_guest(struct backend *be)
{
	if (peer_state(&be->fe) != STATE_INITIALISING) {
		set_state(&be->fe, STATE_CLOSED);
		if (!wait_peer(&be->fe, STATE_INITIALISING, STATE_INITIALISING, PATIENCE_MS))
			return false;
	}
	offer(be, GOOD_LIMITS);
	return join(be);
}

/* ---- answering ---- */

static void answer(struct backend *be, uint32_t id, uint16_t status, uint64_t bytes, uint64_t d0,
		   uint64_t d1)
{
	be->fe.q->cq[be->cq_prod++ % be->fe.q->cq_size] = (struct xnem_completion){
		.id = id, .status = status, .bytes_done = bytes, .data = { d0, d1 }
	};
}

static void show(struct backend *be)
{
	store_release(&be->fe.q->header->cq.prod, be->cq_prod);
	full_barrier();
	notify(&be->fe);
}

struct attack {
	const char *name;
	/** The first copy that is asked for; NULL: before any. */
	void (*on_copy)(struct backend *be, const struct xnem_request *req);
	/** Instead of serving anything; 0 when all is right. */
	int (*instead)(struct backend *be);
	/** For it the frontend ends the device. */
	bool cut;
	/** Refuses the end of regions. */
	bool holds;
};

static void serve_one(struct backend *be, const struct xnem_request *req, const struct attack *how,
		      bool *attacked)
{
	switch (req->op) {
	case XNEM_OP_REGISTER:
		be->data_ref = req->u.reg.ref[0];
		be->regions++;
		answer(be, req->id, XNEM_ST_OK, 0, be->regions, 42);
		break;
	case XNEM_OP_OPEN_CONTEXT:
		answer(be, req->id, XNEM_ST_OK, 0, 1000, 42);
		break;
	case XNEM_OP_COPY:
		if (how->on_copy && !*attacked) {
			*attacked = true;
			how->on_copy(be, req);
			show(be);
			printf("attacked\n");
			fflush(stdout);
			return;
		}
		answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
		break;
	case XNEM_OP_DEREGISTER:
	case XNEM_OP_CLOSE_CONTEXT:
		if (how->holds && !*attacked) {
			*attacked = true;
			answer(be, req->id, XNEM_ST_BUSY, 0, 0, 0);
			printf("attacked\n");
			fflush(stdout);
			break;
		}
		answer(be, req->id, XNEM_ST_OK, 0, 0, 0);
		break;
	default:
		answer(be, req->id, XNEM_ST_OK, 0, 0, 0);
		break;
	}
}

/* Answers requests for a while. */
static void serve(struct backend *be, const struct attack *how, bool *attacked, uint32_t ms)
{
	uint64_t until = now_ms() + ms;

	while (!over && now_ms() < until) {
		uint32_t prod = load_acquire(&be->fe.q->header->sq.prod);

		if (prod == be->sq_cons) {
			usleep(1000);
			continue;
		}
		/* An attack may have served some itself. */
		while ((int32_t)(prod - be->sq_cons) > 0) {
			struct xnem_request req = be->fe.q->sq[be->sq_cons++ % be->fe.q->sq_size];

			store_release(&be->fe.q->header->sq.cons, be->sq_cons);
			serve_one(be, &req, how, attacked);
		}
		show(be);
	}
}

/* ---- attacks ---- */

static void wrong_id(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id + 1, XNEM_ST_OK, req->u.copy.length, 0, 0);
}

static void id_beyond(struct backend *be, const struct xnem_request *req)
{
	answer(be, UINT32_MAX - req->id, XNEM_ST_OK, 0, 0, 0);
}

static void twice(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
}

static void too_many_bytes(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length + 1, 0, 0);
}

static void too_few_bytes(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length - 1, 0, 0);
}

static void huge_bytes(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id, XNEM_ST_FAULT, UINT64_MAX, 0, 0);
}

static void no_status(struct backend *be, const struct xnem_request *req)
{
	answer(be, req->id, XNEM_ST_MAX + 1, 0, 0, 0);
}

static void completion_ahead(struct backend *be, const struct xnem_request *req)
{
	(void)req;
	be->cq_prod += be->fe.q->cq_size + 1;
}

static void completion_behind(struct backend *be, const struct xnem_request *req)
{
	(void)req;
	be->cq_prod--;
}

static void submission_ahead(struct backend *be, const struct xnem_request *req)
{
	(void)req;
	/* Seen when the process posts its next one. */
	store_release(&be->fe.q->header->sq.cons, be->sq_cons + 1000);
	answer(be, req->id, XNEM_ST_FAULT, 0, 0, 0);
}

static void window_out_of_turn(struct backend *be, const struct xnem_request *req)
{
	(void)req;
	be->fe.q->header->want[0].region_id = 1;
	be->fe.q->header->want[0].nr_pages = 1;
	store_release(&be->fe.q->header->want[0].seq, 5);
	__atomic_fetch_or(&be->fe.q->header->attention.windows, 1, __ATOMIC_SEQ_CST);
}

static void nothing(struct backend *be, const struct xnem_request *req)
{
	(void)be;
	(void)req;
}

/* Events without end, with bits for contexts that are not there and windows of nothing. */
static void storm(struct backend *be, const struct xnem_request *req)
{
	uint64_t until = now_ms() + 3000, seed = 5;
	uint32_t n, i;

	for (n = 0; n % 64 || now_ms() < until; n++) {
		for (i = 0; i < 4; i++)
			be->fe.q->header->attention.contexts[rnd(&seed) % 32] = rnd(&seed);
		be->fe.q->header->attention.windows = 0xfffffff0;
		notify(&be->fe);
	}
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
}

/* Wants of regions that are not there, or beyond them: each is refused. */
static void wants(struct backend *be, const struct xnem_request *req)
{
	static const struct xnem_want w[] = {
		{ .region_id = 1, .nr_pages = 1 },
		{ .region_id = UINT64_MAX, .page = UINT32_MAX, .nr_pages = UINT32_MAX },
		{ .region_id = 2, .page = 0x7fffffff, .nr_pages = 0x80000001 },
		{ .region_id = 1, .nr_pages = 1, .pad = { 1 } },
		{},
	};
	static const struct attack none;
	uint32_t i, before;
	bool unused = true;

	for (i = 0; i < sizeof(w) / sizeof(w[0]); i++) {
		struct xnem_want *to = &be->fe.q->header->want[0];

		*to = w[i];
		store_release(&to->seq, i + 1);
		__atomic_fetch_or(&be->fe.q->header->attention.windows, 1, __ATOMIC_SEQ_CST);
		notify(&be->fe);
		before = be->sq_cons;
		while (be->sq_cons == before && !over) {
			const struct xnem_request *d =
				&be->fe.q->sq[be->sq_cons % be->fe.q->sq_size];

			if (load_acquire(&be->fe.q->header->sq.prod) != be->sq_cons &&
			    d->op == XNEM_OP_DESCRIBE && d->u.describe.nr_pages)
				die("want %u was granted", i);
			serve(be, &none, &unused, 20);
		}
	}
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
}

/* Maps the data page, and keeps it while all ends as it should. */
static void keep(struct backend *be, const struct xnem_request *req)
{
	volatile unsigned char *p = map_page(be, be->data_ref, true, NULL);

	/* It could write there, too: a region's whole pages are open to it. */
	(void)p[0];
	answer(be, req->id, XNEM_ST_OK, req->u.copy.length, 0, 0);
}

/* Limits, one after the other; between them a device that works. */
static int limits(struct backend *be)
{
	static const char *const wrong[] = {
		"",
		"garbage",
		"queues=1",
		"queues=0 sq-order=1 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=5 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=1 cq-order=31 inflight=64 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=1 cq-order=1 inflight=0 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=1 cq-order=1 inflight=-1 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=1 cq-order=1 inflight=64 contexts=1025 regions=64 region-pages=64 pages=64",
		"queues=4294967296 sq-order=1 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 pages=64",
		"queues=1 sq-order=1 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 pages=64 "
		"windows=17 window-pages=4",
		"queues=1 sq-order=1 cq-order=1 inflight=64 contexts=64 regions=64 region-pages=64 pages=64 "
		"windows=16 window-pages=4294967295",
	};
	/* Right, as xnemif.h has it: the frontend takes what it can use. */
	static const char *const odd[] = {
		"queues=4294967295 sq-order=4 cq-order=4 inflight=4294967295 contexts=1024 "
		"regions=4294967295 region-pages=4294967295 pages=4294967295 windows=16 "
		"window-pages=1024 more=1",
		"queues=1 sq-order=0 cq-order=0 inflight=1 contexts=1 regions=1 region-pages=1 "
		"pages=1 windows=16 window-pages=1024",
		"pages=2 region-pages=1 regions=1 contexts=1 inflight=1 cq-order=4 sq-order=0 "
		"queues=8",
	};
	uint32_t i, n = sizeof(wrong) / sizeof(wrong[0]);

	let_go(be);
	for (i = 0; i < n + sizeof(odd) / sizeof(odd[0]); i++) {
		const char *text = i < n ? wrong[i] : odd[i - n];

		note("%s", text);
		set_state(&be->fe, STATE_CLOSED);
		EXPECT(true, wait_peer(&be->fe, STATE_INITIALISING, STATE_INITIALISING, 5000));
		offer(be, text);
		if (i < n)
			EXPECT(true, wait_peer(&be->fe, STATE_CLOSING, STATE_CLOSED, 5000));
		else
			EXPECT(true,
			       wait_peer(&be->fe, STATE_INITIALISED, STATE_INITIALISED, 5000));
		set_state(&be->fe, STATE_CLOSED);
		EXPECT(true, wait_peer(&be->fe, STATE_INITIALISING, STATE_INITIALISING, 5000));
		/* It forgets failures when it connects. */
		if (i % 3 == 2) {
			EXPECT(true, connect_guest(be));
			let_go(be);
		}
	}
	return 0;
}

/* Says that it has let go, and has not: of every connection a few pages less for the guest. */
static int keep_rings(struct backend *be)
{
	uint32_t i;

	for (i = 1; i < 50; i++) {
		set_state(&be->fe, STATE_CLOSED);
		if (!wait_peer(&be->fe, STATE_INITIALISING, STATE_CLOSED, 5000) ||
		    peer_state(&be->fe) == STATE_CLOSED)
			break;
		offer(be, GOOD_LIMITS);
		if (!join(be))
			break;
	}
	note("%u connections", i);
	EXPECT(true, i < 10);
	EXPECT(STATE_CLOSED, peer_state(&be->fe));
	return 0;
}

static int flap(struct backend *be)
{
	uint64_t seed = 31337;
	uint32_t round, i;

	for (round = 0; round < 25; round++)
		for (i = 0; i < 8; i++)
			set_state(&be->fe, rnd(&seed) % 9);
	return 0;
}

static const struct attack attacks[] = {
	{ "wrong-id", wrong_id, NULL, true, false },
	{ "id-beyond", id_beyond, NULL, true, false },
	{ "answered-twice", twice, NULL, true, false },
	{ "too-many-bytes", too_many_bytes, NULL, true, false },
	{ "too-few-bytes", too_few_bytes, NULL, true, false },
	{ "huge-bytes", huge_bytes, NULL, true, false },
	{ "no-status", no_status, NULL, true, false },
	{ "completion-ahead", completion_ahead, NULL, true, false },
	{ "completion-behind", completion_behind, NULL, true, false },
	{ "submission-ahead", submission_ahead, NULL, true, false },
	{ "window-out-of-turn", window_out_of_turn, NULL, true, false },
	{ "refuses-to-let-go", NULL, NULL, true, true },
	{ "storm", storm, NULL, false, false },
	{ "wants", wants, NULL, false, false },
	{ "never", nothing, NULL, false, false },
	{ "keep", keep, NULL, false, false },
	{ "limits", NULL, limits, false, false },
	{ "keep-rings", NULL, keep_rings, false, false },
	{ "flap", NULL, flap, false, false },
};

static int run(struct backend *be, const struct attack *how)
{
	uint64_t until;
	bool attacked = false;

	if (!connect_guest(be))
		die("the guest's frontend does not connect: it is in state %d",
		    peer_state(&be->fe));
	printf("connected\n");
	fflush(stdout);
	if (how->instead) {
		int failed = how->instead(be);

		printf("attacked\n");
		return failed;
	}
	for (until = now_ms() + 60000; !attacked && !over && now_ms() < until;)
		serve(be, how, &attacked, 20);
	EXPECT(true, attacked || over);
	if (how->cut) {
		until = now_ms() + 5000;
		/* It answers nothing any more, and what is asked for need not be. */
		while (peer_state(&be->fe) == STATE_CONNECTED && now_ms() < until && !over)
			serve(be, how, &attacked, 20);
		EXPECT(true, wait_peer(&be->fe, STATE_CLOSING, STATE_CLOSED, 100));
		return 0;
	}
	if (how->on_copy == nothing)
		while (!over)
			usleep(10000);
	serve(be, how, &attacked, 120000);
	return 0;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = end };
	struct backend be;
	unsigned int i;
	int failed;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
			printf("%s%s\n", attacks[i].name, attacks[i].cut ? " cut" : "");
		return 0;
	}
	for (i = 0; argc == 3 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[1], attacks[i].name))
			continue;
		sigaction(SIGTERM, &sa, NULL);
		start(&be, argv[2]);
		failed = run(&be, &attacks[i]);
		/* Everything is unmapped by the end of the process. */
		return failed;
	}
	fputs(usage_text, stderr);
	return 64;
}
