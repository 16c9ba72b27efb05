// SPDX-License-Identifier: MIT
/*
 * Large messages of MPICH (ch3:nemesis) over XNEM.
 *
 * A large message begins as any rendezvous: the sender says that it has
 * something (RTS), in its place among the other packets of the connection.  On
 * connections where XNEM may reach the peer the RTS is a packet of our own
 * that carries the cookie of the sender's buffer, too.  The receiver copies
 * from there into its own buffer, and the sender is told that its buffer is
 * free: by the copy itself (NOTIFY), or by a packet (DONE).
 *
 * Each message stands by itself.  A sender that cannot give a cookie leaves it
 * out; a receiver that cannot copy says so (CTS), and MPICH sends the data as
 * it would have done without us.  A message larger than what can be pinned is
 * offered piece by piece (MORE, PIECE).  So the two sides never have to agree on
 * anything beforehand, and every failure ends in MPICH's own way.
 *
 * Each transfer on such a connection is on a list, those that go MPICH's way
 * too: when the connection breaks, its requests end with an error.  (MPICH
 * itself lets a rendezvous wait for ever for a peer that has died.)
 *
 * All of this runs under MPICH's global lock.
 */
#include "mpid_nem_impl.h"
#include "xnem_mem.h"

enum peer {
	PEER_FAR,
	PEER_NEAR,
	/* dynamic processes: known when the first large message is sent */
	PEER_UNKNOWN,
};

/* Of an RTS. */
#define XNEM_RTS_OFFER 1
/* The sender can be told by the copy. */
#define XNEM_RTS_INBOX 2

struct rts_packet {
	MPIDI_CH3_Pkt_type_t type;
	MPI_Request sender_req_id;
	MPIDI_Message_match match;
	intptr_t data_sz;
	struct xnem_lmt_offer offer;
	int flags;
};

enum ctl {
	/* To the sender: copied.  To the receiver: it was, whatever you think. */
	CTL_DONE,
	/* To the sender: cannot be copied, send it. */
	CTL_CTS,
	/* To the sender: copied up to offer.offset, go on. */
	CTL_MORE,
	/* To the receiver: the next piece; of length 0: there is none. */
	CTL_PIECE,
};

struct ctl_packet {
	MPIDI_CH3_Pkt_type_t type;
	int what;
	/* of the transfer at the one who gets this, and at the one who sent it */
	uint64_t token;
	uint64_t own_token;
	MPI_Request sender_req_id;
	MPI_Request receiver_req_id;
	struct xnem_lmt_offer offer;
};

enum state {
	/* send: the receiver has the cookie, or will have */
	SEND_OFFERED,
	/* send: copied; something else (a cancel) still holds the request */
	SEND_DONE,
	/* send: without us */
	SEND_PLAIN,
	/* receive: to be started, as soon as there is room */
	RECV_WAIT,
	/* receive: a copy is under way */
	RECV_COPY,
	/* receive: the next piece was asked for */
	RECV_MORE,
	/* receive: the offer was turned down */
	RECV_REFUSED,
	/* receive: without us */
	RECV_PLAIN,
};

#define IOV_MAX_PIECES 64
/* Pieces smaller than this, on average, are better copied twice. */
#define IOV_MIN_PIECE (64 << 10)
#define RETRIES 10000
/* Looks at the completion page before the network is asked again. */
#define LOOKS 16

/** A transfer, from RTS to the end of its request. */
struct xnem_lmt_xfer {
	struct xnem_lmt_xfer *next, *prev;
	MPIR_Request *req;
	MPIDI_VC_t *vc;
	enum state state;
	uint32_t slot;
	/* bytes to move; less than sent if the receiver has less room */
	intptr_t len;
	/* bytes that have been; and that are to be now */
	intptr_t pos, piece;
	struct xm_use use;
	/* bounce buffer, and its size */
	void *bounce;
	intptr_t bounce_len;
	void *addr;
	unsigned int retries;
	/* send: the copy will tell */
	int inbox;
	int no_notify;
	int vc_failed;
	int n_iov;
	struct iovec iov[];
};

/** What may be named from outside: valid while the generation is the same. */
struct slot {
	struct xnem_lmt_xfer *xfer;
	uint32_t generation;
	uint32_t next_free;
};
#define NO_SLOT UINT32_MAX

enum mode {
	MODE_OFF,
	MODE_ON,
	MODE_REQUIRED,
};

struct count {
	unsigned long long messages, bytes;
};

static struct {
	enum mode mode;
	int verbose;
	int local;
	int rank;
	intptr_t threshold;
	/* why there is no XNEM here */
	char why[160];

	/* the oldest first */
	struct xnem_lmt_xfer *xfers, *last;
	unsigned int waiting, copying;
	/* grows when one is freed */
	unsigned long frees;
	struct slot *slots;
	uint32_t n_slots, free_slot;

	/* errors that were told, by number */
	unsigned char told[256];
	/* for the line about peers */
	int peers_seen;
	char *far_text;
	size_t far_len;
	int n_near, n_local;

	/* large messages; by the network ones that were offered, too */
	struct count sent, sent_plain, received;
	unsigned long long refused;
} xl;

int xnem_lmt_pending;

static void count_one(struct count *count, intptr_t bytes)
{
	count->messages++;
	count->bytes += bytes;
}

/* ---- saying things ------------------------------------------------------ */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	char text[1024];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "xnem: rank %d (%s): ", xl.rank, MPID_nem_hostname);
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	/* in one piece, so that lines of several processes do not mix */
	fprintf(stderr, "%s\n", text);
	fflush(stderr);
}

/** The end of a job that wants XNEM and nothing else. */
static void give_up(const char *why)
{
	char text[400];

	snprintf(text, sizeof(text), "xnem: rank %d (%s): XNEM_MPI=required, but %s", xl.rank,
		 MPID_nem_hostname, why);
	MPID_Abort(NULL, MPI_SUCCESS, 1, text);
}

/** A message that should have gone by XNEM does not. */
static void note_fallback(const char *what, int err)
{
	char text[256];
	int number = -err & 255;

	snprintf(text, sizeof(text), "%s: %s", what, xm_strerror(err));
	if (xl.mode == MODE_REQUIRED)
		give_up(text);
	if (!xl.verbose || xl.told[number])
		return;
	xl.told[number] = 1;
	say("%s; such messages go by the network (said once)", text);
}

/* ---- transfers ------------------------------------------------------------- */

static int is_pending(const struct xnem_lmt_xfer *x)
{
	switch (x->state) {
	case SEND_OFFERED:
		return x->inbox;
	case RECV_WAIT:
	case RECV_COPY:
		return 1;
	default:
		return 0;
	}
}

static void set_state(struct xnem_lmt_xfer *x, enum state state)
{
	xnem_lmt_pending -= is_pending(x);
	xl.waiting -= x->state == RECV_WAIT;
	xl.copying -= x->state == RECV_COPY;
	x->state = state;
	xl.waiting += x->state == RECV_WAIT;
	xl.copying += x->state == RECV_COPY;
	xnem_lmt_pending += is_pending(x);
}

static int more_slots(void)
{
	uint32_t n = xl.n_slots ? xl.n_slots * 2 : 64;
	struct slot *slots = MPL_realloc(xl.slots, n * sizeof(*slots), MPL_MEM_OTHER);

	if (!slots)
		return -1;
	for (uint32_t i = xl.n_slots; i < n; i++) {
		slots[i].xfer = NULL;
		slots[i].generation = 1;
		slots[i].next_free = i + 1 < n ? i + 1 : NO_SLOT;
	}
	xl.free_slot = xl.n_slots;
	xl.slots = slots;
	xl.n_slots = n;
	return 0;
}

static uint64_t token_of(const struct xnem_lmt_xfer *x)
{
	return (uint64_t)xl.slots[x->slot].generation << 32 | x->slot;
}

static struct xnem_lmt_xfer *find(uint64_t token)
{
	uint32_t slot = (uint32_t)token;

	if (slot >= xl.n_slots || xl.slots[slot].generation != token >> 32)
		return NULL;
	return xl.slots[slot].xfer;
}

static void drop_bounce(struct xnem_lmt_xfer *x)
{
	if (x->bounce)
		xm_bounce_put(x->bounce, x->bounce_len);
	x->bounce = NULL;
}

static void xfer_free(struct xnem_lmt_xfer *x)
{
	struct slot *slot = &xl.slots[x->slot];

	set_state(x, SEND_PLAIN);
	xm_unexpose(&x->use);
	drop_bounce(x);
	slot->xfer = NULL;
	if (!++slot->generation)
		slot->generation = 1;
	slot->next_free = xl.free_slot;
	xl.free_slot = x->slot;
	if (x->prev)
		x->prev->next = x->next;
	else
		xl.xfers = x->next;
	if (x->next)
		x->next->prev = x->prev;
	else
		xl.last = x->prev;
	XNEM_LMT_REQ(x->req)->xfer = NULL;
	x->req->dev.request_completed_cb = NULL;
	xl.frees++;
	MPL_free(x);
}

/**
 * The one place where everything is given back, whichever way the request has
 * ended: data, cancel, error.
 */
static int request_ended(MPIR_Request *req)
{
	if (XNEM_LMT_REQ(req)->xfer)
		xfer_free(XNEM_LMT_REQ(req)->xfer);
	return MPI_SUCCESS;
}

/** NULL: no memory. */
static struct xnem_lmt_xfer *xfer_new(MPIR_Request *req, MPIDI_VC_t *vc, enum state state,
				      const struct iovec *iov, int n_iov)
{
	struct xnem_lmt_xfer *x;

	if (xl.free_slot == NO_SLOT && more_slots())
		return NULL;
	x = MPL_calloc(1, sizeof(*x) + n_iov * sizeof(*iov), MPL_MEM_OTHER);
	if (!x)
		return NULL;
	x->slot = xl.free_slot;
	xl.free_slot = xl.slots[x->slot].next_free;
	xl.slots[x->slot].xfer = x;
	x->req = req;
	x->vc = vc;
	x->n_iov = n_iov;
	if (n_iov)
		memcpy(x->iov, iov, n_iov * sizeof(*iov));
	x->prev = xl.last;
	if (x->prev)
		x->prev->next = x;
	else
		xl.xfers = x;
	xl.last = x;
	x->state = SEND_PLAIN;
	set_state(x, state);
	XNEM_LMT_REQ(req)->xfer = x;
	req->dev.request_completed_cb = request_ended;
	return x;
}

/** Ends the request, and @x with it. */
static void complete_with_error(struct xnem_lmt_xfer *x, int mpi_errno)
{
	MPIR_Request *req = x->req;
	/* more than 1 when a cancel waits for an answer that will not come */
	int n = MPIR_cc_get(req->cc);

	req->status.MPI_ERROR = mpi_errno;
	if (x->vc->ch.recv_active == req)
		x->vc->ch.recv_active = NULL;
	while (n-- > 0)
		MPID_Request_complete(req);
}

static int peer_failed_error(MPIDI_VC_t *vc)
{
	int mpi_errno = MPI_SUCCESS;

	MPIR_ERR_SET1(mpi_errno, MPIX_ERR_PROC_FAILED, "**comm_fail", "**comm_fail %d",
		      vc->pg_rank);
	return mpi_errno;
}

static int send_packet(MPIDI_VC_t *vc, void *packet, size_t size)
{
	MPIR_Request *req = NULL;
	int mpi_errno = MPIDI_CH3_iStartMsg(vc, packet, size, &req);

	if (req) {
		if (!mpi_errno)
			mpi_errno = req->status.MPI_ERROR;
		MPIR_Request_free(req);
	}
	return mpi_errno;
}

static void init_ctl(MPIDI_CH3_Pkt_t *upkt, enum ctl what, uint64_t token, uint64_t own_token)
{
	struct ctl_packet *packet = (struct ctl_packet *)upkt;

	MPL_COMPILE_TIME_ASSERT(sizeof(*packet) <= sizeof(*upkt));
	memset(packet, 0, sizeof(*packet));
	MPIDI_Pkt_init(packet, MPIDI_NEM_PKT_XNEM_CTL);
	packet->what = what;
	packet->token = token;
	packet->own_token = own_token;
}

static int send_ctl(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *upkt)
{
	return send_packet(vc, upkt, sizeof(struct ctl_packet));
}

static int send_done(MPIDI_VC_t *vc, uint64_t token)
{
	MPIDI_CH3_Pkt_t upkt;

	init_ctl(&upkt, CTL_DONE, token, 0);
	return send_ctl(vc, &upkt);
}

/* ---- peers -------------------------------------------------------------------- */

static enum peer look_at_card(MPIDI_VC_t *vc, char *why, size_t why_size)
{
	char card[MPIDI_MAX_KVS_VALUE_LEN], value[256];
	char own[32];

	if (!vc->pg || !vc->pg->getConnInfo) {
		snprintf(why, why_size, "not known yet");
		return vc->pg ? PEER_UNKNOWN : PEER_FAR;
	}
	if (MPIDI_PG_GetConnString(vc->pg, vc->pg_rank, card, sizeof(card)) != MPI_SUCCESS) {
		snprintf(why, why_size, "no business card");
		return PEER_FAR;
	}
	if (MPL_str_get_string_arg(card, XNEM_LMT_CARD_KEY, value, sizeof(value)) != MPL_SUCCESS) {
		snprintf(why, why_size, "XNEM is off there");
		return PEER_FAR;
	}
	if (value[0] == '-') {
		snprintf(why, why_size, "%s", value + 1);
		return PEER_FAR;
	}
	snprintf(own, sizeof(own), "%016llx", (unsigned long long)xm_fabric());
	if (strncmp(value, own, 16)) {
		snprintf(why, why_size, "another host or zone");
		return PEER_FAR;
	}
	if (vc->ch.is_local && !(xl.local && value[16] == 'L')) {
		snprintf(why, why_size, "shared memory");
		return PEER_FAR;
	}
	return PEER_NEAR;
}

/** For the line that says who goes by what. */
static void add_far(int rank, const char *why)
{
	char text[320], *more;
	size_t n;

	n = snprintf(text, sizeof(text), "%s%d (%s)", xl.far_len ? ", " : "", rank, why);
	/* with many ranks the first ones tell enough */
	if (n >= sizeof(text) || xl.far_len + n > 700)
		return;
	more = MPL_realloc(xl.far_text, xl.far_len + n + 1, MPL_MEM_OTHER);
	if (!more)
		return;
	memcpy(more + xl.far_len, text, n + 1);
	xl.far_text = more;
	xl.far_len += n;
}

static void say_peers(void)
{
	if (xl.why[0])
		say("no XNEM: %s; peers: %d by the network, %d by shared memory", xl.why,
		    xl.peers_seen - xl.n_local, xl.n_local);
	else
		say("peers: %d by XNEM (from %lld bytes), %d by shared memory, %d by the network%s%s",
		    xl.n_near, (long long)xl.threshold, xl.n_local,
		    xl.peers_seen - xl.n_near - xl.n_local, xl.far_len ? ": " : "",
		    xl.far_len ? xl.far_text : "");
	MPL_free(xl.far_text);
	xl.far_text = NULL;
	xl.far_len = 0;
}

static int rndv_send(MPIR_Request **sreq_p, const void *buf, MPI_Aint count, MPI_Datatype datatype,
		     int dt_contig, intptr_t data_sz, MPI_Aint dt_true_lb, int rank, int tag,
		     MPIR_Comm *comm, int context_offset);
static int rndv_recv(MPIDI_VC_t *vc, MPIR_Request *rreq);
static int vc_terminated(MPIDI_VC_t *vc);
static int take_events(void);

int xnem_lmt_vc_init(MPIDI_VC_t *vc)
{
	char why[256] = "";
	int ours = vc->pg && vc->pg == MPIDI_Process.my_pg;
	enum peer peer = PEER_FAR;

	vc->ch.xnem.peer = PEER_FAR;
	vc->ch.xnem.terminated = NULL;
	if (xl.mode == MODE_OFF)
		return MPI_SUCCESS;
	if (xm_fabric() && (!vc->ch.is_local || xl.local))
		peer = look_at_card(vc, why, sizeof(why));
	/* also to count what goes by the network */
	if (!vc->ch.is_local)
		vc->rndvSend_fn = rndv_send;
	if (peer != PEER_FAR) {
		int limit = MPL_MIN(xl.threshold, INT_MAX / 2) - 1 +
			    (int)sizeof(MPIDI_CH3_Pkt_eager_send_t);

		vc->ch.xnem.peer = peer;
		vc->ch.xnem.eager_max_msg_sz = vc->eager_max_msg_sz;
		vc->rndvSend_fn = rndv_send;
		vc->rndvRecv_fn = rndv_recv;
		vc->ch.xnem.terminated = vc->ch.lmt_vc_terminated;
		vc->ch.lmt_vc_terminated = vc_terminated;
		if (peer == PEER_NEAR && vc->eager_max_msg_sz > limit)
			vc->eager_max_msg_sz = limit;
	} else if (ours && !vc->ch.is_local && xl.mode == MODE_REQUIRED) {
		char text[320];

		if (xl.why[0])
			snprintf(text, sizeof(text), "%s", xl.why);
		else
			snprintf(text, sizeof(text), "it does not reach rank %d: %s", vc->pg_rank,
				 why);
		give_up(text);
	}
	if (!ours)
		return MPI_SUCCESS;
	xl.peers_seen++;
	if (peer == PEER_NEAR)
		xl.n_near++;
	else if (vc->ch.is_local)
		xl.n_local++;
	else if (xl.verbose && !xl.why[0])
		add_far(vc->pg_rank, why);
	if (xl.peers_seen == MPIDI_Process.my_pg->size - 1 && xl.verbose)
		say_peers();
	return MPI_SUCCESS;
}

/** The connection has ended.  If it was not closed: so does what hangs on it. */
static int vc_terminated(MPIDI_VC_t *vc)
{
	int mpi_errno = MPI_SUCCESS;
	struct xnem_lmt_xfer *x, *next;

	if (vc->ch.xnem.terminated)
		mpi_errno = vc->ch.xnem.terminated(vc);
	if (vc->state == MPIDI_VC_STATE_CLOSED || vc->state == MPIDI_VC_STATE_INACTIVE)
		return mpi_errno;
	/* who has ended after its last copy has told so before */
	while (xnem_lmt_pending && take_events())
		;
	for (x = xl.xfers; x; x = next) {
		next = x->next;
		if (x->vc != vc)
			continue;
		/* its end will come: nothing may write to a buffer that was given back */
		if (x->state == RECV_COPY)
			x->vc_failed = 1;
		else
			complete_with_error(x, peer_failed_error(vc));
	}
	return mpi_errno;
}

/* ---- sending -------------------------------------------------------------------- */

/** Lets others read what is to be sent, from x->pos on: 0, or why not. */
static int offer_piece(struct xnem_lmt_xfer *x, struct xnem_lmt_offer *offer)
{
	size_t piece = x->len - x->pos;
	int err;

	/* as much at once as was possible the first time */
	if (x->piece)
		piece = MPL_MIN(piece, (size_t)x->piece);
	err = xm_expose((char *)x->addr + x->pos, &piece, &x->use);
	if (err)
		return err;
	if (!x->piece)
		x->piece = piece;
	offer->token = token_of(x);
	offer->offset = x->use.offset;
	offer->length = piece;
	memcpy(offer->cookie, &x->use.cookie, sizeof(offer->cookie));
	return 0;
}

static int offer_message(struct xnem_lmt_xfer *x, const void *buf, MPI_Aint count,
			 MPI_Datatype datatype, int dt_contig, MPI_Aint dt_true_lb,
			 struct xnem_lmt_offer *offer)
{
	MPI_Aint packed;

	x->addr = MPIR_get_contig_ptr(buf, dt_true_lb);
	if (!dt_contig) {
		x->bounce = xm_bounce_get(x->len);
		if (!x->bounce)
			return -ENOBUFS;
		x->bounce_len = x->len;
		if (MPIR_Typerep_pack(buf, count, datatype, 0, x->bounce, x->len, &packed) ||
		    packed != x->len)
			return -EPROTO;
		x->addr = x->bounce;
	}
	return offer_piece(x, offer);
}

static int rndv_send(MPIR_Request **sreq_p, const void *buf, MPI_Aint count, MPI_Datatype datatype,
		     int dt_contig, intptr_t data_sz, MPI_Aint dt_true_lb, int rank, int tag,
		     MPIR_Comm *comm, int context_offset)
{
	MPIDI_CH3_Pkt_t upkt;
	struct rts_packet *rts = (struct rts_packet *)&upkt;
	MPIR_Request *sreq = *sreq_p;
	struct xnem_lmt_xfer *x;
	MPIDI_VC_t *vc;
	char why[256];
	int mpi_errno;

	MPL_COMPILE_TIME_ASSERT(sizeof(*rts) <= sizeof(upkt));
	MPL_COMPILE_TIME_ASSERT(sizeof(struct xnem_lmt_req) <= MPIDI_NEM_REQ_NETMOD_AREA_LEN);
	MPIDI_Comm_get_vc_set_active(comm, rank, &vc);
	if (vc->ch.xnem.peer == PEER_UNKNOWN) {
		vc->ch.xnem.peer = look_at_card(vc, why, sizeof(why));
		if (vc->ch.xnem.peer == PEER_UNKNOWN)
			vc->ch.xnem.peer = PEER_FAR;
	}
	if (vc->ch.xnem.peer == PEER_FAR) {
		count_one(&xl.sent_plain, data_sz);
		return MPID_nem_lmt_RndvSend(sreq_p, buf, count, datatype, dt_contig, data_sz,
					     dt_true_lb, rank, tag, comm, context_offset);
	}
	sreq->dev.OnDataAvail = NULL;
	sreq->dev.partner_request = NULL;

	MPIDI_Pkt_init(rts, MPIDI_NEM_PKT_XNEM_RTS);
	rts->match.parts.rank = comm->rank;
	rts->match.parts.tag = tag;
	rts->match.parts.context_id = comm->context_id + context_offset;
	rts->sender_req_id = sreq->handle;
	rts->data_sz = data_sz;
	rts->flags = 0;
	memset(&rts->offer, 0, sizeof(rts->offer));

	x = xfer_new(sreq, vc, SEND_PLAIN, NULL, 0);
	if (x) {
		x->len = data_sz;
		if (data_sz >= xl.threshold) {
			int err = offer_message(x, buf, count, datatype, dt_contig, dt_true_lb,
						&rts->offer);

			if (err) {
				drop_bounce(x);
				count_one(&xl.sent_plain, data_sz);
				note_fallback("a buffer to send from", err);
				/* for good: the network alone has a threshold of its own */
				if (err == -ENODEV)
					vc->eager_max_msg_sz = vc->ch.xnem.eager_max_msg_sz;
			} else {
				x->inbox = xm_has_inbox();
				set_state(x, SEND_OFFERED);
				rts->flags = XNEM_RTS_OFFER | (x->inbox ? XNEM_RTS_INBOX : 0);
			}
		}
	}

	mpi_errno = send_packet(vc, rts, sizeof(*rts));
	if (mpi_errno) {
		/* gone already if the connection broke just now */
		if (XNEM_LMT_REQ(sreq)->xfer)
			xfer_free(XNEM_LMT_REQ(sreq)->xfer);
		MPIR_Request_free(sreq);
		*sreq_p = NULL;
		MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**ch3|rtspkt");
	}
	return mpi_errno;
}

/** The receiver has it. */
static void offer_done(struct xnem_lmt_xfer *x)
{
	if (x->state != SEND_OFFERED)
		return;
	count_one(&xl.sent, x->len);
	set_state(x, SEND_DONE);
	xm_unexpose(&x->use);
	MPID_Request_complete(x->req);
}

/* ---- receiving -------------------------------------------------------------------- */

/** The data is here, or has been all the time. */
static void receive_done(struct xnem_lmt_xfer *x, int notified)
{
	MPIR_Request *rreq = x->req;
	intptr_t sent = rreq->dev.recv_data_sz;
	uint64_t token = token_of(x);

	if (x->bounce) {
		rreq->dev.tmpbuf = x->bounce;
		MPIDI_CH3U_Request_unpack_uebuf(rreq);
		rreq->dev.tmpbuf = NULL;
	} else if (x->len < sent) {
		MPIR_STATUS_SET_COUNT(rreq->status, x->len);
		rreq->status.MPI_ERROR = MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE,
							      __func__, __LINE__, MPI_ERR_TRUNCATE,
							      "**truncate", "**truncate %d %d",
							      (int)sent, (int)x->len);
	}
	/* if it cannot be sent, the sender has gone */
	if (!notified)
		send_done(x->vc, XNEM_LMT_REQ(rreq)->offer.token);
	/* unless that has just broken the connection */
	x = find(token);
	if (!x)
		return;
	count_one(&xl.received, x->len);
	MPID_Request_complete(rreq);
}

/** Cannot be copied: the sender shall send it. */
static void receive_refuse(struct xnem_lmt_xfer *x, int err)
{
	MPIR_Request *rreq = x->req;
	MPIDI_CH3_Pkt_t upkt;
	struct ctl_packet *cts = (struct ctl_packet *)&upkt;
	uint64_t token = token_of(x);
	int mpi_errno;

	if (x->vc_failed || x->vc->state == MPIDI_VC_STATE_MORIBUND) {
		complete_with_error(x, peer_failed_error(x->vc));
		return;
	}
	xl.refused++;
	set_state(x, RECV_REFUSED);
	note_fallback("a copy", err);
	init_ctl(&upkt, CTL_CTS, XNEM_LMT_REQ(rreq)->offer.token, token);
	cts->sender_req_id = rreq->dev.sender_req_id;
	cts->receiver_req_id = rreq->handle;
	mpi_errno = send_ctl(x->vc, &upkt);
	x = find(token);
	if (mpi_errno && x)
		complete_with_error(x, mpi_errno);
}

/** Will the copy itself tell the sender?  Only when the last piece is there. */
static int is_notified(const struct xnem_lmt_xfer *x)
{
	return !x->no_notify && !x->n_iov && x->pos + x->piece == x->len;
}

/** What it came to: 1 if there was no room for it. */
static int receive_start(struct xnem_lmt_xfer *x)
{
	const struct xnem_lmt_offer *o = &XNEM_LMT_REQ(x->req)->offer;
	struct xnem_cookie cookie;
	int err;

	memcpy(&cookie, o->cookie, sizeof(cookie));
	x->piece = x->len - x->pos;
	if ((uint64_t)x->piece > o->length)
		x->piece = o->length;
	if (!x->piece)
		err = -EPROTO;
	else if (x->n_iov)
		err = xm_getv(x->iov, x->n_iov, &cookie, o->offset, token_of(x));
	else
		err = xm_get((char *)x->addr + x->pos, x->piece, &cookie, o->offset, token_of(x),
			     is_notified(x), o->token);
	if (!err)
		set_state(x, RECV_COPY);
	/* what is under way makes room when it ends; if nothing is, do not wait for ever */
	else if (err != -EAGAIN || (!xl.copying && ++x->retries > RETRIES))
		receive_refuse(x, err);
	else
		return 1;
	return 0;
}

/** A piece is there. */
static void receive_next(struct xnem_lmt_xfer *x, int notified)
{
	struct xnem_lmt_offer *o = &XNEM_LMT_REQ(x->req)->offer;
	MPIDI_CH3_Pkt_t upkt;
	struct ctl_packet *more = (struct ctl_packet *)&upkt;
	uint64_t token = token_of(x);
	int mpi_errno;

	x->pos += x->piece;
	if (x->pos == x->len) {
		receive_done(x, notified);
		return;
	}
	if (x->vc_failed) {
		complete_with_error(x, peer_failed_error(x->vc));
		return;
	}
	set_state(x, RECV_MORE);
	init_ctl(&upkt, CTL_MORE, o->token, token);
	more->offer.offset = x->pos;
	mpi_errno = send_ctl(x->vc, &upkt);
	x = find(token);
	if (mpi_errno && x)
		complete_with_error(x, mpi_errno);
}

static void receive_ended(struct xnem_lmt_xfer *x, int err)
{
	switch (err) {
	case 0:
		receive_next(x, is_notified(x));
		break;
	case -EBUSY:
		/* copied, but its inbox is full */
		receive_next(x, 0);
		break;
	case -EDESTADDRREQ:
		/* it has no inbox any more; nothing was copied */
		x->no_notify = 1;
		set_state(x, RECV_WAIT);
		break;
	case -EAGAIN:
		set_state(x, RECV_WAIT);
		if (++x->retries <= RETRIES)
			break;
		/* fall through */
	default:
		receive_refuse(x, err);
	}
}

/** A receive that has met its RTS. */
static int rndv_recv(MPIDI_VC_t *vc, MPIR_Request *rreq)
{
	int flags = XNEM_LMT_REQ(rreq)->rts_flags;
	struct iovec iov[IOV_MAX_PIECES];
	MPI_Aint n_iov = 0, bytes = 0;
	struct xnem_lmt_xfer *x;
	intptr_t len;
	MPI_Aint dt_true_lb;
	MPIR_Datatype *dt_ptr;
	int dt_contig;
	int mpi_errno;

	if (!(flags & XNEM_RTS_OFFER)) {
		/* if there is no memory for this, MPICH's own way is left */
		xfer_new(rreq, vc, RECV_PLAIN, NULL, 0);
		mpi_errno = MPIDI_CH3_RecvRndv(vc, rreq);
		if (mpi_errno && XNEM_LMT_REQ(rreq)->xfer)
			xfer_free(XNEM_LMT_REQ(rreq)->xfer);
		return mpi_errno;
	}

	MPIDI_Datatype_get_info(rreq->dev.user_count, rreq->dev.datatype, dt_contig, len, dt_ptr,
				dt_true_lb);
	len = MPL_MIN(len, rreq->dev.recv_data_sz);
	if (!dt_contig && len) {
		MPIR_Typerep_to_iov(rreq->dev.user_buf, rreq->dev.user_count, rreq->dev.datatype, 0,
				    iov, IOV_MAX_PIECES, len, &n_iov, &bytes);
		if (bytes != len || len / n_iov < IOV_MIN_PIECE ||
		    XNEM_LMT_REQ(rreq)->offer.length < (uint64_t)len)
			n_iov = 0;
	}
	x = xfer_new(rreq, vc, RECV_WAIT, iov, n_iov);
	if (!x)
		return MPIDI_CH3_RecvRndv(vc, rreq);
	x->len = len;
	x->no_notify = !(flags & XNEM_RTS_INBOX);
	if (!len) {
		receive_done(x, 0);
		return MPI_SUCCESS;
	}
	if (!xm_fabric()) {
		receive_refuse(x, -ENODEV);
		return MPI_SUCCESS;
	}
	if (dt_contig) {
		x->addr = MPIR_get_contig_ptr(rreq->dev.user_buf, dt_true_lb);
	} else if (!n_iov) {
		x->bounce = xm_bounce_get(len);
		x->bounce_len = len;
		x->addr = x->bounce;
		if (!x->bounce) {
			receive_refuse(x, -ENOBUFS);
			return MPI_SUCCESS;
		}
	}
	receive_start(x);
	return MPI_SUCCESS;
}

/* ---- packets ---------------------------------------------------------------------- */

static int rts_handler(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *pkt, void *data, intptr_t *buflen,
		       MPIR_Request **rreqp)
{
	struct rts_packet *rts = (struct rts_packet *)pkt;
	int mpi_errno = MPI_SUCCESS;
	MPIR_Request *rreq;
	int found;

	*buflen = 0;
	*rreqp = NULL;
	rreq = MPIDI_CH3U_Recvq_FDP_or_AEU(&rts->match, &found);
	MPIR_ERR_CHKANDJUMP1(!rreq, mpi_errno, MPI_ERR_OTHER, "**nomemreq", "**nomemuereq %d",
			     MPIDI_CH3U_Recvq_count_unexp());
	/* its communicator has been revoked */
	if (!found && MPIR_cc_get(rreq->cc) == 0)
		goto fn_fail;

	rreq->status.MPI_SOURCE = rts->match.parts.rank;
	rreq->status.MPI_TAG = rts->match.parts.tag;
	MPIR_STATUS_SET_COUNT(rreq->status, rts->data_sz);
	rreq->dev.sender_req_id = rts->sender_req_id;
	rreq->dev.recv_data_sz = rts->data_sz;
	MPIDI_Request_set_msg_type(rreq, MPIDI_REQUEST_RNDV_MSG);
	XNEM_LMT_REQ(rreq)->offer = rts->offer;
	XNEM_LMT_REQ(rreq)->rts_flags = rts->flags;

	if (found)
		mpi_errno = rndv_recv(vc, rreq);
	else
		/* somebody may be probing for it */
		MPIDI_CH3_Progress_signal_completion();
fn_fail:
	return mpi_errno;
}

static int ctl_handler(MPIDI_VC_t *vc, MPIDI_CH3_Pkt_t *pkt, void *data, intptr_t *buflen,
		       MPIR_Request **rreqp)
{
	struct ctl_packet *ctl = (struct ctl_packet *)pkt;
	struct xnem_lmt_xfer *x = find(ctl->token);
	MPIDI_CH3_Pkt_t upkt;
	MPIDI_CH3_Pkt_rndv_clr_to_send_t *cts = &upkt.rndv_clr_to_send;
	int err;

	*buflen = 0;
	*rreqp = NULL;
	if (x && x->vc != vc)
		x = NULL;
	switch (ctl->what) {
	case CTL_DONE:
		if (x && x->state == SEND_OFFERED)
			offer_done(x);
		else if (x && x->state == RECV_REFUSED)
			receive_done(x, 1);
		return MPI_SUCCESS;
	case CTL_CTS:
		/*
		 * A backend that went away between telling us and telling the
		 * receiver: the data is there, and our request is gone.
		 */
		if (!x || x->state != SEND_OFFERED)
			return send_done(vc, ctl->own_token);
		set_state(x, SEND_PLAIN);
		xm_unexpose(&x->use);
		drop_bounce(x);
		count_one(&xl.sent_plain, x->len);
		cts->type = MPIDI_CH3_PKT_RNDV_CLR_TO_SEND;
		cts->sender_req_id = x->req->handle;
		cts->receiver_req_id = ctl->receiver_req_id;
		return MPIDI_CH3_PktHandler_RndvClrToSend(vc, &upkt, data, buflen, rreqp);
	case CTL_MORE:
		if (!x || x->state != SEND_OFFERED || ctl->offer.offset >= (uint64_t)x->len)
			return MPI_SUCCESS;
		xm_unexpose(&x->use);
		x->pos = ctl->offer.offset;
		init_ctl(&upkt, CTL_PIECE, ctl->own_token, ctl->token);
		err = offer_piece(x, &((struct ctl_packet *)&upkt)->offer);
		if (err)
			note_fallback("a buffer to send from", err);
		return send_ctl(vc, &upkt);
	case CTL_PIECE:
		if (!x || x->state != RECV_MORE)
			return MPI_SUCCESS;
		if (!ctl->offer.length || ctl->offer.token != XNEM_LMT_REQ(x->req)->offer.token) {
			receive_refuse(x, -ENOBUFS);
			return MPI_SUCCESS;
		}
		XNEM_LMT_REQ(x->req)->offer = ctl->offer;
		set_state(x, RECV_WAIT);
		receive_start(x);
		return MPI_SUCCESS;
	}
	return MPI_SUCCESS;
}

void xnem_lmt_packets_init(MPIDI_CH3_PktHandler_Fcn **handlers)
{
	handlers[MPIDI_NEM_PKT_XNEM_RTS] = rts_handler;
	handlers[MPIDI_NEM_PKT_XNEM_CTL] = ctl_handler;
}

/* ---- progress ------------------------------------------------------------------------ */

static int take_events(void)
{
	struct xm_event events[32];
	int n = xm_poll(events, 32);

	for (int i = 0; i < n; i++) {
		struct xnem_lmt_xfer *x = find(events[i].token);

		/* whoever wrote to the inbox may have written anything */
		if (!x)
			continue;
		if (events[i].kind == XM_NOTIFIED) {
			if (x->state == SEND_OFFERED)
				offer_done(x);
		} else if (x->state == RECV_COPY) {
			receive_ended(x, events[i].status);
		}
	}
	return n;
}

int xnem_lmt_progress(void)
{
	struct xnem_lmt_xfer *x, *next;

	/* a message that is told of comes at any time, a copy soon */
	for (int i = 0; i < (xl.copying ? LOOKS : 1); i++) {
		if (take_events())
			break;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
	}
	if (!xl.waiting)
		return MPI_SUCCESS;
	for (x = xl.xfers; x; x = next) {
		unsigned long frees = xl.frees;

		next = x->next;
		if (x->state != RECV_WAIT)
			continue;
		/* the others would be told the same */
		if (receive_start(x))
			break;
		/* a connection that broke has taken others along */
		if (frees != xl.frees)
			next = xl.xfers;
	}
	return MPI_SUCCESS;
}

/* ---- beginning and end ------------------------------------------------------------------ */

/** A number of bytes, with K or M behind it; @value stays as it is if it is none. */
static void bytes_from_environment(const char *name, intptr_t *value)
{
	const char *text = getenv(name);
	char *end;
	long long n;

	if (!text || !*text)
		return;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (*end == 'k' || *end == 'K')
		n <<= 10, end++;
	else if (*end == 'm' || *end == 'M')
		n <<= 20, end++;
	if (*end || errno || n < 0)
		say("%s=%s is no number of bytes", name, text);
	else
		*value = n;
}

static int is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static void read_environment(void)
{
	const char *text = getenv("XNEM_MPI");

	xl.mode = MODE_ON;
	if (is(text, "off") || is(text, "0"))
		xl.mode = MODE_OFF;
	else if (is(text, "required"))
		xl.mode = MODE_REQUIRED;
	else if (text && *text && !is(text, "on") && !is(text, "1"))
		say("XNEM_MPI=%s is neither on, off nor required", text);
	text = getenv("XNEM_MPI_VERBOSE");
	xl.verbose = text && *text && !is(text, "0");
	xl.local = is(getenv("XNEM_MPI_LOCAL"), "xnem");
	xl.threshold = 16 << 10;
	bytes_from_environment("XNEM_MPI_THRESHOLD", &xl.threshold);
	if (xl.threshold < 1)
		xl.threshold = 1;
}

int xnem_lmt_init(int rank, char **card, int *card_left)
{
	const char *library = getenv("XNEM_MPI_LIBRARY");
	char value[200];
	int err;

	memset(&xl, 0, sizeof(xl));
	xl.rank = rank;
	xl.free_slot = NO_SLOT;
	read_environment();
	if (xl.mode == MODE_OFF)
		return MPI_SUCCESS;
	err = xm_open(library && *library ? library : "libxnem.so.0", xl.why, sizeof(xl.why));
	if (!err && is(getenv("XNEM_MPI_CACHE"), "off"))
		xm_cache_limit(0);
	if (err)
		snprintf(value, sizeof(value), "-no XNEM there: %s", xl.why);
	else
		snprintf(value, sizeof(value), "%016llx%s", (unsigned long long)xm_fabric(),
			 xl.local ? "L" : "");
	/* no room in the card: then nobody reaches us, but we reach others */
	MPL_str_add_string_arg(card, card_left, XNEM_LMT_CARD_KEY, value);
	return MPI_SUCCESS;
}

void xnem_lmt_finalize(void)
{
	if (xl.mode == MODE_OFF)
		return;
	if (xl.verbose)
		say("large messages: sent by XNEM %llu (%llu bytes), by the network %llu (%llu bytes); "
		    "received by XNEM %llu (%llu bytes), refused %llu",
		    xl.sent.messages, xl.sent.bytes, xl.sent_plain.messages, xl.sent_plain.bytes,
		    xl.received.messages, xl.received.bytes, xl.refused);
	/* what the program never finished */
	while (xl.xfers)
		xfer_free(xl.xfers);
	xm_close();
	MPL_free(xl.slots);
	memset(&xl, 0, sizeof(xl));
}
