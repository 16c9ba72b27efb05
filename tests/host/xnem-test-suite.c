// SPDX-License-Identifier: MIT
/*
 * xnem-test-suite.c - runs the tests of one theme; see xnem-test-suite.h
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xnem-test-suite.h"

static const struct {
	const char *name;
	const struct test *tests;
	bool pages;
} suites[] = {
	{ "messages", messages_tests, true },  { "async", async_tests, true },
	{ "segments", segments_tests, false }, { "windows", windows_tests, false },
	{ "cache", cache_tests, false },       { "buffers", buffers_tests, false },
};

int make_area(struct area *area, struct peer *owner, uint64_t bytes, uint64_t offset,
	      uint32_t access, uint32_t flags)
{
	int64_t at = peer_map(owner, K_PRIVATE, (offset + bytes + 8191) & ~4095ull, 0);

	if (at < 0)
		return (int)at;
	*area = (struct area){ .owner = owner, .addr = (uint64_t)at + offset, .bytes = bytes };
	return peer_register(owner, area->addr, bytes, access, flags, &area->reg);
}

struct xnem_submit_req copy_req(const struct area *dst, uint64_t dst_off, const struct area *src,
				uint64_t src_off, uint64_t len)
{
	static uint64_t number;

	return (struct xnem_submit_req){
		.op = XNEM_REQ_OP_COPY,
		.user_data = ++number,
		.src = src->reg.cookie,
		.dst = dst->reg.cookie,
		.src_offset = src_off,
		.dst_offset = dst_off,
		.length = len,
	};
}

int copy_and_check(struct peer *who, const struct area *dst, uint64_t dst_off,
		   const struct area *src, uint64_t src_off, uint64_t len, uint64_t seed)
{
	struct xnem_submit_req req = copy_req(dst, dst_off, src, src_off, len);
	uint64_t bytes = 0;

	note("%s to %s by %s, %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64, src->owner->name,
	     dst->owner->name, who->name, len, src_off, dst_off);
	EXPECT(0, peer_fill(src->owner, src->addr + src_off, len, seed, 0));
	EXPECT(0, peer_set(dst->owner, dst->addr, dst->bytes, GUARD_BYTE));
	EXPECT(0, peer_status(who, &req, &bytes));
	EXPECT(len, bytes);
	EXPECT(0, peer_check(dst->owner, dst->addr + dst_off, len, seed, 0));
	EXPECT(0, peer_check_byte(dst->owner, dst->addr, dst_off, GUARD_BYTE));
	EXPECT(0, peer_check_byte(dst->owner, dst->addr + dst_off + len, dst->bytes - dst_off - len,
				  GUARD_BYTE));
	note("%s", "");
	return 0;
}

int ioctl_here(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

int map_errno(int fd, size_t bytes, int prot, int flags, int64_t offset)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, bytes);
	return 0;
}

/* Everybody there and open, whatever the last test has done. */
static int set_up(struct cast *cast, const char *remote, bool pages)
{
	struct peer *all[] = { &cast->c, &cast->b, &cast->a };
	int err;

	for (unsigned int i = 0; i < 3; i++)
		peer_reset(all[i]);
	if (cast->c.sock < 0) {
		err = peer_fork(&cast->c, "c");
		if (err)
			return fail("fork", err);
	}
	if (cast->b.sock < 0) {
		err = remote ? peer_connect(&cast->b, remote) : peer_fork(&cast->b, "b");
		if (err)
			return fail("peer", err);
		cast->b.name = remote ? "remote b" : "b";
	}
	cast->a.name = "a";
	cast->remote = remote;
	for (unsigned int i = 0; i < 3; i++) {
		err = peer_open(all[i], cast->device, pages);
		if (err)
			return fail("open", err);
		/* texts of messages */
		err = pages ? peer_fill(all[i], all[i]->scratch + 65536, 65536, 1, 0) : 0;
		if (err)
			return fail("fill", err);
	}
	return 0;
}

int cmd_serve(const struct options *opt, char **args)
{
	(void)args;
	return fail("serve", peer_serve((unsigned int)opt->port));
}

int cmd_suite(const struct options *opt, char **args)
{
	struct cast cast = { .device = opt->device,
			     .domid = opt->domid,
			     .peer_domid = opt->peer_domid,
			     .disk = opt->disk,
			     .small = opt->small };
	const struct test *tests = NULL;
	unsigned int bad = 0;
	bool pages = false;
	int err;

	for (unsigned int i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		if (!strcmp(suites[i].name, args[0])) {
			tests = suites[i].tests;
			pages = suites[i].pages;
		}
	if (!tests) {
		fprintf(stderr, "xnem-test: no suite %s\n", args[0]);
		return T_USAGE;
	}
	err = peer_self(&cast.a);
	if (err)
		return fail("memory", err);
	cast.b.sock = cast.c.sock = -1;
	for (; tests->name; tests++) {
		struct xnem_info info;
		uint64_t start;

		if ((opt->only && !strstr(tests->name, opt->only)) ||
		    (opt->except && strstr(tests->name, opt->except)))
			continue;
		err = set_up(&cast, opt->peer, pages);
		if (err)
			return err;
		err = peer_info(&cast.a, &info);
		if (err)
			return fail("info", err);
		/* Both sides are of one tree: what is not offered has been lost. */
		if ((info.features & tests->needs) != tests->needs) {
			printf("# the backend has not the features %#" PRIx64 "\n",
			       (uint64_t)(tests->needs & ~info.features));
			tap_result(1, tests->name);
			bad++;
			continue;
		}
		note("%s", "");
		start = now_ns();
		err = tests->run(&cast);
		bad += err != 0;
		tap_result(err, tests->name);
		printf("# %" PRIu64 " ms\n", (now_ns() - start) / 1000000);
		fflush(stdout);
	}
	tap_plan();
	peer_reset(&cast.a);
	peer_end(&cast.b);
	peer_end(&cast.c);
	return bad ? T_DATA : T_OK;
}
