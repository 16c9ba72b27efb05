/* SPDX-License-Identifier: MIT */
/*
 * What the XNEM module keeps in MPICH's own structures; mpidi_ch3_pre.h takes
 * it in, before any of MPICH's types are there.
 */
#ifndef XNEM_LMT_PRE_H
#define XNEM_LMT_PRE_H

#include <stdint.h>

struct MPIDI_VC;
struct xnem_lmt_xfer;

/* Types of packets, for MPICH's list of them. */
#define XNEM_LMT_PKT_ENUM MPIDI_NEM_PKT_XNEM_RTS, MPIDI_NEM_PKT_XNEM_CTL

/** Where a sender's data is, as it stands in the packet. */
struct xnem_lmt_offer {
	/** names the send at the sender; see struct xfer */
	uint64_t token;
	/** first byte within the region */
	uint64_t offset;
	/** bytes from there; the rest of the message, or the first piece of it */
	uint64_t length;
	unsigned char cookie[24];
};

/** In each request, where tcp keeps nothing: so no request grows. */
struct xnem_lmt_req {
	/** the transfer it is part of */
	struct xnem_lmt_xfer *xfer;
	/** receive: what came with the RTS */
	struct xnem_lmt_offer offer;
	/** receive: XNEM_RTS_* */
	int rts_flags;
};

#define XNEM_LMT_REQ(req_) ((struct xnem_lmt_req *)(req_)->ch.netmod_area.padding)

#define XNEM_LMT_REQ_INIT(req_)                    \
	do {                                       \
		XNEM_LMT_REQ(req_)->xfer = NULL;   \
		XNEM_LMT_REQ(req_)->rts_flags = 0; \
	} while (0)

/** In each connection. */
struct xnem_lmt_vc {
	/** enum peer of xnem_lmt.c */
	int peer;
	/** what the network sends at once by itself, in bytes with the packet's header */
	int eager_max_msg_sz;
	/** the channel's own function, which the module's calls first */
	int (*terminated)(struct MPIDI_VC *vc);
};

/** Copies or offers are under way: look at them, and do not block elsewhere. */
extern int xnem_lmt_pending;

#endif
