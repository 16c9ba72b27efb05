// SPDX-License-Identifier: MIT
/*
 * xnem-serve - a server in an event loop, and its clients
 *
 *	xnem-serve PORT [COUNT]		serves; ends after COUNT jobs
 *	xnem-serve HOST PORT [BYTES]	a client in another VM, with one job
 *
 * A job: turn a buffer of the client into capitals.  The client sends a message
 * with the buffer's name.  The server copies the buffer to itself, does the work
 * and copies it back; that second copy tells the client that it is done
 * (XNEM_OP_NOTIFY_DST).  So a job costs the client no connection and the server
 * no thread: one message, two copies, one notification.
 *
 * The server sleeps in epoll_wait(), on xnem_fd() beside its sockets.  The
 * client shows the other way: an eventfd, for a program that has one already.
 * Neither registers anything by itself: memory is named by its address, and
 * the registration cache does the rest.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "must.h"
#include "tcp.h"
#include "xnem.h"

#define MAX_BYTES (16u << 20)
#define MAX_EVENTS 16

/* what a client asks for: the bytes of a message, 48 of at most 64 */
struct order {
	struct xnem_cookie cookie;
	uint64_t offset;
	uint64_t length;
	/* given back with the notification */
	uint64_t number;
};

/* a job that the server is at */
struct job {
	struct order order;
	enum { READING, WRITING } step;
	unsigned char *data;
};

/* ---- the server ---- */

struct server {
	struct xnem *ctx;
	struct xnem_address address;
	int epoll, listener;
	unsigned long done, failed;
};

static void end_job(struct server *s, struct job *job, int err)
{
	if (err) {
		/* the client's doing, mostly: it has gone, or its cookie was wrong */
		fprintf(stderr, "job: %s\n", xnem_strerror(err));
		s->failed++;
	} else {
		s->done++;
	}
	free(job->data);
	free(job);
}

/* starts the copy that comes next; its end is an event with the job as user_data */
static void start_copy(struct server *s, struct job *job)
{
	struct xnem_op op = {
		.kind = XNEM_KIND_COPY,
		.user_data = (uintptr_t)job,
		.length = job->order.length,
	};
	int n;

	if (job->step == READING) {
		op.src = job->order.cookie;
		op.src_offset = job->order.offset;
		op.flags = XNEM_OP_DST_ADDR;
		op.dst_offset = (uintptr_t)job->data;
	} else {
		op.flags = XNEM_OP_SRC_ADDR | XNEM_OP_NOTIFY_DST;
		op.src_offset = (uintptr_t)job->data;
		op.dst = job->order.cookie;
		op.dst_offset = job->order.offset;
		op.immediate = job->order.number;
	}
	n = xnem_submit(s->ctx, &op, 1);
	/* a server of many clients would keep it (-EAGAIN) and try again */
	if (n != 1)
		end_job(s, job, n);
}

static void take_message(struct server *s, const struct xnem_message *m)
{
	struct job *job = calloc(1, sizeof(*job));

	must_not_fail("memory", job);
	if (m->length != sizeof(job->order)) {
		end_job(s, job, -EINVAL);
		return;
	}
	memcpy(&job->order, m->data, sizeof(job->order));
	/* what comes from others is checked: here the length */
	if (!job->order.length || job->order.length > MAX_BYTES) {
		end_job(s, job, -EINVAL);
		return;
	}
	job->data = malloc(job->order.length);
	must_not_fail("memory", job->data);
	start_copy(s, job);
}

static void take_event(struct server *s, const struct xnem_event *e)
{
	struct job *job = (struct job *)(uintptr_t)e->user_data;

	/* somebody has told us of a copy of his: nothing that we have asked for */
	if (e->kind != XNEM_EVENT_DONE)
		return;
	if (e->status || job->step == WRITING) {
		end_job(s, job, e->status);
		return;
	}
	for (uint64_t i = 0; i < job->order.length; i++)
		job->data[i] = (unsigned char)toupper(job->data[i]);
	job->step = WRITING;
	start_copy(s, job);
}

/*
 * xnem_fd() was readable: everything that is there has to be taken, events
 * first (which is what makes it not readable any more), then messages.
 */
static void take_all(struct server *s)
{
	struct xnem_event events[MAX_EVENTS];
	struct xnem_message message;
	int n;

	do {
		n = xnem_get_events(s->ctx, events, 0, MAX_EVENTS, 0);
		must("events", n);
		for (int i = 0; i < n; i++)
			take_event(s, &events[i]);
	} while (n == MAX_EVENTS);
	while ((n = xnem_recv(s->ctx, &message, 0)) == 0)
		take_message(s, &message);
	if (n != -EAGAIN)
		must("messages", n);
}

/* who connects is told the address, no more */
static void take_client(struct server *s)
{
	int sock = accept(s->listener, NULL, NULL);

	if (sock < 0)
		return;
	tcp_send(sock, &s->address, sizeof(s->address));
	close(sock);
}

static void watch(struct server *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	must_not_fail("epoll_ctl", !epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event));
}

static void serve(struct xnem *ctx, unsigned short port, unsigned long count)
{
	struct server s = { .ctx = ctx };
	int fd;

	must("address", xnem_get_address(ctx, &s.address));
	fd = xnem_fd(ctx);
	must("descriptor", fd);
	s.listener = tcp_listen(port);
	must_not_fail("listen", s.listener >= 0);
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	must_not_fail("epoll_create1", s.epoll >= 0);
	watch(&s, s.listener);
	watch(&s, fd);
	/* before the first sleep: what has come until now nobody announces again */
	take_all(&s);
	printf("listening\n");
	fflush(stdout);

	while (!count || s.done + s.failed < count) {
		struct epoll_event ready[2];
		int n = epoll_wait(s.epoll, ready, 2, -1);

		must_not_fail("epoll_wait", n >= 0 || errno == EINTR);
		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd == fd)
				take_all(&s);
			else
				take_client(&s);
		}
	}
	printf("jobs=%lu failed=%lu\n", s.done, s.failed);
	close(s.listener);
	close(s.epoll);
}

/* ---- a client ---- */

static void client(struct xnem *ctx, const char *host, const char *port, uint64_t bytes)
{
	struct order order = { .length = bytes, .number = 0x1234 };
	struct xnem_address server;
	struct xnem_event event;
	struct xnem_use use;
	unsigned char *data = malloc(bytes);
	struct pollfd p = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	uint64_t signals;
	int sock, n;

	must_not_fail("memory", data && p.fd >= 0);
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)("abcdefghijklmnopqrstuvwxyz"[i % 26]);
	sock = tcp_connect(host, port);
	must_not_fail("connection", sock >= 0 && tcp_recv(sock, &server, sizeof(server)));
	close(sock);
	must("eventfd", xnem_set_eventfd(ctx, p.fd));

	/*
	 * A name for the buffer.  A second job with the same buffer would find
	 * it in the cache.
	 */
	must("cache", xnem_cache_get(ctx, data, bytes, XNEM_READ | XNEM_WRITE, &use));
	order.cookie = use.cookie;
	order.offset = use.offset;
	/* five seconds for the server to make room in its inbox */
	must("message", xnem_send(ctx, &server, &order, sizeof(order), 5000000000));

	/* its eventfd also counts the end of our own requests: the message's */
	for (;;) {
		n = xnem_get_events(ctx, &event, 0, 1, 0);
		must("events", n);
		if (n && event.kind == XNEM_EVENT_NOTIFY && event.user_data == order.number)
			break;
		if (n)
			continue;
		must_not_fail("nothing has come in 30 s: poll", poll(&p, 1, 30000) > 0);
		must_not_fail("read", read(p.fd, &signals, sizeof(signals)) == sizeof(signals));
	}
	must("cache", xnem_cache_put(ctx, &use));
	for (uint64_t i = 0; i < bytes; i++)
		if (data[i] != "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 26]) {
			fprintf(stderr, "xnem-serve: byte %ju is wrong\n", (uintmax_t)i);
			exit(1);
		}
	printf("bytes=%ju all right\n", (uintmax_t)event.bytes);
	close(p.fd);
	free(data);
}

int main(int argc, char **argv)
{
	bool server = argc > 1 && strspn(argv[1], "0123456789") == strlen(argv[1]);
	struct xnem *ctx;

	if (argc < (server ? 2 : 3) || argc > (server ? 3 : 4)) {
		fprintf(stderr, "usage: xnem-serve PORT [COUNT]\n"
				"       xnem-serve HOST PORT [BYTES]\n");
		return 64;
	}
	must("open", xnem_open(NULL, &ctx));
	if (server)
		serve(ctx, (unsigned short)atoi(argv[1]),
		      argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
	else
		client(ctx, argv[1], argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 100000);
	must("close", xnem_close(ctx));
	return 0;
}
