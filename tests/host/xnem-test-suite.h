/* SPDX-License-Identifier: MIT */
/*
 * xnem-test-suite.h - tests that have several processes
 *
 * `xnem-test suite NAME` runs those of one theme; the results are printed in
 * the Test Anything Protocol.
 */
#ifndef XNEM_TEST_SUITE_H
#define XNEM_TEST_SUITE_H

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tap.h"
#include "xnem-test-peer.h"
#include "xnem-test.h"

#define RW (XNEM_REG_READ | XNEM_REG_WRITE)
#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

/**
 * Who takes part: a is the process itself, b may be in another guest, c is a
 * child.  A test begins with all of them open, and their pages mapped when its
 * suite wants that.
 */
struct cast {
	struct peer a, b, c;
	/** b is in another guest, thus another device */
	bool remote;
	const char *device;
	/** where this and b run, or -1: not told; a file that is written back to a disk, or NULL */
	int domid, peer_domid;
	const char *disk;
	/** the grant table has no room for 64 MiB */
	bool small;
};

struct test {
	const char *name;
	/** 0 when all is right; else EXPECT has said what is not */
	int (*run)(struct cast *cast);
	/** XNEM_FEAT_* without which it is left out */
	uint64_t needs;
};

/** A region and its memory, in some peer. */
struct area {
	struct peer *owner;
	uint64_t addr, bytes;
	struct xnem_register reg;
};
/** Memory of @kind with @extra bytes before its first, registered; 0 or a negative errno. */
int make_area(struct area *area, struct peer *owner, uint64_t bytes, uint64_t offset,
	      uint32_t access, uint32_t flags);
struct xnem_submit_req copy_req(const struct area *dst, uint64_t dst_off, const struct area *src,
				uint64_t src_off, uint64_t len);
/** Copies as @who, and looks that it did. */
int copy_and_check(struct peer *who, const struct area *dst, uint64_t dst_off,
		   const struct area *src, uint64_t src_off, uint64_t len, uint64_t seed);

/** Of this process, straight: 0 or a negative errno. */
int ioctl_here(int fd, unsigned long request, void *arg);
/** What mapping a descriptor fails with; 0: it did not fail, and is unmapped again. */
int map_errno(int fd, size_t bytes, int prot, int flags, int64_t offset);

extern const struct test messages_tests[], async_tests[], segments_tests[], windows_tests[],
	cache_tests[], buffers_tests[];

#endif /* XNEM_TEST_SUITE_H */
