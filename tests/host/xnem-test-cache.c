// SPDX-License-Identifier: MIT
/*
 * xnem-test-cache.c - the registration cache: right under everything that can
 * happen to a mapping, and free of charge when it hits
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xnem-test-suite.h"

#define PROT_RW (PROT_READ | PROT_WRITE)

static int cache_get(struct cast *cast, const void *addr, uint64_t len, uint32_t access,
		     struct xnem_cache_get *get)
{
	*get = (struct xnem_cache_get){ .addr = (uintptr_t)addr, .length = len, .access = access };
	return peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, get);
}

static int cache_put(struct cast *cast, const struct xnem_cache_get *get)
{
	struct xnem_cache_put put = { .handle = get->handle };

	return peer_ioctl(&cast->a, XNEM_IOC_CACHE_PUT, &put);
}

static int cache_limit(struct cast *cast, uint64_t pages)
{
	struct xnem_cache_limit limit = { .max_pages = pages };

	return peer_ioctl(&cast->a, XNEM_IOC_CACHE_LIMIT, &limit);
}

/* Hit or not; an error is negative. */
static int hits(struct cast *cast, const void *addr, uint64_t len, uint32_t access)
{
	struct xnem_cache_get get;
	int err = cache_get(cast, addr, len, access, &get);

	if (!err)
		err = cache_put(cast, &get);
	return err ? err : (int)get.hit;
}

static struct xnem_submit_req in_req(const void *addr, uint64_t len, const struct area *from,
				     uint64_t off)
{
	struct xnem_submit_req req = copy_req(from, (uintptr_t)addr, from, off, len);

	memset(&req.dst, 0, sizeof(req.dst));
	req.flags = XNEM_SUBMIT_DST_ADDR;
	return req;
}

static struct xnem_submit_req out_req(const void *addr, uint64_t len, const struct area *to,
				      uint64_t off)
{
	struct xnem_submit_req req = copy_req(to, off, to, (uintptr_t)addr, len);

	memset(&req.src, 0, sizeof(req.src));
	req.flags = XNEM_SUBMIT_SRC_ADDR;
	return req;
}

/* Copies into this memory, and looks that it did. */
static int bring(struct cast *cast, unsigned char *addr, uint64_t len, const struct area *from,
		 uint64_t off, uint64_t seed)
{
	struct xnem_submit_req req = in_req(addr, len, from, off);
	uint64_t bytes = 0;

	EXPECT(0, peer_fill(from->owner, from->addr + off, len, seed, 0));
	EXPECT(0, peer_status(&cast->a, &req, &bytes));
	EXPECT(len, bytes);
	EXPECT(len, pattern_check(addr, len, seed, 0));
	return 0;
}

/* Copies what is in this memory, and looks that it did. */
static int take(struct cast *cast, unsigned char *addr, uint64_t len, const struct area *to,
		uint64_t off, uint64_t seed)
{
	struct xnem_submit_req req = out_req(addr, len, to, off);
	uint64_t bytes = 0;

	pattern_fill(addr, len, seed, 0);
	EXPECT(0, peer_status(&cast->a, &req, &bytes));
	EXPECT(len, bytes);
	EXPECT(0, peer_check(to->owner, to->addr + off, len, seed, 0));
	return 0;
}

static int both_ways(struct cast *cast, unsigned char *addr, uint64_t len, const struct area *other,
		     uint64_t seed)
{
	CALL(bring(cast, addr, len, other, 100, seed));
	CALL(take(cast, addr, len, other, 333, seed + 1));
	return bring(cast, addr, len, other, 0, seed + 2);
}

static unsigned char *map(uint64_t bytes, void *where)
{
	return mmap(where, bytes, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0),
		    -1, 0);
}

#define LEN 200000ull
#define MAPPED 204800ull

static int other_area(struct cast *cast, struct area *other)
{
	EXPECT(0, make_area(other, &cast->b, MIB(1), 77, RW, 0));
	return 0;
}

/* ---- it costs nothing ---- */

static int hit_costs_nothing(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_stats before, after;
	struct xnem_submit_req req;
	struct area other;

	CALL(other_area(cast, &other));
	EXPECT(0, hits(cast, m, LEN, RW));
	EXPECT(0, peer_stats(&cast->a, &before));
	EXPECT(50 - 1, before.pages);
	EXPECT(50 - 1, before.cache_pages);
	for (unsigned int i = 0; i < 50; i++)
		EXPECT(1, hits(cast, m + i, LEN - 2 * i, RW));
	EXPECT(0, peer_stats(&cast->a, &after));
	EXPECT(before.requests, after.requests);
	EXPECT(before.registered, after.registered);
	EXPECT(before.pages, after.pages);
	EXPECT(50, after.cache_hits - before.cache_hits);
	EXPECT(0, after.cache_misses - before.cache_misses);
	for (unsigned int i = 0; i < 20; i++) {
		req = in_req(m + 9, 10000, &other, i);
		EXPECT(0, peer_status(&cast->a, &req, NULL));
	}
	before = after;
	EXPECT(0, peer_stats(&cast->a, &after));
	/* the copies, and nothing else */
	EXPECT(20, after.requests - before.requests);
	EXPECT(20, after.cache_hits - before.cache_hits);
	munmap(m, MAPPED);
	return 0;
}

/* libfabric#9874: every offset within a page, on both sides, from a cached entry. */
static int every_offset(struct cast *cast)
{
	enum { BATCH = 32, ROOM = 12288 };
	unsigned char *m = map(BATCH * ROOM, NULL);
	struct xnem_submit_req reqs[BATCH];
	struct xnem_complete done[BATCH];
	struct xnem_stats before, after;
	struct area other;

	CALL(other_area(cast, &other));
	EXPECT(0, peer_fill(&cast->b, other.addr, MIB(1), 3, 0));
	EXPECT(0, hits(cast, m, BATCH * ROOM, RW));
	EXPECT(0, peer_stats(&cast->a, &before));
	/* in: each offset of ours once, of the other once, in different pairs */
	for (uint64_t base = 0; base < 4096; base += BATCH) {
		memset(m, GUARD_BYTE, BATCH * ROOM);
		for (uint64_t i = 0; i < BATCH; i++)
			reqs[i] = in_req(m + i * ROOM + base + i, 1 + (base + i) % 5000, &other,
					 ((base + i) * 1237 + 55) % 4096 + 4096 * i);
		EXPECT(BATCH, peer_submit(&cast->a, reqs, BATCH));
		EXPECT(BATCH, peer_complete(&cast->a, done, BATCH, BATCH, WAIT_NS));
		for (uint64_t i = 0; i < BATCH; i++) {
			uint64_t off = base + i, len = 1 + off % 5000;
			unsigned char *p = m + i * ROOM;

			note("offset %" PRIu64, off);
			EXPECT(0, done[i].status);
			EXPECT(len, pattern_check(p + off, len, 3, reqs[i].src_offset));
			EXPECT(off, byte_check(p, off, GUARD_BYTE));
			EXPECT(ROOM - off - len,
			       byte_check(p + off + len, ROOM - off - len, GUARD_BYTE));
		}
	}
	/* out: pieces that fit together over there, from each offset of ours */
	pattern_fill(m, ROOM, 5, 0);
	for (uint64_t base = 0; base < 4096; base += BATCH) {
		for (uint64_t i = 0; i < BATCH; i++)
			reqs[i] = out_req(m + base + i, 200, &other, (base + i) * 200);
		EXPECT(BATCH, peer_submit(&cast->a, reqs, BATCH));
		EXPECT(BATCH, peer_complete(&cast->a, done, BATCH, BATCH, WAIT_NS));
		for (uint64_t i = 0; i < BATCH; i++)
			EXPECT(0, done[i].status);
	}
	for (uint64_t off = 0; off < 4096; off += 17) {
		note("out, offset %" PRIu64, off);
		EXPECT(0, peer_check(&cast->b, other.addr + off * 200, 200, 5, off));
	}
	EXPECT(0, peer_stats(&cast->a, &after));
	EXPECT(0, after.cache_misses - before.cache_misses);
	EXPECT(0, after.registered - before.registered);
	munmap(m, BATCH * ROOM);
	return 0;
}

/* ---- mappings that change ---- */

/* ucx#5146, ompi#4509: freed, and mapped again at the same address. */
static int mapped_again(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_stats stats;
	struct area other;

	CALL(other_area(cast, &other));
	for (unsigned int i = 0; i < 20; i++) {
		CALL(both_ways(cast, m, LEN, &other, i * 10));
		EXPECT(0, munmap(m, MAPPED));
		EXPECT_TRUE(map(MAPPED, m) == m);
		EXPECT(MAPPED, byte_check(m, MAPPED, 0));
		EXPECT(0, hits(cast, m, LEN, RW));
	}
	/* over what is mapped, with no munmap before */
	for (unsigned int i = 0; i < 5; i++) {
		CALL(both_ways(cast, m, LEN, &other, i * 10));
		EXPECT_TRUE(map(MAPPED, m) == m);
		EXPECT(0, hits(cast, m, LEN, RW));
	}
	/* one page of it */
	for (unsigned int i = 0; i < 5; i++) {
		CALL(both_ways(cast, m, LEN, &other, i * 10));
		EXPECT_TRUE(map(4096, m + 4096 * 7) == m + 4096 * 7);
		EXPECT(4096, byte_check(m + 4096 * 7, 4096, 0));
		EXPECT(0, hits(cast, m, LEN, RW));
	}
	EXPECT(0, peer_stats(&cast->a, &stats));
	EXPECT_TRUE(stats.cache_stale >= 30);
	munmap(m, MAPPED);
	EXPECT(-EFAULT, hits(cast, m, LEN, RW));
	return 0;
}

/* With malloc and free: what a program does. */
static int freed_and_allocated(struct cast *cast)
{
	struct area other;

	CALL(other_area(cast, &other));
	for (unsigned int i = 0; i < 40; i++) {
		/* large ones are mapped and unmapped, small ones come from the heap */
		uint64_t len = i % 2 ? 190000 : 9000;
		unsigned char *m = malloc(len);

		EXPECT_TRUE(m);
		CALL(both_ways(cast, m, len, &other, i));
		free(m);
	}
	return 0;
}

static int moved(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL), *to = map(MAPPED, NULL), *new;
	struct area other;

	CALL(other_area(cast, &other));
	CALL(both_ways(cast, m, LEN, &other, 1));
	new = mremap(m, MAPPED, MAPPED, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	EXPECT_TRUE(new == to);
	EXPECT(-EFAULT, hits(cast, m, LEN, RW));
	EXPECT(0, hits(cast, new, LEN, RW));
	CALL(both_ways(cast, new, LEN, &other, 2));
	/* other memory where it was */
	EXPECT_TRUE(map(MAPPED, m) == m);
	CALL(both_ways(cast, m, LEN, &other, 3));
	CALL(both_ways(cast, new, LEN, &other, 4));
	/* shorter: what is cut off is not there */
	EXPECT_TRUE(mremap(new, MAPPED, 8192, 0) == new);
	EXPECT(-EFAULT, hits(cast, new, LEN, RW));
	CALL(both_ways(cast, new, 8192, &other, 5));
	munmap(m, MAPPED);
	munmap(new, 8192);
	return 0;
}

static int discarded(struct cast *cast)
{
	static const int advices[] = { MADV_DONTNEED, MADV_FREE, MADV_DONTNEED };
	unsigned char *m = map(MAPPED, NULL);
	struct area other;

	CALL(other_area(cast, &other));
	for (unsigned int i = 0; i < 3; i++) {
		CALL(both_ways(cast, m, LEN, &other, i));
		EXPECT(0, madvise(m, MAPPED, advices[i]));
		if (advices[i] == MADV_DONTNEED)
			EXPECT(MAPPED, byte_check(m, MAPPED, 0));
		CALL(both_ways(cast, m, LEN, &other, i + 10));
		/* a part of it */
		EXPECT(0, madvise(m + 8192, 4096, advices[i]));
		CALL(both_ways(cast, m, LEN, &other, i + 20));
	}
	munmap(m, MAPPED);
	return 0;
}

static int protected(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_submit_req req;
	struct area other;

	CALL(other_area(cast, &other));
	CALL(both_ways(cast, m, LEN, &other, 1));
	EXPECT(0, mprotect(m, MAPPED, PROT_READ));
	EXPECT(-EFAULT, hits(cast, m, LEN, XNEM_REG_WRITE));
	req = in_req(m, LEN, &other, 0);
	EXPECT(-EFAULT, peer_status(&cast->a, &req, NULL));
	req = out_req(m, LEN, &other, 0);
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(0, mprotect(m, MAPPED, PROT_NONE));
	EXPECT(-EFAULT, hits(cast, m, LEN, XNEM_REG_READ));
	EXPECT(0, mprotect(m, MAPPED, PROT_RW));
	CALL(both_ways(cast, m, LEN, &other, 2));
	munmap(m, MAPPED);
	return 0;
}

static int truncated(struct cast *cast)
{
	int file = memfd_create("cache", MFD_CLOEXEC);
	unsigned char *m;
	struct area other;

	CALL(other_area(cast, &other));
	EXPECT(0, ftruncate(file, MAPPED));
	m = mmap(NULL, MAPPED, PROT_RW, MAP_SHARED, file, 0);
	EXPECT_TRUE(m != MAP_FAILED);
	for (unsigned int i = 0; i < 3; i++) {
		CALL(both_ways(cast, m, LEN, &other, i));
		EXPECT(0, ftruncate(file, 0));
		EXPECT(-EFAULT, hits(cast, m, LEN, RW));
		EXPECT(0, ftruncate(file, MAPPED));
		EXPECT(MAPPED, byte_check(m, MAPPED, 0));
		CALL(both_ways(cast, m, LEN, &other, i + 10));
		EXPECT(0, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
		EXPECT(8192, byte_check(m + 4096, 8192, 0));
		CALL(both_ways(cast, m, LEN, &other, i + 20));
	}
	munmap(m, MAPPED);
	close(file);
	return 0;
}

/* A private mapping of a file: what is written is a copy, and it is the copy that counts. */
static int copied_on_write(struct cast *cast)
{
	int file = memfd_create("cache", MFD_CLOEXEC);
	unsigned char *m, *shared;
	struct xnem_submit_req req;
	struct area other;

	CALL(other_area(cast, &other));
	EXPECT(0, ftruncate(file, MAPPED));
	shared = mmap(NULL, MAPPED, PROT_RW, MAP_SHARED, file, 0);
	pattern_fill(shared, LEN, 1, 0);
	m = mmap(NULL, MAPPED, PROT_RW, MAP_PRIVATE, file, 0);
	EXPECT(LEN, pattern_check(m, LEN, 1, 0));
	/* read by us only, then copied from */
	req = out_req(m, LEN, &other, 0);
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr, LEN, 1, 0));
	CALL(take(cast, m, LEN, &other, 0, 2));
	CALL(bring(cast, m, LEN, &other, 0, 3));
	EXPECT(LEN, pattern_check(shared, LEN, 1, 0));
	munmap(m, MAPPED);
	/* untouched anonymous memory: the zero page, until it is written to */
	m = map(MAPPED, NULL);
	EXPECT(0, m[5]);
	req = out_req(m, LEN, &other, 0);
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(0, peer_check_byte(&cast->b, other.addr, LEN, 0));
	CALL(take(cast, m, LEN, &other, 0, 4));
	munmap(m, MAPPED);
	/* a read-only private mapping is never kept */
	m = mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE, file, 0);
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT(0, hits(cast, m, LEN, XNEM_REG_READ));
		req = out_req(m, LEN, &other, 0);
		pattern_fill(shared, LEN, i + 5, 0);
		EXPECT(0, peer_status(&cast->a, &req, NULL));
		EXPECT(0, peer_check(&cast->b, other.addr, LEN, i + 5, 0));
	}
	munmap(m, MAPPED);
	munmap(shared, MAPPED);
	close(file);
	return 0;
}

/*
 * ucx#5364: fork between two uses.  The parent's transfers go to the parent's
 * memory, whoever writes first after the fork; the child has its own.
 */
static int forked(struct cast *cast)
{
	struct area other;

	CALL(other_area(cast, &other));
	for (unsigned int kind = 0; kind < 4; kind++) {
		unsigned char *m = map(MAPPED, NULL);
		int go[2], status = -1;
		char c = 0;
		pid_t pid;

		note("kind %u", kind);
		EXPECT(0, pipe(go));
		CALL(both_ways(cast, m, LEN, &other, kind));
		pattern_fill(m, LEN, 50, 0);
		pid = fork();
		if (!pid) {
			/* The child writes first in two of four, then waits, then looks. */
			int bad = 0;

			close(go[1]);
			if (kind & 1)
				pattern_fill(m, LEN, 60, 0);
			if (read(go[0], &c, 1) != 1)
				bad = 1;
			if (pattern_check(m, LEN, kind & 1 ? 60 : 50, 0) != LEN)
				bad = 2;
			/* nor can it use what it has inherited */
			if (hits(cast, m, LEN, RW) != -EPERM)
				bad = 3;
			_exit(bad);
		}
		close(go[0]);
		if (kind & 2)
			usleep(50000);
		CALL(bring(cast, m, LEN, &other, 0, 70));
		CALL(take(cast, m, LEN, &other, 0, 80));
		EXPECT(1, write(go[1], &c, 1));
		EXPECT(pid, waitpid(pid, &status, 0));
		EXPECT(0, status);
		close(go[1]);
		/* its end has ended nothing */
		CALL(both_ways(cast, m, LEN, &other, 90));
		munmap(m, MAPPED);
	}
	return 0;
}

/* ucx#5364: an explicit region lives through fork as well. */
static int forked_region(struct cast *cast)
{
	struct area own, other;
	struct xnem_submit_req req;
	int status = -1;
	pid_t pid;

	CALL(other_area(cast, &other));
	EXPECT(0, make_area(&own, &cast->a, LEN, 5, RW, 0));
	memset((void *)(uintptr_t)own.addr, 1, LEN);
	pid = fork();
	if (!pid) {
		/* as a shell would: close and end */
		peer_close(&cast->a);
		usleep(300000);
		_exit(0);
	}
	for (unsigned int i = 0; i < 10; i++) {
		EXPECT(0, peer_fill(&cast->b, other.addr, LEN, i, 0));
		req = copy_req(&own, 0, &other, 0, LEN);
		EXPECT(0, peer_status(&cast->a, &req, NULL));
		EXPECT(0, peer_check(&cast->a, own.addr, LEN, i, 0));
		/* written by the parent itself: still the pages of the region */
		EXPECT(0, peer_fill(&cast->a, own.addr, LEN, i + 100, 0));
		req = copy_req(&other, 0, &own, 0, LEN);
		EXPECT(0, peer_status(&cast->b, &req, NULL));
		EXPECT(0, peer_check(&cast->b, other.addr, LEN, i + 100, 0));
		usleep(50000);
	}
	EXPECT(pid, waitpid(pid, &status, 0));
	EXPECT(0, status);
	req = copy_req(&other, 0, &own, 0, LEN);
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	return 0;
}

/* A use that has begun goes on with the pages of then. */
static int unmapped_in_use(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_cache_get get;
	struct xnem_submit_req req;
	struct area other;

	CALL(other_area(cast, &other));
	pattern_fill(m, LEN, 1, 0);
	EXPECT(0, cache_get(cast, m, LEN, RW, &get));
	EXPECT(0, munmap(m, MAPPED));
	EXPECT_TRUE(map(MAPPED, m) == m);
	memset(m, 9, MAPPED);
	req = copy_req(&other, 0, &other, get.offset, LEN);
	req.src = get.cookie;
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr, LEN, 1, 0));
	req = copy_req(&other, get.offset, &other, 0, LEN);
	req.dst = get.cookie;
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	/* not into the memory of now */
	EXPECT(MAPPED, byte_check(m, MAPPED, 9));
	EXPECT(0, cache_put(cast, &get));
	EXPECT(-EINVAL, cache_put(cast, &get));
	CALL(both_ways(cast, m, LEN, &other, 5));
	munmap(m, MAPPED);
	return 0;
}

/* Another thread changes the mappings around, and in, what is used. */
static volatile bool enough;

static void *mapper(void *arg)
{
	unsigned char *m = arg;

	while (!enough) {
		/* its own part: the last quarter of the same mapping */
		madvise(m + 150 * 4096, 50 * 4096, MADV_DONTNEED);
		mprotect(m + 150 * 4096, 10 * 4096, PROT_READ);
		mprotect(m + 150 * 4096, 10 * 4096, PROT_RW);
		map(20 * 4096, m + 180 * 4096);
		m[199 * 4096] = 1;
		usleep(500);
	}
	return NULL;
}

static int changed_meanwhile(struct cast *cast)
{
	unsigned char *m = map(200 * 4096, NULL);
	struct area other;
	pthread_t thread;
	int bad = 0;

	CALL(other_area(cast, &other));
	enough = false;
	EXPECT(0, pthread_create(&thread, NULL, mapper, m));
	for (uint64_t i = 0, end = now_ns() + 3000000000ull; !bad && now_ns() < end; i++) {
		bad = both_ways(cast, m + 4096 + i % 4000, 500000, &other, i);
		if (!bad) {
			/* all of it, whatever it is just now: no more than an error */
			int err = hits(cast, m, 200 * 4096, RW);

			bad = err < 0 && err != -EFAULT && err != -EAGAIN && err != -EINTR;
			if (bad)
				note("all of it: %d", err);
		}
	}
	enough = true;
	pthread_join(thread, NULL);
	munmap(m, 200 * 4096);
	EXPECT(0, bad);
	return 0;
}

/* ---- what is kept ---- */

static int parts_and_access(struct cast *cast)
{
	unsigned char *m = map(MIB(1), NULL);
	struct xnem_cache_get a, b;
	struct area other;

	CALL(other_area(cast, &other));
	memset(m, 1, MIB(1));
	EXPECT(0, hits(cast, m, MIB(1), XNEM_REG_READ));
	EXPECT(1, hits(cast, m + 5000, 70000, XNEM_REG_READ));
	/* not for writing */
	EXPECT(0, hits(cast, m + 5000, 70000, XNEM_REG_WRITE));
	EXPECT(1, hits(cast, m + 5000, 70000, XNEM_REG_WRITE));
	CALL(both_ways(cast, m + 5000, 70000, &other, 1));
	CALL(both_ways(cast, m + 4000, 90000, &other, 2));
	/* two uses of one */
	EXPECT(0, cache_get(cast, m, 4096, XNEM_REG_READ, &a));
	EXPECT(0, cache_get(cast, m, 4096, XNEM_REG_READ, &b));
	EXPECT(1, b.hit);
	EXPECT(0, cache_put(cast, &a));
	EXPECT(0, cache_put(cast, &b));
	munmap(m, MIB(1));
	return 0;
}

static int other_user_flag(struct cast *cast)
{
	unsigned char *m = map(4096, NULL);
	struct xnem_cache_get get = { .addr = (uintptr_t)m, .length = 4096, .access = RW };

	EXPECT(0, hits(cast, m, 4096, RW));
	/* a region for any user is another one than for one's own alone */
	get.flags = XNEM_REG_ANY_USER;
	EXPECT(0, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	EXPECT(0, get.hit);
	EXPECT(0, cache_put(cast, &get));
	EXPECT(1, hits(cast, m, 4096, RW) >= 0);
	munmap(m, 4096);
	return 0;
}

/* What goes is given back by somebody else, in time: pages that are kept idle, and all. */
static int wait_kept(struct cast *cast, uint64_t idle, uint64_t all, struct xnem_stats *stats)
{
	for (unsigned int k = 0; k < 500; k++) {
		EXPECT(0, peer_stats(&cast->a, stats));
		if (stats->cache_pages <= idle && stats->pages <= all)
			break;
		usleep(20000);
	}
	note("%u kept", (unsigned int)stats->cache_pages);
	EXPECT_TRUE(stats->cache_pages <= idle);
	EXPECT_TRUE(stats->pages <= all);
	return 0;
}

static int least_recently_used(struct cast *cast)
{
	enum { NR = 8, PAGES = 16 };
	unsigned char *m = map(NR * PAGES * 4096 * 2, NULL);
	struct xnem_stats stats;
	struct xnem_cache_get get;

#define BUF(i) (m + (i)*PAGES * 4096 * 2)
	EXPECT(0, cache_limit(cast, 4 * PAGES));
	for (unsigned int i = 0; i < NR; i++) {
		EXPECT(0, hits(cast, BUF(i), PAGES * 4096, RW));
		CALL(wait_kept(cast, 4 * PAGES, 4 * PAGES, &stats));
	}
	EXPECT(4, stats.cache_evicted);
	/* 4 to 7 are there; 4 is used, so 5 is the next to go */
	EXPECT(1, hits(cast, BUF(4), PAGES * 4096, RW));
	EXPECT(0, hits(cast, BUF(0), PAGES * 4096, RW));
	CALL(wait_kept(cast, 4 * PAGES, 4 * PAGES, &stats));
	EXPECT(5, stats.cache_evicted);
	EXPECT(1, hits(cast, BUF(4), PAGES * 4096, RW));
	EXPECT(1, hits(cast, BUF(6), PAGES * 4096, RW));
	EXPECT(1, hits(cast, BUF(7), PAGES * 4096, RW));
	EXPECT(0, hits(cast, BUF(5), PAGES * 4096, RW));
	/* what is in use does not go, and does not count */
	EXPECT(0, cache_get(cast, BUF(1), PAGES * 4096, RW, &get));
	EXPECT(0, cache_limit(cast, 0));
	CALL(wait_kept(cast, 0, PAGES, &stats));
	EXPECT(PAGES, stats.pages);
	EXPECT(0, cache_put(cast, &get));
	CALL(wait_kept(cast, 0, 0, &stats));
	munmap(m, NR * PAGES * 4096 * 2);
	return 0;
}

/* Off: each use makes a region and ends it. */
static int switched_off(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_stats stats;
	struct area other;

	CALL(other_area(cast, &other));
	EXPECT(0, cache_limit(cast, 0));
	for (unsigned int i = 0; i < 5; i++) {
		EXPECT(0, hits(cast, m, LEN, RW));
		CALL(both_ways(cast, m, LEN, &other, i));
	}
	for (unsigned int i = 0; i < 20; i++) {
		EXPECT(0, peer_stats(&cast->a, &stats));
		if (!stats.pages)
			break;
		usleep(100000);
	}
	EXPECT(0, stats.pages);
	EXPECT(0, stats.cache_hits);
	EXPECT(20, stats.cache_misses);
	EXPECT(0, cache_limit(cast, ~0ull));
	EXPECT(0, hits(cast, m, LEN, RW));
	EXPECT(1, hits(cast, m, LEN, RW));
	munmap(m, MAPPED);
	return 0;
}

/* More than RLIMIT_MEMLOCK in all, never at once: what is idle makes room. */
static int memlock(struct cast *cast)
{
	struct rlimit limit = { MIB(8), MIB(8) };
	unsigned char *m = map(MIB(24), NULL);
	struct xnem_cache_get get;
	struct xnem_stats stats;
	struct area other;

	CALL(other_area(cast, &other));
	if (geteuid())
		EXPECT(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	for (unsigned int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 24; i++) {
			note("MiB %" PRIu64, i);
			CALL(bring(cast, m + MIB(i), MIB(1) - 500, &other, 0, i));
		}
	EXPECT(0, peer_stats(&cast->a, &stats));
	if (geteuid()) {
		EXPECT_TRUE(stats.cache_evicted);
		EXPECT_TRUE(stats.pages <= 2048);
		/* at once it is too much, and it is said why */
		EXPECT(-ENOMEM, cache_get(cast, m, MIB(16), RW, &get));
		EXPECT(1, get.limit);
		struct xnem_submit_req req = in_req(m, MIB(16), &other, 0);

		req.length = MIB(16);
		req.flags |= XNEM_SUBMIT_BOUNDED;
		EXPECT(-ENOMEM, peer_status(&cast->a, &req, NULL));
		/* and what fits goes on */
		CALL(both_ways(cast, m, MIB(1) - 500, &other, 3));
	}
	munmap(m, MIB(24));
	return 0;
}

/* ---- arguments ---- */

static int wrong(struct cast *cast)
{
	unsigned char *m = map(MAPPED, NULL);
	struct xnem_cache_get good = { .addr = (uintptr_t)m, .length = LEN, .access = RW }, get;
	struct xnem_cache_put put = { .handle = 77777 };
	struct xnem_cache_limit limit = { .max_pages = 5 };
	struct xnem_submit_req req;
	struct area other;

	CALL(other_area(cast, &other));
	get = good;
	get.length = 0;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	get = good;
	get.addr = UINT64_MAX - 100;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	get = good;
	get.access = 0;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	get = good;
	get.access = 4;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	for (unsigned int bit = 1; bit < 32; bit++) {
		get = good;
		get.flags = 1u << bit;
		note("flag %u", bit);
		EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	}
	note("%s", "");
	get = good;
	get.reserved0 = 1;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	for (unsigned int i = 0; i < 2; i++) {
		get = good;
		get.reserved[i] = 1;
		EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	}
	get = good;
	get.addr = 0;
	EXPECT(-EFAULT, peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get));
	get = good;
	get.length = 1ull << 50;
	EXPECT_TRUE(peer_ioctl(&cast->a, XNEM_IOC_CACHE_GET, &get) < 0);
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_PUT, &put));
	put.handle = 0xffffffff;
	EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_PUT, &put));
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT(0, cache_get(cast, m, LEN, RW, &get));
		put = (struct xnem_cache_put){ .handle = get.handle };
		put.reserved[i] = 1;
		EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_PUT, &put));
		EXPECT(0, cache_put(cast, &get));
		limit.reserved[i] = 1;
		EXPECT(-EINVAL, peer_ioctl(&cast->a, XNEM_IOC_CACHE_LIMIT, &limit));
		limit.reserved[i] = 0;
	}
	/* an address and a cookie; an address of nothing, of what is not there, on the other side */
	req = in_req(m, LEN, &other, 0);
	req.dst.id = 1;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req = out_req(m, LEN, &other, 0);
	req.src.key = 1;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req = in_req((void *)4096, LEN, &other, 0);
	EXPECT(-EFAULT, peer_status(&cast->a, &req, NULL));
	req = (struct xnem_submit_req){ .op = XNEM_REQ_OP_PING, .flags = XNEM_SUBMIT_SRC_ADDR };
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	/* both sides by address */
	req = in_req(m, 50000, &other, 0);
	memset(&req.src, 0, sizeof(req.src));
	req.flags |= XNEM_SUBMIT_SRC_ADDR;
	req.src_offset = (uintptr_t)m + 60001;
	pattern_fill(m + 60001, 50000, 3, 0);
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(50000, pattern_check(m, 50000, 3, 0));
	/* fewer bytes than the other side has */
	req = in_req(m, LEN, &other, MIB(1) - 1000);
	EXPECT(-ERANGE, peer_status(&cast->a, &req, NULL));
	munmap(m, MAPPED);
	return 0;
}

const struct test cache_tests[] = {
	{ "a hit makes no pin, no grant, no request", hit_costs_nothing, 0 },
	{ "libfabric#9874: every page offset, on both sides, from one entry", every_offset, 0 },
	{ "ucx#5146, ompi#4509: unmapped, and mapped again at the same address", mapped_again, 0 },
	{ "ucx#5146, ompi#4509: malloc and free", freed_and_allocated, 0 },
	{ "mremap", moved, 0 },
	{ "madvise", discarded, 0 },
	{ "mprotect", protected, 0 },
	{ "truncate, and holes punched", truncated, 0 },
	{ "copy on write, the zero page, read-only private mappings", copied_on_write, 0 },
	{ "ucx#5364: fork, whoever writes first", forked, 0 },
	{ "ucx#5364: a region, and a child that closes and ends", forked_region, 0 },
	{ "unmapped during a use", unmapped_in_use, 0 },
	{ "mappings change meanwhile", changed_meanwhile, 0 },
	{ "parts of an entry, and another access", parts_and_access, 0 },
	{ "entries for any user are others", other_user_flag, 0 },
	{ "the least recently used go first, those in use do not", least_recently_used, 0 },
	{ "a limit of 0 keeps nothing", switched_off, 0 },
	{ "RLIMIT_MEMLOCK: idle entries make room, and the limit is named", memlock, 0 },
	{ "wrong arguments", wrong, XNEM_FEAT_CANCEL },
	{ 0 },
};
