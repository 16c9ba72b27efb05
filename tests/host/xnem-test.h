/* SPDX-License-Identifier: MIT */
/*
 * xnem-test.h - what the parts of xnem-test share
 */
#ifndef XNEM_TEST_H
#define XNEM_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pattern.h"
#include "xnem.h"

/** Exit codes; usage() explains them. */
enum {
	T_OK = 0,
	T_FAILED = 2,
	T_DATA = 3,
	T_EXPECT = 4,
	T_USAGE = 64,
	/** T_ERRNO + place in the list of peer_errors[] */
	T_ERRNO = 20,
};

/** Bytes that are watched on either side of a destination. */
#define GUARD 64
/** What untouched memory holds. */
#define GUARD_BYTE 0xa5

/** Options of all subcommands; each uses what it knows. */
struct options {
	const char *device;
	uint64_t bytes;
	uint64_t offset;
	uint64_t src_offset, dst_offset;
	uint64_t seed;
	uint64_t verify_seed;
	uint64_t verify_offset, verify_bytes;
	bool has_seed, has_verify, has_verify_range;
	unsigned int access;
	bool any_user;
	bool untouched;
	bool keep;
	bool put;
	const char *memory;
	const char *cookie_file;
	int64_t hold_ns;
	int expect;
	bool has_expect;
	uint64_t seconds;
	uint64_t count;
	uint64_t chunk;
	uint64_t depth;
	uint64_t threads;
	const char *peer, *only, *except, *disk;
	int domid, peer_domid;
	bool small;
	uint64_t port;
};

/** Memory of this process, with space before and behind. */
struct memory {
	unsigned char *base;
	size_t total;
	/** where the offset wanted begins */
	unsigned char *start;
	bool heap;
};

/* xnem-test.c */
void *must_alloc(size_t len);
int make_memory(const struct options *opt, struct memory *mem, uint64_t len);
void free_memory(struct memory *mem);
struct xnem *must_open(const struct options *opt);
void parse_cookie(const char *text, struct xnem_cookie *cookie);
int finish_expect(const struct options *opt, int err);
int fail(const char *what, int err);
uint64_t now_ns(void);

/* xnem-test-run.c */
int cmd_matrix(const struct options *opt, char **args);
int cmd_stream(const struct options *opt, char **args);
int cmd_ping(const struct options *opt, char **args);
int cmd_lat(const struct options *opt, char **args);
int cmd_watch(const struct options *opt, char **args);
int cmd_bw(const struct options *opt, char **args);
int cmd_threads(const struct options *opt, char **args);
int cmd_signals(const struct options *opt, char **args);
int cmd_hangup(const struct options *opt, char **args);
int cmd_churn(const struct options *opt, char **args);

/* xnem-test-suite.c */
int cmd_suite(const struct options *opt, char **args);
int cmd_serve(const struct options *opt, char **args);

/* xnem-test-args.c */
int cmd_args(const struct options *opt, char **args);

#endif /* XNEM_TEST_H */
