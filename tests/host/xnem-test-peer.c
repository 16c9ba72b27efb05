// SPDX-License-Identifier: MIT
/*
 * xnem-test-peer.c - processes that do as they are told; see xnem-test-peer.h
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xnem-test-peer.h"
#include "xnem-test.h"

enum what {
	C_HELLO,
	C_OPEN,
	C_CLOSE,
	C_MAP,
	C_UNMAP,
	C_FILL,
	C_CHECK,
	C_SET,
	C_CHECK_BYTE,
	C_WRITE,
	C_READ,
	C_IOCTL,
	C_POLL,
	C_WAIT32,
	C_INBOX,
	C_RUN,
	C_GRANT,
	C_FILL_PIECES,
	C_CHECK_PIECES,
	C_STOP,
	C_RESET,
	C_KILL,
};

/** A command and its answer; @len bytes follow, there or back. */
struct command {
	uint32_t what;
	uint32_t len;
	uint64_t arg[7];
	int64_t ret;
};

/* what a process that is told has */
static int fd = -1;
static unsigned char *scratch;
static unsigned char *pages;
static uint64_t pages_bytes;
static unsigned char payload[SCRATCH + sizeof(struct command)];
/* what it has mapped and not unmapped */
static struct {
	unsigned char *addr;
	uint64_t bytes;
} maps[64];

static void note_map(void *addr, uint64_t bytes)
{
	for (unsigned int i = 0; i < 64; i++)
		if (!maps[i].addr) {
			maps[i].addr = addr;
			maps[i].bytes = bytes;
			return;
		}
	/* more than any test needs */
	abort();
}

static void forget_map(const void *addr)
{
	for (unsigned int i = 0; i < 64; i++)
		if (maps[i].addr == addr)
			maps[i].addr = NULL;
}

/* ---- doing ---- */

static int64_t do_hello(struct command *c)
{
	if (!scratch) {
		scratch = mmap(NULL, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		if (scratch == MAP_FAILED) {
			scratch = NULL;
			return -errno;
		}
	}
	c->arg[0] = (uintptr_t)scratch;
	return getpid();
}

static int64_t do_open(struct command *c)
{
	struct xnem_info info = { 0 };
	void *map;

	if (fd >= 0)
		return -EBUSY;
	fd = open((const char *)payload, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	c->arg[1] = 0;
	if (!c->arg[0])
		return 0;
	if (ioctl(fd, XNEM_IOC_INFO, &info))
		return -errno;
	if (!info.pages_bytes)
		return -EOPNOTSUPP;
	map = mmap(NULL, info.pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	pages = map;
	pages_bytes = info.pages_bytes;
	/* Now there is an inbox, and it is known how large. */
	if (ioctl(fd, XNEM_IOC_INFO, &info))
		return -errno;
	c->arg[1] = (uintptr_t)pages;
	c->arg[2] = info.inbox_slots;
	return 0;
}

static int64_t do_map(const struct command *c)
{
	const int rw = PROT_READ | PROT_WRITE;
	uint64_t bytes = c->arg[1], times = c->arg[2];
	unsigned char *base;
	int file;

	switch (c->arg[0]) {
	case K_PRIVATE:
		base = mmap(NULL, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	case K_SHARED:
		base = mmap(NULL, bytes, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		break;
	case K_MEMFD:
	case K_REPEATED:
		if (c->arg[0] == K_MEMFD)
			times = 1;
		file = memfd_create("xnem-test", MFD_CLOEXEC);
		if (file < 0 || ftruncate(file, (off_t)bytes))
			return -errno;
		base = mmap(NULL, bytes * times, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		for (uint64_t i = 0; base != MAP_FAILED && i < times; i++)
			if (mmap(base + i * bytes, bytes, rw, MAP_SHARED | MAP_FIXED, file, 0) ==
			    MAP_FAILED)
				return -errno;
		close(file);
		break;
	default:
		return -EINVAL;
	}
	if (base == MAP_FAILED)
		return -errno;
	note_map(base, bytes * (c->arg[0] == K_REPEATED ? times : 1));
	return (int64_t)(uintptr_t)base;
}

static int64_t do_close(void)
{
	int err = fd < 0 ? -EBADF : close(fd) ? -errno : 0;

	fd = -1;
	if (pages)
		munmap(pages, pages_bytes);
	pages = NULL;
	return err;
}

static int64_t do_reset(void)
{
	do_close();
	for (unsigned int i = 0; i < 64; i++)
		if (maps[i].addr) {
			munmap(maps[i].addr, maps[i].bytes);
			maps[i].addr = NULL;
		}
	return 0;
}

/* Until the word at an address has a value. */
static int64_t do_wait32(const struct command *c)
{
	const uint32_t *word = (const uint32_t *)(uintptr_t)c->arg[0];
	uint64_t end = now_ns() + c->arg[2];

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != (uint32_t)c->arg[1]) {
		if (now_ns() >= end)
			return -ETIME;
		usleep(200);
	}
	return 0;
}

/* Someone else stops it, and lets it go on after that time. */
static int64_t do_stop(const struct command *c)
{
	pid_t target = getpid(), helper = fork();

	if (helper < 0)
		return -errno;
	if (helper > 0)
		return waitpid(helper, NULL, 0) == helper ? 0 : -errno;
	/* a grandchild, so that nobody has to wait for it */
	if (fork())
		_exit(0);
	usleep(20000);
	kill(target, SIGSTOP);
	usleep((useconds_t)c->arg[0] * 1000);
	kill(target, SIGCONT);
	_exit(0);
}

static int64_t do_poll(struct command *c)
{
	struct pollfd p = { .fd = fd, .events = (short)c->arg[0] };
	int n = poll(&p, 1, (int)c->arg[1]);

	return n < 0 ? -errno : n ? p.revents : 0;
}

/* Slots that are there, up to arg[4] of them, into payload; waits for the first. */
static int64_t do_inbox(struct command *c)
{
	const struct xnem_inbox_slot *slots = (const void *)(uintptr_t)c->arg[0];
	struct xnem_inbox_slot *out = (void *)payload;
	uint32_t *control = (void *)(uintptr_t)c->arg[1];
	uint32_t mask = (uint32_t)c->arg[2] - 1, cons = (uint32_t)c->arg[3];
	uint64_t end = now_ns() + c->arg[5], n = 0;

	for (;;) {
		const struct xnem_inbox_slot *slot = &slots[cons & mask];

		/* The rest of it is there when seq is. */
		if (n < c->arg[4] && __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) == cons + 1) {
			out[n++] = *slot;
			__atomic_store_n(control, ++cons, __ATOMIC_RELEASE);
			continue;
		}
		if (n)
			return (int64_t)n;
		if (now_ns() >= end)
			return -ETIME;
		usleep(200);
	}
}

/* A request in payload; its completion comes back there. */
static int64_t do_run(void)
{
	struct xnem_submit s = { .reqs = (uintptr_t)payload, .count = 1 };
	struct xnem_get_completions g = { .completions = (uintptr_t)payload,
					  .max_count = 1,
					  .min_count = 1,
					  .timeout_ns = WAIT_NS };

	if (ioctl(fd, XNEM_IOC_SUBMIT, &s) || ioctl(fd, XNEM_IOC_COMPLETE, &g))
		return -errno;
	return g.count == 1 ? 0 : -EPROTO;
}

/* A page for another domain, by the kernel's gntalloc; as long as this process lives. */
static int64_t do_grant(const struct command *c)
{
	struct {
		uint16_t domid, flags;
		uint32_t count;
		uint64_t index;
		uint32_t gref[1];
	} alloc = { .domid = (uint16_t)c->arg[0], .flags = 1, .count = 1 };
	int file = open("/dev/xen/gntalloc", O_RDWR | O_CLOEXEC);

	if (file < 0 || ioctl(file, _IOC(_IOC_NONE, 'G', 5, 24), &alloc))
		return -errno;
	return alloc.gref[0];
}

static void do_fill_pieces(const struct command *c)
{
	const struct xnem_seg *seg = (const void *)payload;
	uint64_t pos = 0;

	for (uint64_t i = 0; i < c->arg[0]; i++) {
		pattern_fill((void *)(uintptr_t)seg[i].addr, seg[i].length, c->arg[1], pos);
		pos += seg[i].length;
	}
}

/*
 * Bytes [from, from + len) of the pieces are the pattern of seed at their position
 * plus shift; all others, and what is between the pieces, GUARD_BYTE.  Leaves GUARD_BYTE
 * everywhere.  0, or 1 + the piece that is wrong, 1 + the number of pieces: between them.
 */
static int64_t do_check_pieces(const struct command *c)
{
	const struct xnem_seg *seg = (const void *)payload;
	uint64_t nr = c->arg[0], from = c->arg[3], len = c->arg[4], pos = 0;
	unsigned char *base = (void *)(uintptr_t)c->arg[1];

	for (uint64_t i = 0; i < nr; i++) {
		unsigned char *p = (void *)(uintptr_t)seg[i].addr;
		uint64_t end = pos + seg[i].length;
		uint64_t a = from > pos ? from : pos, b = from + len < end ? from + len : end;

		if (a >= b)
			a = b = end;
		if (byte_check(p, a - pos, GUARD_BYTE) != a - pos ||
		    pattern_check(p + (a - pos), b - a, c->arg[5], a + c->arg[6]) != b - a ||
		    byte_check(p + (b - pos), end - b, GUARD_BYTE) != end - b)
			return (int64_t)i + 1;
		memset(p, GUARD_BYTE, seg[i].length);
		pos = end;
	}
	return byte_check(base, c->arg[2], GUARD_BYTE) == c->arg[2] ? 0 : (int64_t)nr + 1;
}

/** Does it in this process; what goes in and out besides is in payload. */
static void execute(struct command *c)
{
	void *at = (void *)(uintptr_t)c->arg[0];
	uint64_t bad;

	switch (c->what) {
	case C_HELLO:
		c->ret = do_hello(c);
		break;
	case C_OPEN:
		c->ret = do_open(c);
		break;
	case C_CLOSE:
		c->ret = do_close();
		break;
	case C_MAP:
		c->ret = do_map(c);
		break;
	case C_UNMAP:
		c->ret = munmap(at, c->arg[1]) ? -errno : 0;
		forget_map(at);
		break;
	case C_FILL:
		pattern_fill(at, c->arg[1], c->arg[2], c->arg[3]);
		c->ret = 0;
		break;
	case C_CHECK:
		bad = pattern_check(at, c->arg[1], c->arg[2], c->arg[3]);
		c->ret = bad == c->arg[1] ? 0 : (int64_t)bad + 1;
		break;
	case C_SET:
		memset(at, (int)c->arg[2], c->arg[1]);
		c->ret = 0;
		break;
	case C_CHECK_BYTE:
		bad = byte_check(at, c->arg[1], (unsigned char)c->arg[2]);
		c->ret = bad == c->arg[1] ? 0 : (int64_t)bad + 1;
		break;
	case C_WRITE:
		memcpy(at, payload, c->len);
		c->ret = 0;
		break;
	case C_READ:
		memcpy(payload, at, c->len);
		c->ret = 0;
		break;
	case C_IOCTL:
		c->ret = ioctl(fd, (unsigned long)c->arg[0], payload) < 0 ? -errno : 0;
		break;
	case C_POLL:
		c->ret = do_poll(c);
		break;
	case C_WAIT32:
		c->ret = do_wait32(c);
		break;
	case C_INBOX:
		c->ret = do_inbox(c);
		break;
	case C_RUN:
		c->ret = do_run();
		break;
	case C_GRANT:
		c->ret = do_grant(c);
		break;
	case C_FILL_PIECES:
		do_fill_pieces(c);
		c->ret = 0;
		break;
	case C_CHECK_PIECES:
		c->ret = do_check_pieces(c);
		break;
	case C_RESET:
		c->ret = do_reset();
		break;
	case C_STOP:
		c->ret = do_stop(c);
		break;
	case C_KILL:
		kill(getpid(), SIGKILL);
		break;
	default:
		c->ret = -ENOSYS;
	}
}

/* ---- telling ---- */

static int send_all(int sock, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int recv_all(int sock, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = recv(sock, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Which commands bring bytes along, and which bring them back. */
static bool carries_in(uint32_t what)
{
	return what == C_OPEN || what == C_WRITE || what == C_IOCTL || what == C_RUN ||
	       what == C_FILL_PIECES || what == C_CHECK_PIECES;
}

static bool carries_out(uint32_t what)
{
	return what == C_READ || what == C_IOCTL || what == C_RUN || what == C_INBOX;
}

/* Does not wait for the answer. */
static int send_command(struct peer *p, const struct command *c, const void *data)
{
	/* In one go: a packet for the command and one for its bytes take twice as long. */
	memcpy(payload, c, sizeof(*c));
	if (carries_in(c->what))
		memcpy(payload + sizeof(*c), data, c->len);
	return send_all(p->sock, payload, sizeof(*c) + (carries_in(c->what) ? c->len : 0));
}

static int64_t tell(struct peer *p, struct command *c, void *data)
{
	int err;

	if (c->len > SCRATCH)
		return -E2BIG;
	if (p->sock < 0) {
		if (data && carries_in(c->what))
			memcpy(payload, data, c->len);
		execute(c);
		if (data && carries_out(c->what))
			memcpy(data, payload, c->len);
		return c->ret;
	}
	err = send_command(p, c, data);
	if (!err)
		err = recv_all(p->sock, c, sizeof(*c));
	if (!err && carries_out(c->what))
		err = recv_all(p->sock, data, c->len);
	return err ? err : c->ret;
}

/* Until the other side has had enough. */
static void be_told(int sock)
{
	static unsigned char answer[sizeof(payload)];
	struct command c;

	while (!recv_all(sock, &c, sizeof(c))) {
		if (c.len > SCRATCH)
			return;
		if (carries_in(c.what) && recv_all(sock, payload, c.len))
			return;
		execute(&c);
		/* In one go, as commands are. */
		memcpy(answer, &c, sizeof(c));
		if (carries_out(c.what))
			memcpy(answer + sizeof(c), payload, c.len);
		if (send_all(sock, answer, sizeof(c) + (carries_out(c.what) ? c.len : 0)))
			return;
	}
}

/* ---- where they are from ---- */

static int hello(struct peer *p)
{
	struct command c = { .what = C_HELLO };
	int64_t ret = tell(p, &c, NULL);

	if (ret < 0)
		return (int)ret;
	p->its_pid = ret;
	p->scratch = c.arg[0];
	return 0;
}

int peer_self(struct peer *p)
{
	*p = (struct peer){ .sock = -1, .name = "self" };
	return hello(p);
}

int peer_fork(struct peer *p, const char *name)
{
	int pair[2];

	*p = (struct peer){ .name = name };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fflush(stdout);
	p->pid = fork();
	if (p->pid < 0)
		return -errno;
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		/* The parent's: nothing in here may be used. */
		if (fd >= 0)
			close(fd);
		fd = -1;
		pages = NULL;
		scratch = NULL;
		memset(maps, 0, sizeof(maps));
		be_told(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	p->sock = pair[0];
	return hello(p);
}

int peer_connect(struct peer *p, const char *host_port)
{
	struct addrinfo *list, hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	char host[64];
	const char *colon = strrchr(host_port, ':');
	int one = 1, err = -ECONNREFUSED;

	*p = (struct peer){ .sock = -1, .name = "peer" };
	if (!colon || (size_t)(colon - host_port) >= sizeof(host))
		return -EINVAL;
	memcpy(host, host_port, (size_t)(colon - host_port));
	host[colon - host_port] = 0;
	if (getaddrinfo(host, colon + 1, &hints, &list))
		return -EHOSTUNREACH;
	for (int i = 0; i < 100; i++) {
		p->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (p->sock >= 0 && !connect(p->sock, list->ai_addr, list->ai_addrlen)) {
			setsockopt(p->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			err = hello(p);
			break;
		}
		err = -errno;
		close(p->sock);
		usleep(100000);
	}
	freeaddrinfo(list);
	return err;
}

void peer_end(struct peer *p)
{
	if (p->sock >= 0) {
		/* Not only closed: other children may hold it as well. */
		shutdown(p->sock, SHUT_RDWR);
		close(p->sock);
	}
	if (p->pid)
		waitpid(p->pid, NULL, 0);
	*p = (struct peer){ .sock = -1, .name = "ended" };
}

int peer_kill(struct peer *p)
{
	struct command c = { .what = C_KILL };

	if (p->sock < 0)
		return -EINVAL;
	/* It cannot answer. */
	tell(p, &c, NULL);
	peer_end(p);
	return 0;
}

int peer_serve(unsigned int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	/* Children are not waited for. */
	signal(SIGCHLD, SIG_IGN);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(listener, 8))
		return -errno;
	printf("serving=%u\n", port);
	fflush(stdout);
	for (;;) {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (sock < 0)
			continue;
		setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			be_told(sock);
			_exit(0);
		}
		close(sock);
	}
}

/* ---- what they do ---- */

int peer_open(struct peer *p, const char *device, bool pages)
{
	struct command c = { .what = C_OPEN, .arg = { pages } };
	char path[256];
	int err;

	if (!device)
		device = getenv("XNEM_DEVICE");
	snprintf(path, sizeof(path), "%s", device ? device : "/dev/xnem0");
	c.len = (uint32_t)strlen(path) + 1;
	err = (int)tell(p, &c, path);
	p->pages = err ? 0 : c.arg[1];
	p->slots = err || !pages ? 0 : (uint32_t)c.arg[2];
	p->inbox_cons = p->cpage_cons = 0;
	return err;
}

int peer_close(struct peer *p)
{
	struct command c = { .what = C_CLOSE };

	p->pages = 0;
	return (int)tell(p, &c, NULL);
}

int64_t peer_map(struct peer *p, enum kind kind, uint64_t bytes, uint64_t arg)
{
	struct command c = { .what = C_MAP, .arg = { kind, bytes, arg } };

	return tell(p, &c, NULL);
}

int peer_unmap(struct peer *p, uint64_t addr, uint64_t bytes)
{
	struct command c = { .what = C_UNMAP, .arg = { addr, bytes } };

	return (int)tell(p, &c, NULL);
}

int peer_fill(struct peer *p, uint64_t addr, uint64_t len, uint64_t seed, uint64_t pos)
{
	struct command c = { .what = C_FILL, .arg = { addr, len, seed, pos } };

	return (int)tell(p, &c, NULL);
}

int64_t peer_check(struct peer *p, uint64_t addr, uint64_t len, uint64_t seed, uint64_t pos)
{
	struct command c = { .what = C_CHECK, .arg = { addr, len, seed, pos } };

	return tell(p, &c, NULL);
}

int peer_set(struct peer *p, uint64_t addr, uint64_t len, unsigned char byte)
{
	struct command c = { .what = C_SET, .arg = { addr, len, byte } };

	return (int)tell(p, &c, NULL);
}

int64_t peer_check_byte(struct peer *p, uint64_t addr, uint64_t len, unsigned char byte)
{
	struct command c = { .what = C_CHECK_BYTE, .arg = { addr, len, byte } };

	return tell(p, &c, NULL);
}

int peer_write(struct peer *p, uint64_t addr, const void *data, uint32_t len)
{
	struct command c = { .what = C_WRITE, .len = len, .arg = { addr } };

	return (int)tell(p, &c, (void *)(uintptr_t)data);
}

int peer_read(struct peer *p, uint64_t addr, void *data, uint32_t len)
{
	struct command c = { .what = C_READ, .len = len, .arg = { addr } };

	return (int)tell(p, &c, data);
}

int peer_ioctl(struct peer *p, unsigned long request, void *arg)
{
	struct command c = { .what = C_IOCTL, .len = _IOC_SIZE(request), .arg = { request } };

	return (int)tell(p, &c, arg);
}

int64_t peer_grant(struct peer *p, unsigned int domid)
{
	struct command c = { .what = C_GRANT, .arg = { domid } };

	return tell(p, &c, NULL);
}

int peer_fill_pieces(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t seed)
{
	struct command c = { .what = C_FILL_PIECES,
			     .len = nr * (uint32_t)sizeof(*seg),
			     .arg = { nr, seed } };

	return (int)tell(p, &c, (void *)(uintptr_t)seg);
}

int64_t peer_check_pieces(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t base,
			  uint64_t span, uint64_t from, uint64_t len, uint64_t seed, uint64_t shift)
{
	struct command c = { .what = C_CHECK_PIECES,
			     .len = nr * (uint32_t)sizeof(*seg),
			     .arg = { nr, base, span, from, len, seed, shift } };

	return tell(p, &c, (void *)(uintptr_t)seg);
}

int peer_poll(struct peer *p, int events, int timeout_ms)
{
	struct command c = { .what = C_POLL, .arg = { (uint64_t)events, (uint64_t)timeout_ms } };

	return (int)tell(p, &c, NULL);
}

int peer_wait32(struct peer *p, uint64_t addr, uint32_t value, int64_t timeout_ns)
{
	struct command c = { .what = C_WAIT32, .arg = { addr, value, (uint64_t)timeout_ns } };

	return (int)tell(p, &c, NULL);
}

int peer_reset(struct peer *p)
{
	struct command c = { .what = C_RESET };

	p->pages = 0;
	return (int)tell(p, &c, NULL);
}

int peer_stop(struct peer *p, unsigned int ms)
{
	struct command c = { .what = C_STOP, .arg = { ms } };

	return (int)tell(p, &c, NULL);
}

/* ---- made of these ---- */

int peer_info(struct peer *p, struct xnem_info *info)
{
	memset(info, 0, sizeof(*info));
	return peer_ioctl(p, XNEM_IOC_INFO, info);
}

int peer_stats(struct peer *p, struct xnem_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	return peer_ioctl(p, XNEM_IOC_STATS, stats);
}

int peer_register(struct peer *p, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags,
		  struct xnem_register *reg)
{
	*reg = (struct xnem_register){
		.addr = addr, .length = len, .access = access, .flags = flags
	};
	return peer_ioctl(p, XNEM_IOC_REGISTER, reg);
}

int peer_register_segs(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t len,
		       uint32_t access, uint32_t flags, struct xnem_register *reg)
{
	int err = peer_write(p, p->scratch, seg, nr * (uint32_t)sizeof(*seg));

	*reg = (struct xnem_register){ .addr = p->scratch,
				       .length = len,
				       .access = access,
				       .flags = flags,
				       .nr_segments = nr };
	return err ? err : peer_ioctl(p, XNEM_IOC_REGISTER, reg);
}

int peer_deregister(struct peer *p, const struct xnem_register *reg)
{
	struct xnem_deregister d = { .handle = reg->handle };

	return peer_ioctl(p, XNEM_IOC_DEREGISTER, &d);
}

int peer_submit(struct peer *p, const struct xnem_submit_req *reqs, uint32_t n)
{
	struct xnem_submit s = { .reqs = p->scratch, .count = n };
	int err = peer_write(p, p->scratch, reqs, n * (uint32_t)sizeof(*reqs));

	if (!err)
		err = peer_ioctl(p, XNEM_IOC_SUBMIT, &s);
	return err ? err : (int)s.submitted;
}

int peer_tell_later(struct peer *p, const struct xnem_submit_req *req)
{
	struct xnem_submit s = { .reqs = p->scratch, .count = 1 };
	struct command c[2] = {
		{ .what = C_WRITE, .len = sizeof(*req), .arg = { p->scratch } },
		{ .what = C_IOCTL, .len = sizeof(s), .arg = { XNEM_IOC_SUBMIT } },
	};
	int err = send_command(p, &c[0], req);

	return err ? err : send_command(p, &c[1], &s);
}

int peer_told(struct peer *p)
{
	struct xnem_submit s;
	struct command c;
	int err = recv_all(p->sock, &c, sizeof(c));

	if (!err)
		err = c.ret ? (int)c.ret : recv_all(p->sock, &c, sizeof(c));
	if (!err)
		err = recv_all(p->sock, &s, sizeof(s));
	return err ? err : c.ret ? (int)c.ret : (int)s.submitted;
}

int peer_complete(struct peer *p, struct xnem_complete *done, uint32_t min, uint32_t max,
		  int64_t timeout_ns)
{
	struct xnem_get_completions g = { .completions = p->scratch,
					  .max_count = max,
					  .min_count = min,
					  .timeout_ns = timeout_ns };
	int err = peer_ioctl(p, XNEM_IOC_COMPLETE, &g);

	if (!err && g.count)
		err = peer_read(p, p->scratch, done, g.count * (uint32_t)sizeof(*done));
	return err ? err : (int)g.count;
}

int peer_run(struct peer *p, const struct xnem_submit_req *req, struct xnem_complete *done)
{
	struct command c = { .what = C_RUN, .len = sizeof(*req) };
	unsigned char buffer[sizeof(*req)];
	int err;

	memcpy(buffer, req, sizeof(*req));
	err = (int)tell(p, &c, buffer);
	if (err)
		return err;
	memcpy(done, buffer, sizeof(*done));
	return done->user_data == req->user_data ? 0 : -EPROTO;
}

int peer_status(struct peer *p, const struct xnem_submit_req *req, uint64_t *bytes)
{
	struct xnem_complete done = { 0 };
	int err = peer_run(p, req, &done);

	if (bytes)
		*bytes = done.bytes_done;
	return err ? err : done.status;
}

/* Address of slot @i of the inbox. */
static uint64_t slot_at(const struct peer *p, uint32_t i)
{
	return p->pages + 8192 + (i & (p->slots - 1)) * sizeof(struct xnem_inbox_slot);
}

int peer_inboxes(struct peer *p, struct xnem_inbox_slot *slots, uint32_t max, int64_t timeout_ns)
{
	struct command c = {
		.what = C_INBOX,
		.len = max * (uint32_t)sizeof(*slots),
		.arg = { slot_at(p, 0),
			 p->pages + offsetof(struct xnem_context_control, inbox_cons), p->slots,
			 p->inbox_cons, max, (uint64_t)timeout_ns },
	};
	int n;

	if (!p->pages || !p->slots)
		return -EOPNOTSUPP;
	n = (int)tell(p, &c, slots);
	if (n > 0)
		p->inbox_cons += (uint32_t)n;
	return n;
}

int peer_inbox(struct peer *p, struct xnem_inbox_slot *slot, int64_t timeout_ns)
{
	int n = peer_inboxes(p, slot, 1, timeout_ns);

	return n < 0 ? n : 0;
}

int peer_cpage(struct peer *p, struct xnem_cpage_entry *entry, int64_t timeout_ns)
{
	uint64_t at = p->pages + 4096 +
		      p->cpage_cons % XNEM_CPAGE_ENTRIES * sizeof(struct xnem_cpage_entry);
	int err;

	if (!p->pages)
		return -EOPNOTSUPP;
	err = peer_wait32(p, at + offsetof(struct xnem_cpage_entry, seq), p->cpage_cons + 1,
			  timeout_ns);
	if (!err)
		err = peer_read(p, at, entry, sizeof(*entry));
	if (err)
		return err;
	p->cpage_cons++;
	return peer_write(p, p->pages + offsetof(struct xnem_context_control, cpage_cons),
			  &p->cpage_cons, sizeof(p->cpage_cons));
}

int peer_inbox_count(struct peer *p)
{
	struct xnem_inbox_slot slots[512];
	uint32_t n;
	int err;

	if (p->slots > 512)
		return -E2BIG;
	err = peer_read(p, slot_at(p, 0), slots, p->slots * (uint32_t)sizeof(slots[0]));
	for (n = 0; !err && n < p->slots; n++)
		if (slots[(p->inbox_cons + n) & (p->slots - 1)].seq != p->inbox_cons + n + 1)
			break;
	return err ? err : (int)n;
}
