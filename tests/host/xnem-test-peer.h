/* SPDX-License-Identifier: MIT */
/*
 * xnem-test-peer.h - processes that do as they are told
 *
 * A test of a suite tells several processes what to do: this one, children of
 * it, and others that `xnem-test serve` runs in another guest.  Each is a
 * struct peer; what it is told is the same, wherever it is: memory of its own,
 * and ioctls of its own context.
 */
#ifndef XNEM_TEST_PEER_H
#define XNEM_TEST_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/xnem.h>

/* Names that libxnem uses, too. */
#define xnem_cookie xnem_wire_cookie
#define xnem_op xnem_wire_op
#include <xen/io/xnemif.h>
#undef xnem_cookie
#undef xnem_op

/** Bytes that each peer keeps for what an ioctl points to. */
#define SCRATCH (256u << 10)
#define WAIT_NS 20000000000ll

struct peer {
	/** connection; -1: this process itself */
	int sock;
	/** child of this process, or 0 */
	pid_t pid;
	/** its pid where it runs */
	int64_t its_pid;
	/** address of SCRATCH bytes over there */
	uint64_t scratch;
	/** address of its context's pages, 0: not mapped; and how many slots the inbox has */
	uint64_t pages;
	uint32_t slots;
	/** read so far */
	uint32_t inbox_cons, cpage_cons;
	/** how it is called */
	const char *name;
};

/** Kinds of memory of peer_map(). */
enum kind {
	K_PRIVATE,
	K_SHARED,
	K_MEMFD,
	/** memfd of @bytes mapped @arg times back to back */
	K_REPEATED,
};

/* Where peers are from. */
int peer_self(struct peer *p);
int peer_fork(struct peer *p, const char *name);
int peer_connect(struct peer *p, const char *host_port);
/** Ends it as SIGKILL would; 0, or -errno. */
int peer_kill(struct peer *p);
/** Ends it as a process that is done. */
void peer_end(struct peer *p);
int peer_serve(unsigned int port);

/* What they do: 0 or more, or a negative errno. */
int peer_open(struct peer *p, const char *device, bool pages);
int peer_close(struct peer *p);
int64_t peer_map(struct peer *p, enum kind kind, uint64_t bytes, uint64_t arg);
int peer_unmap(struct peer *p, uint64_t addr, uint64_t bytes);
int peer_fill(struct peer *p, uint64_t addr, uint64_t len, uint64_t seed, uint64_t pos);
/** 0: as peer_fill() filled it; 1 + position of the first byte that is not. */
int64_t peer_check(struct peer *p, uint64_t addr, uint64_t len, uint64_t seed, uint64_t pos);
int peer_set(struct peer *p, uint64_t addr, uint64_t len, unsigned char byte);
int64_t peer_check_byte(struct peer *p, uint64_t addr, uint64_t len, unsigned char byte);
int peer_write(struct peer *p, uint64_t addr, const void *data, uint32_t len);
int peer_read(struct peer *p, uint64_t addr, void *data, uint32_t len);
/** A page that is not XNEM's, granted to a domain: its reference. */
int64_t peer_grant(struct peer *p, unsigned int domid);
/** Pieces, one behind the other, as one long stretch. */
int peer_fill_pieces(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t seed);
/**
 * Of this stretch, bytes [@from, @from + @len) are the pattern at their position plus
 * @shift, all others within @span bytes from @base on GUARD_BYTE (and are so afterwards).
 * 0, or 1 + the piece that is wrong, or 1 + @nr: a byte between them.
 */
int64_t peer_check_pieces(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t base,
			  uint64_t span, uint64_t from, uint64_t len, uint64_t seed,
			  uint64_t shift);
/** An ioctl; the argument goes there and comes back. */
int peer_ioctl(struct peer *p, unsigned long request, void *arg);
/** poll() of the device for @events; revents, 0: none in time. */
int peer_poll(struct peer *p, int events, int timeout_ms);
/** Waits for the word at @addr to have @value; -ETIME. */
int peer_wait32(struct peer *p, uint64_t addr, uint32_t value, int64_t timeout_ns);
/** Closes its context and unmaps all of its memory. */
int peer_reset(struct peer *p);
/** SIGSTOP for that time, by somebody else over there; does not wait. */
int peer_stop(struct peer *p, unsigned int ms);

/* Made of these. */
int peer_info(struct peer *p, struct xnem_info *info);
int peer_stats(struct peer *p, struct xnem_stats *stats);
int peer_register(struct peer *p, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags,
		  struct xnem_register *reg);
int peer_register_segs(struct peer *p, const struct xnem_seg *seg, uint32_t nr, uint64_t len,
		       uint32_t access, uint32_t flags, struct xnem_register *reg);
int peer_deregister(struct peer *p, const struct xnem_register *reg);
/** How many were started, or why none was. */
int peer_submit(struct peer *p, const struct xnem_submit_req *reqs, uint32_t n);
/** Tells it to start a request, and does not wait; peer_told() then is how many were. */
int peer_tell_later(struct peer *p, const struct xnem_submit_req *req);
int peer_told(struct peer *p);
/** How many have ended; waits for @min. */
int peer_complete(struct peer *p, struct xnem_complete *done, uint32_t min, uint32_t max,
		  int64_t timeout_ns);
/** One request and its end; an error when it could not be started. */
int peer_run(struct peer *p, const struct xnem_submit_req *req, struct xnem_complete *done);
/** Status of a request, started or not; its bytes to @bytes if that is not NULL. */
int peer_status(struct peer *p, const struct xnem_submit_req *req, uint64_t *bytes);
/** The next slot of its inbox; -ETIME when none comes in time. */
int peer_inbox(struct peer *p, struct xnem_inbox_slot *slot, int64_t timeout_ns);
/** Those that are there, up to @max; how many, waits for the first. */
int peer_inboxes(struct peer *p, struct xnem_inbox_slot *slots, uint32_t max, int64_t timeout_ns);
/** The next entry of its completion page; -ETIME when none comes in time. */
int peer_cpage(struct peer *p, struct xnem_cpage_entry *entry, int64_t timeout_ns);
/** Slots that are there and were not read. */
int peer_inbox_count(struct peer *p);

#endif /* XNEM_TEST_PEER_H */
