// SPDX-License-Identifier: MIT
/*
 * xnem-test args: wrong arguments of every ioctl get the documented errno.
 *
 * Straight to the device, without the library.  Needs a backend.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/xnem.h>

#include "xnem-test.h"

#define LEN 65536
#define BAD_POINTER ((uint64_t)8)
#define WAIT_NS 10000000000ll

static int fd;
static unsigned char *mem;
static unsigned int nr_ok, nr_bad;

static void report(const char *name, int want, int got)
{
	if (want == got) {
		nr_ok++;
		printf("ok %s\n", name);
	} else {
		nr_bad++;
		printf("FAIL %s wanted %s got %s (%d)\n", name, xnem_errname(want),
		       xnem_errname(got), got);
	}
	fflush(stdout);
}

static int call(unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

/* ---- info ---- */

static void check_info(void)
{
	struct xnem_info info = { 0 };

	report("info", 0, call(XNEM_IOC_INFO, &info));
	report("info: connected", 1, (int)info.connected);
	report("info: abi version", XNEM_ABI_VERSION, (int)info.abi_version);
	report("info: fabric id", 1, info.fabric_id != 0);
	report("info: limits", 1, info.max_inflight && info.max_region_bytes && info.max_pages);
	for (unsigned int i = 0; i < 7; i++) {
		memset(&info, 0, sizeof(info));
		info.reserved[i] = 1;
		report("info: reserved field", -EINVAL, call(XNEM_IOC_INFO, &info));
	}
	report("info: bad pointer", -EFAULT, call(XNEM_IOC_INFO, (void *)BAD_POINTER));
	report("unknown call", -ENOTTY, call(_IO(XNEM_IOC_MAGIC, 0x7f), NULL));
	report("call of another size", -ENOTTY, call(_IOWR(XNEM_IOC_MAGIC, 0x40, uint32_t), &info));
	report("call of another type", -ENOTTY, call(_IO('Z', 0x40), NULL));
}

/* ---- register and deregister ---- */

static struct xnem_register a_register(void)
{
	return (struct xnem_register){
		.addr = (uintptr_t)mem,
		.length = LEN,
		.access = XNEM_REG_READ | XNEM_REG_WRITE,
	};
}

static int deregister(uint32_t handle)
{
	struct xnem_deregister d = { .handle = handle };

	return call(XNEM_IOC_DEREGISTER, &d);
}

static void try_register(const char *name, int want, struct xnem_register reg)
{
	int err = call(XNEM_IOC_REGISTER, &reg);

	report(name, want, err);
	if (!err)
		deregister(reg.handle);
}

static void check_register(void)
{
	struct xnem_register reg, good = a_register();
	struct xnem_info info = { 0 };
	unsigned char *hole, *readonly;

	try_register("register", 0, good);
	reg = good;
	reg.length = 0;
	try_register("register: length 0", -EINVAL, reg);
	reg = good;
	reg.addr = UINT64_MAX - 4095;
	reg.length = 8192;
	try_register("register: range wraps", -EINVAL, reg);
	/* too long before it wraps, or the other way round: both are wrong */
	reg = good;
	reg.access = 0;
	try_register("register: no access", -EINVAL, reg);
	reg = good;
	reg.access = 4;
	try_register("register: unknown access", -EINVAL, reg);
	reg = good;
	reg.flags = 1u << 31;
	try_register("register: unknown flag", -EINVAL, reg);
	reg = good;
	reg.flags = 1u << 31;
	try_register("register: unknown high flag", -EINVAL, reg);
	for (unsigned int i = 0; i < 3; i++) {
		reg = good;
		reg.reserved[i] = 1;
		try_register("register: reserved field", -EINVAL, reg);
	}
	call(XNEM_IOC_INFO, &info);
	reg = good;
	reg.length = info.max_region_bytes + 1;
	try_register("register: longer than the limit", -E2BIG, reg);
	reg = good;
	reg.addr = 0;
	try_register("register: NULL", -EFAULT, reg);
	reg = good;
	reg.addr = UINT64_C(0xffff800000000000);
	try_register("register: the kernel's memory", -EFAULT, reg);

	hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole + 4096, 4096);
	reg = good;
	reg.addr = (uintptr_t)hole;
	reg.length = 3 * 4096;
	try_register("register: hole", -EFAULT, reg);
	munmap(hole, 3 * 4096);

	readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg = good;
	reg.addr = (uintptr_t)readonly;
	reg.length = 4096;
	try_register("register: read-only memory for writing", -EFAULT, reg);
	mprotect(readonly, 4096, PROT_NONE);
	reg.access = XNEM_REG_READ;
	try_register("register: memory without access", -EFAULT, reg);
	munmap(readonly, 4096);

	report("register: bad pointer", -EFAULT, call(XNEM_IOC_REGISTER, (void *)BAD_POINTER));
}

static void check_deregister(void)
{
	struct xnem_register reg = a_register();
	struct xnem_deregister d;
	int err = call(XNEM_IOC_REGISTER, &reg);

	report("register again", 0, err);
	for (unsigned int i = 0; i < 3; i++) {
		d = (struct xnem_deregister){ .handle = reg.handle };
		d.reserved[i] = 1;
		report("deregister: reserved field", -EINVAL, call(XNEM_IOC_DEREGISTER, &d));
	}
	report("deregister: no such handle", -EINVAL, deregister(0x7ffffff0));
	report("deregister: largest handle", -EINVAL, deregister(UINT32_MAX));
	report("deregister: bad pointer", -EFAULT, call(XNEM_IOC_DEREGISTER, (void *)BAD_POINTER));
	report("deregister", 0, deregister(reg.handle));
	report("deregister: twice", -EINVAL, deregister(reg.handle));
}

/* ---- submit and complete ---- */

static int submit_raw(uint64_t reqs, uint32_t count, unsigned int reserved, uint32_t *submitted)
{
	struct xnem_submit s = { .reqs = reqs, .count = count };
	int err;

	if (reserved)
		s.reserved[reserved - 1] = 1;
	err = call(XNEM_IOC_SUBMIT, &s);
	if (!err && submitted)
		*submitted = s.submitted;
	return err;
}

static int complete(struct xnem_complete *done, uint32_t max, uint32_t min, int64_t timeout,
		    uint32_t *count)
{
	struct xnem_get_completions g = {
		.completions = (uintptr_t)done,
		.max_count = max,
		.min_count = min,
		.timeout_ns = timeout,
	};
	int err = call(XNEM_IOC_COMPLETE, &g);

	*count = err ? 0 : g.count;
	return err;
}

/** Status of one request; started or not, an errno either way. */
static int run(struct xnem_submit_req req, uint64_t *bytes)
{
	struct xnem_complete done = { 0 };
	uint32_t n;
	int err;

	req.user_data = UINT64_C(0xfedcba9876543210);
	err = submit_raw((uintptr_t)&req, 1, 0, &n);
	if (err)
		return err;
	err = complete(&done, 1, 1, WAIT_NS, &n);
	if (err || n != 1) {
		printf("FAIL completion missing: %s\n", xnem_errname(err));
		nr_bad++;
		return -EIO;
	}
	if (done.user_data != req.user_data || done.reserved) {
		printf("FAIL completion is not of the request\n");
		nr_bad++;
	}
	if (bytes)
		*bytes = done.bytes_done;
	return done.status;
}

static void check_submit(void)
{
	struct xnem_submit_req ping = { .op = XNEM_REQ_OP_PING }, req, two[2];
	struct xnem_submit_req *many;
	struct xnem_complete done[2];
	uint32_t n = 0;

	report("ping", 0, run(ping, NULL));
	req = ping;
	req.op = 77;
	report("submit: unknown operation", -EINVAL, run(req, NULL));
	for (unsigned int bit = 7; bit < 32; bit++) {
		req = ping;
		req.flags = 1u << bit;
		report("submit: unknown flag", -EINVAL, run(req, NULL));
	}
	/* flags that a ping cannot have; a completion page that was not mapped */
	for (unsigned int bit = 0; bit < 7; bit++) {
		req = ping;
		req.flags = 1u << bit;
		if (req.flags != XNEM_SUBMIT_FENCE)
			report("submit: wrong flag of a ping", -EINVAL, run(req, NULL));
	}
	for (unsigned int i = 0; i < 2; i++) {
		req = ping;
		(i ? &req.reserved : &req.immediate)[0] = 1;
		report("submit: reserved field of a request", -EINVAL, run(req, NULL));
		report("submit: reserved field", -EINVAL,
		       submit_raw((uintptr_t)&ping, 1, 1 + i, NULL));
	}
	report("submit: none", -EINVAL, submit_raw((uintptr_t)&ping, 0, 0, NULL));
	many = calloc(1025, sizeof(*many));
	report("submit: too many", -EINVAL, submit_raw((uintptr_t)many, 1025, 0, NULL));
	free(many);
	report("submit: far too many", -EINVAL, submit_raw((uintptr_t)&ping, UINT32_MAX, 0, NULL));
	report("submit: bad array", -EFAULT, submit_raw(BAD_POINTER, 1, 0, NULL));
	report("submit: bad pointer", -EFAULT, call(XNEM_IOC_SUBMIT, (void *)BAD_POINTER));

	/* the good ones before a bad one are started, and said to be */
	two[0] = ping;
	two[1] = ping;
	two[1].op = 77;
	report("submit: good, then bad", 0, submit_raw((uintptr_t)two, 2, 0, &n));
	report("submit: good, then bad: how many", 1, (int)n);
	report("submit: good, then bad: completion", 0, complete(done, 2, 1, WAIT_NS, &n));
	report("submit: good, then bad: completions", 1, (int)n);
}

static void check_complete(void)
{
	struct xnem_complete done[2];
	struct xnem_get_completions g, good = {
		.completions = (uintptr_t)done,
		.max_count = 2,
		.min_count = 0,
	};
	struct xnem_submit_req ping = { .op = XNEM_REQ_OP_PING };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint32_t n;

	report("complete: nothing, no wait", 0, complete(done, 2, 0, 0, &n));
	report("complete: nothing in flight", -ENOENT, complete(done, 2, 1, WAIT_NS, &n));
	g = good;
	g.max_count = 0;
	report("complete: no room", -EINVAL, call(XNEM_IOC_COMPLETE, &g));
	g = good;
	g.min_count = 3;
	report("complete: min above max", -EINVAL, call(XNEM_IOC_COMPLETE, &g));
	g = good;
	g.inbox_seen = 1;
	report("complete: inbox_seen without its flag", -EINVAL, call(XNEM_IOC_COMPLETE, &g));
	g = good;
	g.flags = 4;
	report("complete: unknown low flag", -EINVAL, call(XNEM_IOC_COMPLETE, &g));
	g = good;
	g.flags = 1u << 31;
	report("complete: unknown flag", -EINVAL, call(XNEM_IOC_COMPLETE, &g));
	report("complete: bad pointer", -EFAULT, call(XNEM_IOC_COMPLETE, (void *)BAD_POINTER));
	report("poll: nothing", 0, poll(&p, 1, 0));

	report("complete: a ping", 0, submit_raw((uintptr_t)&ping, 1, 0, &n));
	report("poll: ready", 1, poll(&p, 1, 10000));
	report("poll: readable", POLLIN, p.revents & (POLLIN | POLLERR | POLLHUP));
	/* an array that is not there loses nothing */
	g = good;
	g.completions = BAD_POINTER;
	g.min_count = 1;
	g.timeout_ns = WAIT_NS;
	report("complete: bad array", -EFAULT, call(XNEM_IOC_COMPLETE, &g));
	report("complete: and then a good one", 0, complete(done, 2, 1, WAIT_NS, &n));
	report("complete: has the ping", 1, (int)n);
	report("complete: nothing more", 0, complete(done, 2, 0, 0, &n));
	report("complete: nothing more, count", 0, (int)n);
}

/* ---- copies ---- */

static void try_copy(const char *name, int want, struct xnem_submit_req req)
{
	uint64_t bytes = 0;
	int err = run(req, &bytes);

	report(name, want, err);
	if (err && bytes) {
		printf("FAIL %s bytes_done is %" PRIu64 "\n", name, bytes);
		nr_bad++;
	}
}

static void check_copy(void)
{
	struct xnem_register read = a_register(), write = a_register();
	struct xnem_submit_req req, good;

	read.length = LEN / 2;
	read.access = XNEM_REG_READ;
	write.addr += LEN / 2;
	write.length = LEN / 2;
	write.access = XNEM_REG_WRITE;
	report("register a source", 0, call(XNEM_IOC_REGISTER, &read));
	report("register a destination", 0, call(XNEM_IOC_REGISTER, &write));
	good = (struct xnem_submit_req){
		.op = XNEM_REQ_OP_COPY,
		.src = read.cookie,
		.dst = write.cookie,
		.src_offset = 1,
		.dst_offset = 3,
		.length = 5000,
	};
	pattern_fill(mem, LEN / 2, 1, 0);
	memset(mem + LEN / 2, GUARD_BYTE, LEN / 2);
	try_copy("copy", 0, good);
	report("copy: data", 5000, (int)pattern_check(mem + LEN / 2 + 3, 5000, 1, 1));
	report("copy: before", 3, (int)byte_check(mem + LEN / 2, 3, GUARD_BYTE));
	report("copy: behind", LEN / 2 - 5003,
	       (int)byte_check(mem + LEN / 2 + 5003, LEN / 2 - 5003, GUARD_BYTE));

	req = good;
	req.length = 0;
	try_copy("copy: 0 bytes", 0, req);
	req.src_offset = LEN / 2;
	try_copy("copy: 0 bytes at the end", 0, req);
	req.src_offset++;
	try_copy("copy: 0 bytes behind the end", -ERANGE, req);
	req = good;
	req.src.key ^= 1;
	try_copy("copy: wrong key of the source", -ENOENT, req);
	req = good;
	req.dst.key ^= UINT64_C(1) << 63;
	try_copy("copy: wrong key of the destination", -ENOENT, req);
	req = good;
	req.src.id += 1000000;
	try_copy("copy: unknown region", -ENOENT, req);
	req = good;
	memset(&req.dst, 0, sizeof(req.dst));
	try_copy("copy: no region", -ENOENT, req);
	req = good;
	req.dst = read.cookie;
	try_copy("copy: write to a read-only region", -EACCES, req);
	req = good;
	req.src = write.cookie;
	try_copy("copy: read from a write-only region", -EACCES, req);
	req = good;
	req.length = LEN / 2;
	try_copy("copy: source too short", -ERANGE, req);
	req = good;
	req.length = LEN / 2 - 1;
	try_copy("copy: destination too short", -ERANGE, req);
	req = good;
	req.src_offset = UINT64_MAX;
	try_copy("copy: source offset wraps", -ERANGE, req);
	req = good;
	req.dst_offset = UINT64_MAX - 100;
	try_copy("copy: destination offset wraps", -ERANGE, req);
	req = good;
	req.length = UINT64_MAX;
	try_copy("copy: length wraps", -ERANGE, req);

	report("deregister the source", 0, deregister(read.handle));
	try_copy("copy: source is gone", -ENOENT, good);
	report("deregister the destination", 0, deregister(write.handle));
}

/* ---- the others; what they do is tested by suites ---- */

static void check_others(void)
{
	struct xnem_cancel cancel = { .reserved = 1 };
	struct xnem_cache_limit limit = { .max_pages = 0 };
	struct xnem_cache_put put = { .handle = 5 };
	struct xnem_eventfd event = { .fd = 12345 };
	struct xnem_cache_get get = { .addr = (uintptr_t)mem, .length = LEN };
	struct xnem_stats stats = { 0 };
	static const unsigned long calls[] = { XNEM_IOC_CACHE_GET,   XNEM_IOC_CACHE_PUT,
					       XNEM_IOC_CACHE_LIMIT, XNEM_IOC_CANCEL,
					       XNEM_IOC_EVENTFD,     XNEM_IOC_STATS };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		report("bad pointer", -EFAULT, call(calls[i], (void *)BAD_POINTER));
	report("cancel: reserved field", -EINVAL, call(XNEM_IOC_CANCEL, &cancel));
	cancel.reserved = 0;
	report("cancel: nothing in flight", -ENOENT, call(XNEM_IOC_CANCEL, &cancel));
	report("eventfd: not a descriptor", -EBADF, call(XNEM_IOC_EVENTFD, &event));
	event.fd = fd;
	report("eventfd: another descriptor", -EINVAL, call(XNEM_IOC_EVENTFD, &event));
	report("cache_get: no access", -EINVAL, call(XNEM_IOC_CACHE_GET, &get));
	report("cache_put: no such use", -EINVAL, call(XNEM_IOC_CACHE_PUT, &put));
	report("cache_limit", 0, call(XNEM_IOC_CACHE_LIMIT, &limit));
	report("stats", 0, call(XNEM_IOC_STATS, &stats));
	for (unsigned int i = 0; i < 7; i++) {
		memset(&stats, 0, sizeof(stats));
		stats.reserved[i] = 1;
		report("stats: reserved field", -EINVAL, call(XNEM_IOC_STATS, &stats));
	}
}

/* ---- another process ---- */

static int in_child(void)
{
	struct xnem_get_completions g = { 0 };
	struct xnem_register reg = a_register();
	struct xnem_deregister d = { 0 };
	struct xnem_submit_req ping = { .op = XNEM_REQ_OP_PING };
	struct xnem_info info = { 0 };
	struct xnem_complete done;

	g.completions = (uintptr_t)&done;
	g.max_count = 1;
	report("child: info", -EPERM, call(XNEM_IOC_INFO, &info));
	report("child: register", -EPERM, call(XNEM_IOC_REGISTER, &reg));
	report("child: deregister", -EPERM, call(XNEM_IOC_DEREGISTER, &d));
	report("child: submit", -EPERM, submit_raw((uintptr_t)&ping, 1, 0, NULL));
	report("child: complete", -EPERM, call(XNEM_IOC_COMPLETE, &g));
	{
		struct xnem_cache_get get = { .addr = (uintptr_t)mem, .length = 1, .access = 1 };
		struct xnem_cache_put put = { 0 };
		struct xnem_cache_limit limit = { 0 };
		struct xnem_cancel cancel = { 0 };
		struct xnem_eventfd event = { .fd = -1 };
		struct xnem_stats stats = { 0 };

		report("child: cache_get", -EPERM, call(XNEM_IOC_CACHE_GET, &get));
		report("child: cache_put", -EPERM, call(XNEM_IOC_CACHE_PUT, &put));
		report("child: cache_limit", -EPERM, call(XNEM_IOC_CACHE_LIMIT, &limit));
		report("child: cancel", -EPERM, call(XNEM_IOC_CANCEL, &cancel));
		report("child: eventfd", -EPERM, call(XNEM_IOC_EVENTFD, &event));
		report("child: stats", -EPERM, call(XNEM_IOC_STATS, &stats));
		report("child: mmap", 1,
		       mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED &&
			       errno == EPERM);
	}
	close(fd);
	return nr_bad > 200 ? 200 : (int)nr_bad;
}

static void check_fork(void)
{
	struct xnem_submit_req ping = { .op = XNEM_REQ_OP_PING };
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		nr_bad = 0;
		_exit(in_child());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
		report("child", 0, -ECHILD);
		return;
	}
	report("child: all of it", 0, WEXITSTATUS(status));
	report("parent: still works", 0, run(ping, NULL));
}

int cmd_args(const struct options *opt, char **args)
{
	const char *device = opt->device ? opt->device : getenv("XNEM_DEVICE");

	(void)args;
	if (!device)
		device = access("/dev/xnem", F_OK) ? "/dev/xnem0" : "/dev/xnem";
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail(device, -errno);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return fail("memory", -errno);
	check_info();
	check_register();
	check_deregister();
	check_submit();
	check_complete();
	check_copy();
	check_others();
	check_fork();
	close(fd);
	munmap(mem, LEN);
	printf("ok=%u\nfailed=%u\n", nr_ok, nr_bad);
	return nr_bad ? T_DATA : T_OK;
}
