// SPDX-License-Identifier: MIT
/*
 * xnem-test-buffers.c - memory of every kind as source and as destination,
 * and memory that has to be refused
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xnem-test-suite.h"

#define PROT_RW (PROT_READ | PROT_WRITE)
#define HUGE MIB(2)

/* The kernel's xen/gntdev.h. */
struct gntdev_map {
	uint32_t count, pad;
	uint64_t index;
	uint32_t domid, gref;
};
#define GNTDEV_MAP _IOC(_IOC_NONE, 'G', 0, 24)

static int register_here(struct cast *cast, const void *addr, uint64_t len, uint32_t access,
			 struct area *area)
{
	*area = (struct area){ .owner = &cast->a, .addr = (uintptr_t)addr, .bytes = len };
	return peer_register(&cast->a, area->addr, len, access, 0, &area->reg);
}

/* Registering it fails with @err, and leaves nothing. */
static int refused(struct cast *cast, const void *addr, uint64_t len, uint32_t access, int err)
{
	struct xnem_info before, after;
	struct area area;

	EXPECT(0, peer_info(&cast->a, &before));
	EXPECT(err, register_here(cast, addr, len, access, &area));
	EXPECT(0, peer_info(&cast->a, &after));
	EXPECT(before.used_pages, after.used_pages);
	return 0;
}

/* Into it and out of it, by a peer and by us, at odd places. */
static int good(struct cast *cast, unsigned char *addr, uint64_t len)
{
	struct area own, other;
	struct xnem_submit_req req;
	uint64_t at = len > 5000 ? 4093 : 1, n = len - at - 3;

	EXPECT(0, make_area(&other, &cast->b, len, 77, RW, 0));
	EXPECT(0, register_here(cast, addr, len, XNEM_REG_READ, &own));
	pattern_fill(addr, len, 1, 0);
	EXPECT(0, peer_set(&cast->b, other.addr, len, 0));
	req = copy_req(&other, 5, &own, at, n - 5);
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr + 5, n - 5, 1, at));
	/* not writable by others, though it is by us */
	req = copy_req(&own, 0, &other, 0, 1);
	EXPECT(-EACCES, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_deregister(&cast->a, &own.reg));

	EXPECT(0, register_here(cast, addr, len, XNEM_REG_WRITE, &own));
	EXPECT(0, peer_fill(&cast->b, other.addr, len, 2, 0));
	req = copy_req(&own, at, &other, 3, n);
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(n, pattern_check(addr + at, n, 2, 3));
	/* our own bytes around it */
	EXPECT(at, pattern_check(addr, at, 1, 0));
	EXPECT(3, pattern_check(addr + at + n, 3, 1, at + n));
	EXPECT(0, peer_deregister(&cast->a, &own.reg));
	EXPECT(0, peer_deregister(&cast->b, &other.reg));
	EXPECT(0, peer_unmap(&cast->b, other.addr & ~4095ull, (77 + len + 8191) & ~4095ull));
	return 0;
}

static int stack(struct cast *cast)
{
	unsigned char here[100001], small[60];

	CALL(good(cast, here, sizeof(here)));
	return good(cast, small, sizeof(small));
}

static unsigned char in_bss[50001], in_data[50001] = { 1 };

static int heap(struct cast *cast)
{
	static const uint64_t lengths[] = { 64, 5000, 120000, MIB(2) };

	for (unsigned int i = 0; i < 4; i++) {
		unsigned char *m = malloc(lengths[i]);

		EXPECT_TRUE(m);
		CALL(good(cast, m, lengths[i]));
		free(m);
	}
	CALL(good(cast, in_bss, sizeof(in_bss)));
	return good(cast, in_data, sizeof(in_data));
}

static int transparent_huge(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 3 * HUGE, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *at = (unsigned char *)(((uintptr_t)m + HUGE - 1) & ~(uintptr_t)(HUGE - 1));

	EXPECT_TRUE(m != MAP_FAILED);
	madvise(at, 2 * HUGE, MADV_HUGEPAGE);
	memset(at, 1, 2 * HUGE);
	CALL(good(cast, at, 2 * HUGE));
	CALL(good(cast, at + HUGE - 40000, 80001));
	/* one that is split afterwards */
	madvise(at + 8192, 4096, MADV_DONTNEED);
	CALL(good(cast, at + 1, HUGE));
	munmap(m, 3 * HUGE);
	return 0;
}

/* Where the kernel has been given some: the scenario sees to that. */
static int huge_tlb(struct cast *cast)
{
	unsigned char *m =
		mmap(NULL, 2 * HUGE, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "re");
	int nr = 0;

	if (f && fscanf(f, "%d", &nr) != 1)
		nr = 0;
	if (f)
		fclose(f);
	if (nr < 2)
		return 0;
	EXPECT_TRUE(m != MAP_FAILED);
	CALL(good(cast, m, 2 * HUGE));
	CALL(good(cast, m + HUGE - 5000, 10001));
	munmap(m, 2 * HUGE);
	m = mmap(NULL, 2 * HUGE, PROT_RW, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	EXPECT_TRUE(m != MAP_FAILED);
	CALL(good(cast, m + 33, HUGE));
	munmap(m, 2 * HUGE);
	return 0;
}

static int shared(struct cast *cast)
{
	int file = memfd_create("buffer", MFD_CLOEXEC);
	int shm = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int tmp = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	unsigned char *m = mmap(NULL, 300000, PROT_RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int files[] = { file, shm, tmp };

	CALL(good(cast, m, 300000));
	munmap(m, 300000);
	for (unsigned int i = 0; i < 3; i++) {
		note("file %u", i);
		EXPECT_TRUE(files[i] >= 0);
		EXPECT(0, ftruncate(files[i], 300000));
		m = mmap(NULL, 300000, PROT_RW, MAP_SHARED, files[i], 0);
		EXPECT_TRUE(m != MAP_FAILED);
		CALL(good(cast, m, 300000));
		/* what came in is in the file */
		unsigned char byte;

		EXPECT(1, pread(files[i], &byte, 1, 5000));
		EXPECT(m[5000], byte);
		munmap(m, 300000);
		m = mmap(NULL, 300000, PROT_RW, MAP_PRIVATE, files[i], 0);
		CALL(good(cast, m, 300000));
		munmap(m, 300000);
		close(files[i]);
	}
	return 0;
}

/* Several mappings of different kinds, one behind the other. */
static int side_by_side(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 6 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int file = memfd_create("buffer", MFD_CLOEXEC);

	EXPECT_TRUE(m != MAP_FAILED && file >= 0 && !ftruncate(file, 65536));
	EXPECT_TRUE(mmap(m, 65536, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == m);
	EXPECT_TRUE(mmap(m + 65536, 65536, PROT_RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) != MAP_FAILED);
	EXPECT_TRUE(mmap(m + 2 * 65536, 65536, PROT_RW, MAP_SHARED | MAP_FIXED, file, 0) !=
		    MAP_FAILED);
	EXPECT_TRUE(mmap(m + 3 * 65536, 65536, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) != MAP_FAILED);
	CALL(good(cast, m + 5, 4 * 65536 - 5));
	/* into the part that has no access; over a hole; nothing stays pinned */
	CALL(refused(cast, m, 5 * 65536, XNEM_REG_READ, -EFAULT));
	CALL(refused(cast, m, 5 * 65536, RW, -EFAULT));
	munmap(m + 65536 + 4096, 4096);
	CALL(refused(cast, m, 4 * 65536, XNEM_REG_READ, -EFAULT));
	CALL(refused(cast, m + 65536 + 4095, 2, XNEM_REG_WRITE, -EFAULT));
	CALL(good(cast, m, 65536 + 4096));
	munmap(m, 6 * 65536);
	close(file);
	return 0;
}

static int read_only(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 65536, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct area own, other;
	struct xnem_submit_req req;

	EXPECT(0, make_area(&other, &cast->b, 65536, 1, RW, 0));
	pattern_fill(m, 65536, 4, 0);
	EXPECT(0, mprotect(m, 65536, PROT_READ));
	CALL(refused(cast, m, 65536, XNEM_REG_WRITE, -EFAULT));
	CALL(refused(cast, m, 65536, RW, -EFAULT));
	EXPECT(0, register_here(cast, m, 65536, XNEM_REG_READ, &own));
	req = copy_req(&other, 0, &own, 0, 65536);
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr, 65536, 4, 0));
	munmap(m, 65536);
	/* the program's own text, a mapping of a file that nobody writes to */
	EXPECT(0, register_here(cast, (void *)((uintptr_t)&read_only & ~4095ul), 100, XNEM_REG_READ,
				&own));
	CALL(refused(cast, (void *)((uintptr_t)&read_only & ~4095ul), 100, XNEM_REG_WRITE,
		     -EFAULT));
	/* memory that can only be written is no source, and cannot be had on this machine */
	m = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CALL(refused(cast, m, 4096, XNEM_REG_READ, -EFAULT));
	CALL(refused(cast, m, 4096, XNEM_REG_WRITE, -EFAULT));
	munmap(m, 4096);
	return 0;
}

/* Pages of a device, and such that the kernel shares with all processes. */
static int device(struct cast *cast)
{
	char line[256], name[64];
	unsigned long from, to, at = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	struct xnem_info info;
	const char *path = cast->device ? cast->device : "/dev/xnem0";
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *pages;

	EXPECT_TRUE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %63s", &from, &to, name) == 3 &&
		    !strcmp(name, "[vvar]"))
			at = from;
	fclose(f);
	EXPECT_TRUE(at);
	CALL(refused(cast, (void *)at, 4096, XNEM_REG_READ, -EOPNOTSUPP));
	/* the pages that XNEM itself shares with the backend */
	EXPECT_TRUE(fd >= 0);
	EXPECT(0, peer_info(&cast->a, &info));
	pages = mmap(NULL, info.pages_bytes, PROT_RW, MAP_SHARED, fd, 0);
	EXPECT_TRUE(pages != MAP_FAILED);
	CALL(refused(cast, pages, 4096, XNEM_REG_READ, -EOPNOTSUPP));
	CALL(refused(cast, (char *)pages + 4096, 4096, RW, -EOPNOTSUPP));
	munmap(pages, info.pages_bytes);
	close(fd);
	return 0;
}

/*
 * What another guest has granted, mapped here.  (Not one's own: that a page of its own
 * is mapped twice costs a PVH guest the first mapping, and thus its memory.)
 */
static int foreign_grant(struct cast *cast)
{
	struct gntdev_map map = { .count = 1, .domid = (uint32_t)cast->peer_domid };
	int64_t gref;
	void *m;
	int fd;

	if (!cast->remote)
		return 0;
	EXPECT_TRUE(cast->domid >= 0 && cast->peer_domid >= 0);
	gref = peer_grant(&cast->b, (unsigned int)cast->domid);
	EXPECT_TRUE(gref > 0);
	fd = open("/dev/xen/gntdev", O_RDWR | O_CLOEXEC);
	EXPECT_TRUE(fd >= 0);
	map.gref = (uint32_t)gref;
	EXPECT(0, ioctl_here(fd, GNTDEV_MAP, &map));
	m = mmap(NULL, 4096, PROT_RW, MAP_SHARED, fd, (off_t)map.index);
	EXPECT_TRUE(m != MAP_FAILED);
	memset(m, 1, 4096);
	CALL(refused(cast, m, 4096, XNEM_REG_READ, -EOPNOTSUPP));
	CALL(refused(cast, m, 100, XNEM_REG_WRITE, -EOPNOTSUPP));
	munmap(m, 4096);
	close(fd);
	return 0;
}

/* A file that is written back to a disk: a source, and never a destination. */
static int disk(struct cast *cast)
{
	const uint64_t len = 200000;
	struct area own, other;
	struct xnem_submit_req req;
	unsigned char *m, *was;
	int file;

	if (!cast->disk)
		return 0;
	file = open(cast->disk, O_RDWR | O_CLOEXEC);
	EXPECT_TRUE(file >= 0);
	EXPECT(0, make_area(&other, &cast->b, len, 3, RW, 0));
	was = malloc(len);
	m = mmap(NULL, len, PROT_RW, MAP_SHARED, file, 0);
	EXPECT_TRUE(m != MAP_FAILED && was);
	pattern_fill(m, len, 7, 0);
	memcpy(was, m, len);
	CALL(refused(cast, m, len, XNEM_REG_WRITE, -EOPNOTSUPP));
	CALL(refused(cast, m + 5, 100, RW, -EOPNOTSUPP));
	req = copy_req(&other, (uintptr_t)m, &other, 0, len);
	memset(&req.dst, 0, sizeof(req.dst));
	req.flags = XNEM_SUBMIT_DST_ADDR;
	EXPECT(-EOPNOTSUPP, peer_status(&cast->a, &req, NULL));
	EXPECT(0, register_here(cast, m, len, XNEM_REG_READ, &own));
	req = copy_req(&other, 0, &own, 0, len);
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr, len, 7, 0));
	EXPECT(0, peer_deregister(&cast->a, &own.reg));
	munmap(m, len);
	/* a private mapping is the process's own memory; the disk does not change */
	m = mmap(NULL, len, PROT_RW, MAP_PRIVATE, file, 0);
	EXPECT_TRUE(m != MAP_FAILED);
	CALL(good(cast, m, len));
	munmap(m, len);
	m = mmap(NULL, len, PROT_READ, MAP_SHARED, file, 0);
	EXPECT(0, memcmp(m, was, len));
	munmap(m, len);
	free(was);
	close(file);
	return 0;
}

/* By address, with a hole in the middle: nothing is started, nothing is left. */
static int holes(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 65536, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xnem_submit_req req;
	struct xnem_stats stats;
	struct area other;
	uint64_t bytes = 1;

	EXPECT(0, make_area(&other, &cast->b, 65536, 3, RW, 0));
	memset(m, 9, 65536);
	munmap(m + 40960, 4096);
	for (unsigned int side = 0; side < 2; side++) {
		req = copy_req(&other, 0, &other, 0, 65536);
		if (side) {
			memset(&req.dst, 0, sizeof(req.dst));
			req.dst_offset = (uintptr_t)m;
			req.flags = XNEM_SUBMIT_DST_ADDR;
		} else {
			memset(&req.src, 0, sizeof(req.src));
			req.src_offset = (uintptr_t)m;
			req.flags = XNEM_SUBMIT_SRC_ADDR;
		}
		EXPECT(-EFAULT, peer_status(&cast->a, &req, &bytes));
		EXPECT(0, bytes);
		req.flags |= XNEM_SUBMIT_BOUNDED;
		EXPECT(-EFAULT, peer_status(&cast->a, &req, &bytes));
	}
	EXPECT(0, peer_stats(&cast->a, &stats));
	EXPECT(0, stats.pages);
	EXPECT(0, stats.requests);
	EXPECT(40960, byte_check(m, 40960, 9));
	munmap(m, 65536);
	return 0;
}

/* The same, by libxnem's vectors: it says how far it got. */
static int vector_with_hole(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 65536, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xnem_cookie cookie = { 0 };
	struct xnem_info info;
	struct iovec iov[4];
	struct area other;
	struct xnem *ctx;
	uint64_t done = 0;
	int err;

	EXPECT(0, xnem_open(cast->device, &ctx));
	EXPECT(0, make_area(&other, &cast->b, 65536, 3, RW, 0));
	EXPECT(0, peer_fill(&cast->b, other.addr, 65536, 3, 0));
	EXPECT(0, peer_info(&cast->b, &info));
	/* as the library writes it: id, key, fabric */
	memcpy(cookie.bytes, &other.reg.cookie, 16);
	memcpy(cookie.bytes + 16, &info.fabric_id, 8);
	munmap(m + 40960, 4096);
	for (unsigned int i = 0; i < 4; i++)
		iov[i] = (struct iovec){ m + i * 10000 + i * 4000, 9000 };
	err = xnem_getv(ctx, iov, 4, &cookie, 11, &done);
	EXPECT(-EFAULT, err);
	EXPECT(27000, done);
	for (unsigned int i = 0; i < 3; i++)
		EXPECT(9000, pattern_check(iov[i].iov_base, 9000, 3, 11 + i * 9000));
	EXPECT(0, xnem_getv(ctx, iov, 3, &cookie, 11, &done));
	EXPECT(27000, done);
	EXPECT(0, xnem_close(ctx));
	munmap(m, 65536);
	return 0;
}

/* What the process does with it is seen by the peer, and the other way round. */
static int touched_later(struct cast *cast)
{
	unsigned char *m = mmap(NULL, 300000, PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct area own, other;
	struct xnem_submit_req req;

	EXPECT(0, make_area(&other, &cast->b, 300000, 3, RW, 0));
	EXPECT(0, register_here(cast, m, 300000, XNEM_REG_READ, &own));
	for (unsigned int i = 0; i < 3; i++) {
		pattern_fill(m, 300000, i, 0);
		req = copy_req(&other, 0, &own, 0, 300000);
		EXPECT(0, peer_status(&cast->b, &req, NULL));
		EXPECT(0, peer_check(&cast->b, other.addr, 300000, i, 0));
	}
	/* the region is a snapshot: it outlives the mapping */
	munmap(m, 300000);
	req = copy_req(&other, 0, &own, 0, 300000);
	EXPECT(0, peer_status(&cast->b, &req, NULL));
	EXPECT(0, peer_check(&cast->b, other.addr, 300000, 2, 0));
	return 0;
}

const struct test buffers_tests[] = {
	{ "stack", stack, 0 },
	{ "heap, data, bss", heap, 0 },
	{ "transparent huge pages", transparent_huge, 0 },
	{ "hugetlb pages", huge_tlb, 0 },
	{ "shared memory, memfd, tmpfs", shared, 0 },
	{ "mappings of several kinds side by side", side_by_side, 0 },
	{ "read-only memory is a source", read_only, 0 },
	{ "a device's pages are refused", device, XNEM_FEAT_CPAGE },
	{ "foreign grants are refused", foreign_grant, 0 },
	{ "a file on a disk is no destination", disk, 0 },
	{ "holes", holes, XNEM_FEAT_CANCEL },
	{ "ucx#640: vectors with a hole say how far they got", vector_with_hole, 0 },
	{ "a region is a snapshot of the mapping", touched_later, 0 },
	{ 0 },
};
