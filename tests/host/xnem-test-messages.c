// SPDX-License-Identifier: MIT
/*
 * xnem-test-messages.c - messages and notifications
 */
#define _GNU_SOURCE
#include <poll.h>

#include "xnem-test-suite.h"

#define SOON 5000000000ll
#define NEVER 200000000ll

static uint64_t next_number;

static int address_of(struct peer *p, struct xnem_uapi_cookie *address)
{
	struct xnem_info info;

	EXPECT(0, peer_info(p, &info));
	EXPECT_TRUE(info.address.id || info.address.key);
	EXPECT(p->slots, info.inbox_slots);
	*address = info.address;
	return 0;
}

/* Texts of messages: everybody has 1024 of them, see set_up() in xnem-test-suite.c. */
#define TEXT_SEED 1
#define TEXT(number) (64ull * ((number) % 1024))

static struct xnem_submit_req message_req(struct peer *p, const struct xnem_uapi_cookie *to,
					  uint32_t number, uint32_t len)
{
	return (struct xnem_submit_req){
		.op = XNEM_REQ_OP_MESSAGE,
		.user_data = ++next_number,
		.dst = *to,
		.src_offset = p->scratch + 65536 + TEXT(number),
		.length = len,
	};
}

/* Sends text @number; its status. */
static int send_one(struct peer *p, const struct xnem_uapi_cookie *to, uint32_t number,
		    uint32_t len)
{
	struct xnem_submit_req req = message_req(p, to, number, len);
	uint64_t bytes = 0;
	int err = peer_status(p, &req, &bytes);

	return bytes ? -EPROTO : err;
}

static int check_message(const struct xnem_inbox_slot *slot, uint32_t number, uint32_t len)
{
	EXPECT(XNEM_INBOX_MESSAGE, slot->kind);
	EXPECT(len, slot->bytes);
	EXPECT(len, pattern_check(slot->data, len, TEXT_SEED, TEXT(number)));
	EXPECT(64 - len, byte_check(slot->data + len, 64 - len, 0));
	EXPECT(0, slot->pad[0] | slot->pad[1] | slot->pad[2]);
	return 0;
}

/* The next slots are messages with the texts from @number on. */
static int expect_messages(struct peer *p, uint32_t number, uint32_t n, uint32_t len)
{
	struct xnem_inbox_slot slot[64];

	while (n) {
		int got = peer_inboxes(p, slot, n < 64 ? n : 64, SOON);

		EXPECT_TRUE(got > 0);
		for (int i = 0; i < got; i++)
			CALL(check_message(&slot[i], number++, len));
		n -= (uint32_t)got;
	}
	return 0;
}

static int expect_message(struct peer *p, uint32_t number, uint32_t len)
{
	return expect_messages(p, number, 1, len);
}

static int expect_notification(struct peer *p, uint64_t value, uint64_t bytes)
{
	struct xnem_inbox_slot slot;

	EXPECT(0, peer_inbox(p, &slot, SOON));
	EXPECT(XNEM_INBOX_NOTIFY, slot.kind);
	EXPECT(value, slot.value);
	EXPECT(bytes, slot.bytes);
	EXPECT(64, byte_check(slot.data, 64, 0));
	return 0;
}

static int empty_inbox(struct peer *p)
{
	struct xnem_inbox_slot slot;

	EXPECT(-ETIME, peer_inbox(p, &slot, NEVER));
	return 0;
}

/* ---- messages ---- */

static int one_each_length(struct cast *cast)
{
	struct peer *way[][2] = { { &cast->a, &cast->b },
				  { &cast->b, &cast->a },
				  { &cast->a, &cast->c },
				  { &cast->c, &cast->b } };
	static const uint32_t lengths[] = { 0, 1, 7, 8, 9, 31, 63, 64 };

	for (unsigned int w = 0; w < 4; w++) {
		struct peer *from = way[w][0], *to = way[w][1];
		struct xnem_uapi_cookie address, sender;

		CALL(address_of(to, &address));
		CALL(address_of(from, &sender));
		for (unsigned int i = 0; i < 8; i++) {
			struct xnem_inbox_slot slot;
			struct xnem_submit_req req = message_req(from, &address, i, lengths[i]);

			note("%s to %s, %u bytes", from->name, to->name, lengths[i]);
			EXPECT(0, peer_status(from, &req, NULL));
			EXPECT(0, peer_inbox(to, &slot, SOON));
			CALL(check_message(&slot, i, lengths[i]));
			EXPECT(req.user_data, slot.value);
			EXPECT(sender.id, slot.from.id);
			EXPECT(sender.key, slot.from.key);
		}
		CALL(empty_inbox(to));
	}
	return 0;
}

static int to_itself(struct cast *cast)
{
	struct xnem_uapi_cookie address;

	CALL(address_of(&cast->a, &address));
	EXPECT(0, send_one(&cast->a, &address, 5, 20));
	CALL(expect_message(&cast->a, 5, 20));
	return 0;
}

/* Both domains are named as they are; a remote sender has another one. */
static int domains(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	struct xnem_inbox_slot near, far;

	CALL(address_of(&cast->a, &address));
	EXPECT(0, send_one(&cast->c, &address, 1, 1));
	EXPECT(0, peer_inbox(&cast->a, &near, SOON));
	EXPECT(0, send_one(&cast->b, &address, 1, 1));
	EXPECT(0, peer_inbox(&cast->a, &far, SOON));
	EXPECT(cast->remote, near.domid != far.domid);
	EXPECT(near.tag, far.tag);
	return 0;
}

/* The sender goes on as soon as the receiver has read. */
static int order(struct cast *cast)
{
	enum { TOTAL = 600, BATCH = 24 };
	struct peer *from = &cast->a, *to = &cast->b;
	struct xnem_uapi_cookie address;
	uint32_t sent = 0, got = 0;

	CALL(address_of(to, &address));
	EXPECT_TRUE(BATCH <= to->slots / 2);
	while (got < TOTAL) {
		struct xnem_inbox_slot slot[BATCH];
		struct xnem_submit_req reqs[BATCH];
		struct xnem_complete done[BATCH];

		/* all of them at once: it is their posting that orders them */
		for (uint32_t i = 0; i < BATCH; i++)
			reqs[i] = message_req(from, &address, sent + i, 8 + (sent + i) % 57);
		note("after %u messages", sent);
		EXPECT(BATCH, peer_submit(from, reqs, BATCH));
		EXPECT(BATCH, peer_complete(from, done, BATCH, BATCH, WAIT_NS));
		for (uint32_t i = 0; i < BATCH; i++)
			EXPECT(0, done[i].status);
		while (got < sent + BATCH) {
			int n = peer_inboxes(to, slot, BATCH, SOON);

			EXPECT_TRUE(n > 0);
			for (int i = 0; i < n; i++, got++) {
				note("message %u", got);
				CALL(check_message(&slot[i], got, 8 + got % 57));
			}
		}
		sent += BATCH;
	}
	return empty_inbox(to);
}

/* No more than half of the slots for one device, and no room is lost. */
static int no_room(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	struct peer *to = &cast->b;
	uint32_t half = to->slots / 2, round, i, base = 0;

	CALL(address_of(to, &address));
	EXPECT_TRUE(half);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < half; i++)
			EXPECT(0, send_one(&cast->a, &address, base + i, 60));
		for (i = 0; i < 3; i++)
			EXPECT(-EBUSY, send_one(&cast->a, &address, 999, 60));
		/* another context of the same device does not get more */
		EXPECT(-EBUSY, send_one(&cast->c, &address, 999, 60));
		EXPECT(half, peer_inbox_count(to));
		/* one read, one sent */
		CALL(expect_message(to, base, 60));
		EXPECT(0, send_one(&cast->a, &address, base + half, 60));
		EXPECT(-EBUSY, send_one(&cast->a, &address, 999, 60));
		CALL(expect_messages(to, base + 1, half, 60));
		base += half + 1;
	}
	return empty_inbox(to);
}

/* One that floods leaves room for another device. */
static int fair_room(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	uint32_t half = cast->c.slots / 2;

	CALL(address_of(&cast->c, &address));
	for (uint32_t i = 0; i < half; i++)
		EXPECT(0, send_one(&cast->a, &address, i, 16));
	EXPECT(-EBUSY, send_one(&cast->a, &address, 0, 16));
	EXPECT(cast->remote ? 0 : -EBUSY, send_one(&cast->b, &address, half, 16));
	return expect_messages(&cast->c, 0, half + cast->remote, 16);
}

static int wrong_address(struct cast *cast)
{
	struct xnem_uapi_cookie address, wrong;
	struct area area;

	CALL(address_of(&cast->b, &address));
	EXPECT(0, make_area(&area, &cast->b, 4096, 0, RW, 0));
	wrong = address;
	wrong.key ^= 1;
	EXPECT(-ENOENT, send_one(&cast->a, &wrong, 1, 8));
	wrong = address;
	wrong.key ^= 1ull << 63;
	EXPECT(-ENOENT, send_one(&cast->a, &wrong, 1, 8));
	wrong = address;
	wrong.id ^= 1ull << 40;
	EXPECT(-ENOENT, send_one(&cast->a, &wrong, 1, 8));
	memset(&wrong, 0, sizeof(wrong));
	EXPECT(-ENOENT, send_one(&cast->a, &wrong, 1, 8));
	/* another name space: a region's name is no address */
	EXPECT(-ENOENT, send_one(&cast->a, &area.reg.cookie, 1, 8));
	CALL(empty_inbox(&cast->b));
	EXPECT(0, send_one(&cast->a, &address, 1, 8));
	return expect_message(&cast->b, 1, 8);
}

static int wrong_messages(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	struct xnem_submit_req good, req;

	CALL(address_of(&cast->b, &address));
	good = message_req(&cast->a, &address, 0, 64);
	req = good;
	req.length = 65;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req.length = UINT64_MAX;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req.length = 1ull << 32;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req = good;
	req.src_offset = 8;
	EXPECT(-EFAULT, peer_status(&cast->a, &req, NULL));
	req = good;
	req.immediate = 1;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req = good;
	req.reserved = 1;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	for (unsigned int bit = 2; bit < 32; bit++) {
		req = good;
		req.flags = 1u << bit;
		note("flag %u", bit);
		EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	}
	note("%s", "");
	CALL(empty_inbox(&cast->b));
	EXPECT(0, peer_status(&cast->a, &good, NULL));
	return 0;
}

/* Who has no inbox sends without an address, and cannot be sent to. */
static int without_inbox(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	struct xnem_inbox_slot slot;
	struct xnem_info info;

	CALL(address_of(&cast->b, &address));
	EXPECT(0, peer_close(&cast->c));
	EXPECT(0, peer_open(&cast->c, cast->device, false));
	EXPECT(0, peer_info(&cast->c, &info));
	EXPECT(0, info.address.id | info.address.key);
	EXPECT(0, send_one(&cast->c, &address, 3, 10));
	EXPECT(0, peer_inbox(&cast->b, &slot, SOON));
	EXPECT(0, slot.from.id | slot.from.key);
	return check_message(&slot, 3, 10);
}

static int both_ways(struct cast *cast)
{
	struct xnem_uapi_cookie to_a, to_b;

	CALL(address_of(&cast->a, &to_a));
	CALL(address_of(&cast->b, &to_b));
	for (uint32_t i = 0; i < 20; i++) {
		EXPECT(0, send_one(&cast->a, &to_b, i, 8));
		CALL(expect_message(&cast->b, i, 8));
		EXPECT(0, send_one(&cast->b, &to_a, i + 500, 8));
		CALL(expect_message(&cast->a, i + 500, 8));
	}
	return 0;
}

/* ---- sleeping ---- */

/* A fence keeps the message back until a copy of some length has ended. */
static int sleep_until_it_comes(struct cast *cast)
{
	struct xnem_get_completions g = { .max_count = 1, .min_count = 1, .timeout_ns = WAIT_NS };
	struct xnem_uapi_cookie address;
	uint64_t start;

	CALL(address_of(&cast->a, &address));
	g.completions = cast->a.scratch;
	g.flags = XNEM_COMPLETE_INBOX;
	/* Nothing is in flight, and it waits all the same. */
	g.timeout_ns = 100000000;
	start = now_ns();
	EXPECT(-ETIME, peer_ioctl(&cast->a, XNEM_IOC_COMPLETE, &g));
	EXPECT_TRUE(now_ns() - start >= 100000000);
	EXPECT(0, peer_poll(&cast->a, POLLIN, 50));
	g.timeout_ns = WAIT_NS;
	EXPECT(0, send_one(&cast->b, &address, 1, 8));
	EXPECT(0, peer_ioctl(&cast->a, XNEM_IOC_COMPLETE, &g));
	EXPECT(0, g.count);
	EXPECT(POLLIN, peer_poll(&cast->a, POLLIN, 5000) & POLLIN);
	CALL(expect_message(&cast->a, 1, 8));
	/* It was read: neither call tells of it again. */
	EXPECT(0, peer_poll(&cast->a, POLLIN, 50));
	g.inbox_seen = cast->a.inbox_cons;
	g.timeout_ns = 1000000;
	EXPECT(-ETIME, peer_ioctl(&cast->a, XNEM_IOC_COMPLETE, &g));
	return 0;
}

/* Asleep in poll when it comes. */
static int wakes_a_sleeper(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	uint64_t start;

	CALL(address_of(&cast->a, &address));
	for (uint32_t i = 0; i < 3; i++) {
		struct xnem_submit_req req = message_req(&cast->c, &address, i, 8);
		struct xnem_complete done;

		/* c is stopped when it is told, and sends when it goes on */
		EXPECT(0, peer_stop(&cast->c, 400));
		EXPECT(0, peer_tell_later(&cast->c, &req));
		start = now_ns();
		EXPECT(POLLIN, peer_poll(&cast->a, POLLIN, 20000) & POLLIN);
		note("after %" PRIu64 " ms", (now_ns() - start) / 1000000);
		EXPECT_TRUE(now_ns() - start < 15000000000ull);
		note("%s", "");
		EXPECT(1, peer_told(&cast->c));
		EXPECT(1, peer_complete(&cast->c, &done, 1, 1, WAIT_NS));
		EXPECT(0, done.status);
		CALL(expect_message(&cast->a, i, 8));
	}
	return 0;
}

/* ---- notifications ---- */

static int notify(struct cast *cast)
{
	static const struct {
		uint32_t flags;
		bool src, dst;
	} kinds[] = {
		{ XNEM_SUBMIT_NOTIFY_DST, false, true },
		{ XNEM_SUBMIT_NOTIFY_SRC, true, false },
		{ XNEM_SUBMIT_NOTIFY_SRC | XNEM_SUBMIT_NOTIFY_DST, true, true },
	};
	static const uint64_t lengths[] = { 0, 5001, 1 << 20 };
	struct peer *who[] = { &cast->a, &cast->b, &cast->c };
	struct area src, dst;

	EXPECT(0, make_area(&src, &cast->a, MIB(1), 1, XNEM_REG_READ, 0));
	EXPECT(0, make_area(&dst, &cast->b, MIB(1), 4095, XNEM_REG_WRITE, 0));
	/* By the source's owner, the destination's, and a third. */
	for (unsigned int w = 0; w < 3; w++)
		for (unsigned int k = 0; k < 3; k++)
			for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
				struct xnem_submit_req req = copy_req(&dst, 0, &src, 0, lengths[i]);
				uint64_t bytes = 0;

				note("by %s, flags %#x, %" PRIu64 " bytes", who[w]->name,
				     kinds[k].flags, lengths[i]);
				req.flags = kinds[k].flags;
				req.immediate = 0xfedcba9876543210 + i;
				EXPECT(0, peer_fill(&cast->a, src.addr, lengths[i], i + w, 0));
				EXPECT(0, peer_set(&cast->b, dst.addr, lengths[i], 0));
				EXPECT(0, peer_status(who[w], &req, &bytes));
				EXPECT(lengths[i], bytes);
				if (kinds[k].dst) {
					CALL(expect_notification(&cast->b, req.immediate,
								 lengths[i]));
					EXPECT(0, peer_check(&cast->b, dst.addr, lengths[i], i + w,
							     0));
				}
				if (kinds[k].src)
					CALL(expect_notification(&cast->a, req.immediate,
								 lengths[i]));
				EXPECT(0, peer_inbox_count(&cast->a));
				EXPECT(0, peer_inbox_count(&cast->b));
				EXPECT(0, peer_inbox_count(&cast->c));
			}
	return 0;
}

/* The data is there when the notification is: its reader looks at once. */
static int notify_after_data(struct cast *cast)
{
	struct area src, dst;

	EXPECT(0, make_area(&src, &cast->a, MIB(1), 0, XNEM_REG_READ, 0));
	EXPECT(0, make_area(&dst, &cast->b, MIB(1), 0, XNEM_REG_WRITE, 0));
	for (uint32_t i = 0; i < 6; i++) {
		struct xnem_submit_req req = copy_req(&dst, 0, &src, 0, MIB(1));
		struct xnem_complete done;

		req.flags = XNEM_SUBMIT_NOTIFY_DST;
		req.immediate = i;
		EXPECT(0, peer_fill(&cast->a, src.addr, MIB(1), i, 0));
		EXPECT(1, peer_submit(&cast->a, &req, 1));
		CALL(expect_notification(&cast->b, i, MIB(1)));
		EXPECT(0, peer_check(&cast->b, dst.addr, MIB(1), i, 0));
		EXPECT(1, peer_complete(&cast->a, &done, 1, 1, WAIT_NS));
		EXPECT(0, done.status);
	}
	return 0;
}

static int no_notification(struct cast *cast)
{
	struct xnem_submit_req req;
	struct area src, dst;

	EXPECT(0, make_area(&src, &cast->a, 5000, 0, XNEM_REG_READ, 0));
	EXPECT(0, make_area(&dst, &cast->b, 5000, 0, XNEM_REG_WRITE, 0));
	/* a copy that fails tells nobody */
	req = copy_req(&dst, 1, &src, 0, 5000);
	req.flags = XNEM_SUBMIT_NOTIFY_SRC | XNEM_SUBMIT_NOTIFY_DST;
	req.immediate = 7;
	EXPECT(-ERANGE, peer_status(&cast->a, &req, NULL));
	req = copy_req(&src, 0, &dst, 0, 5000);
	req.flags = XNEM_SUBMIT_NOTIFY_SRC | XNEM_SUBMIT_NOTIFY_DST;
	EXPECT(-EACCES, peer_status(&cast->a, &req, NULL));
	/* immediate data without anybody to tell; something else than a copy */
	req = copy_req(&dst, 0, &src, 0, 10);
	req.immediate = 1;
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	req = (struct xnem_submit_req){ .op = XNEM_REQ_OP_PING, .flags = XNEM_SUBMIT_NOTIFY_DST };
	EXPECT(-EINVAL, peer_status(&cast->a, &req, NULL));
	CALL(empty_inbox(&cast->a));
	return empty_inbox(&cast->b);
}

/* Nobody to tell: nothing is copied. */
static int owner_without_inbox(struct cast *cast)
{
	struct xnem_submit_req req;
	struct area src, dst;

	EXPECT(0, peer_close(&cast->b));
	EXPECT(0, peer_open(&cast->b, cast->device, false));
	EXPECT(0, make_area(&src, &cast->a, 5000, 0, RW, 0));
	EXPECT(0, make_area(&dst, &cast->b, 5000, 0, RW, 0));
	EXPECT(0, peer_set(&cast->b, dst.addr, 5000, GUARD_BYTE));
	EXPECT(0, peer_set(&cast->a, src.addr, 5000, 1));
	for (unsigned int both = 0; both < 2; both++) {
		req = copy_req(&dst, 0, &src, 0, 5000);
		req.flags = XNEM_SUBMIT_NOTIFY_DST | (both ? XNEM_SUBMIT_NOTIFY_SRC : 0);
		EXPECT(-EDESTADDRREQ, peer_status(&cast->a, &req, NULL));
		EXPECT(0, peer_check_byte(&cast->b, dst.addr, 5000, GUARD_BYTE));
		req = copy_req(&src, 0, &dst, 0, 5000);
		req.flags = XNEM_SUBMIT_NOTIFY_SRC | (both ? XNEM_SUBMIT_NOTIFY_DST : 0);
		EXPECT(-EDESTADDRREQ, peer_status(&cast->a, &req, NULL));
		EXPECT(0, peer_check_byte(&cast->a, src.addr, 5000, 1));
	}
	return empty_inbox(&cast->a);
}

/* The copy is done and nobody told; a copy of nothing tells later. */
static int notify_without_room(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	struct xnem_submit_req req;
	struct area src, dst;
	uint64_t bytes = 0;
	uint32_t half = cast->b.slots / 2;

	CALL(address_of(&cast->b, &address));
	EXPECT(0, make_area(&src, &cast->a, 70000, 0, XNEM_REG_READ, 0));
	EXPECT(0, make_area(&dst, &cast->b, 70000, 0, XNEM_REG_WRITE, 0));
	for (uint32_t i = 0; i < half; i++)
		EXPECT(0, send_one(&cast->a, &address, i, 8));
	EXPECT(0, peer_fill(&cast->a, src.addr, 70000, 1, 0));
	req = copy_req(&dst, 0, &src, 0, 70000);
	/* the destination's owner is told first: when it is not, nobody is */
	req.flags = XNEM_SUBMIT_NOTIFY_DST | XNEM_SUBMIT_NOTIFY_SRC;
	req.immediate = 77;
	EXPECT(-EBUSY, peer_status(&cast->a, &req, &bytes));
	EXPECT(70000, bytes);
	EXPECT(0, peer_check(&cast->b, dst.addr, 70000, 1, 0));
	EXPECT(half, peer_inbox_count(&cast->b));
	CALL(empty_inbox(&cast->a));
	CALL(expect_messages(&cast->b, 0, half, 8));
	req.length = 0;
	EXPECT(0, peer_status(&cast->a, &req, &bytes));
	EXPECT(0, bytes);
	CALL(expect_notification(&cast->b, 77, 0));
	return expect_notification(&cast->a, 77, 0);
}

/* ---- peers that die ---- */

/* ucx#4016, ucx#4172: the survivor learns it in time, and what came before is there. */
static int peer_dies(struct cast *cast)
{
	struct xnem_uapi_cookie to_a, to_b;
	uint64_t start;
	int err = 0;

	CALL(address_of(&cast->a, &to_a));
	CALL(address_of(&cast->b, &to_b));
	EXPECT(0, send_one(&cast->b, &to_a, 1, 30));
	EXPECT(0, send_one(&cast->b, &to_a, 2, 30));
	EXPECT(0, peer_kill(&cast->b));
	start = now_ns();
	do
		err = send_one(&cast->a, &to_b, 3, 8);
	while ((!err || err == -EBUSY) && now_ns() - start < 10000000000ull);
	EXPECT(-ENOENT, err);
	EXPECT_TRUE(now_ns() - start < 5000000000ull);
	CALL(expect_message(&cast->a, 1, 30));
	return expect_message(&cast->a, 2, 30);
}

/* Slots of a sender that is gone are free when they are read. */
static int sender_dies(struct cast *cast)
{
	struct xnem_uapi_cookie address;
	uint32_t half = cast->a.slots / 2, i;

	CALL(address_of(&cast->a, &address));
	for (i = 0; i < half; i++)
		EXPECT(0, send_one(&cast->c, &address, i, 8));
	EXPECT(0, peer_kill(&cast->c));
	CALL(expect_messages(&cast->a, 0, half, 8));
	for (i = 0; i < half; i++)
		EXPECT(0, send_one(&cast->a, &address, i, 8));
	return expect_messages(&cast->a, 0, half, 8);
}

/* An address does not outlive its context. */
static int closed_and_opened_again(struct cast *cast)
{
	struct xnem_uapi_cookie old, new;

	CALL(address_of(&cast->b, &old));
	EXPECT(0, send_one(&cast->a, &old, 1, 8));
	EXPECT(0, peer_close(&cast->b));
	EXPECT(0, peer_open(&cast->b, cast->device, true));
	CALL(address_of(&cast->b, &new));
	EXPECT_TRUE(old.id != new.id || old.key != new.key);
	EXPECT(-ENOENT, send_one(&cast->a, &old, 2, 8));
	CALL(empty_inbox(&cast->b));
	EXPECT(0, send_one(&cast->a, &new, 3, 8));
	return expect_message(&cast->b, 3, 8);
}

#define F (XNEM_FEAT_CPAGE | XNEM_FEAT_MESSAGE)
#define FN (F | XNEM_FEAT_NOTIFY)

const struct test messages_tests[] = {
	{ "messages of each length, from all to all", one_each_length, F },
	{ "a message to itself", to_itself, F },
	{ "the sender's domain is the backend's word", domains, F },
	{ "600 messages in order", order, F },
	{ "EBUSY when half of the inbox is full, and nothing is lost", no_room, F },
	{ "a sender that floods leaves room for another guest", fair_room, F },
	{ "wrong addresses", wrong_address, F },
	{ "wrong messages", wrong_messages, F },
	{ "a sender without an inbox", without_inbox, F },
	{ "both ways", both_ways, F },
	{ "waiting and polling for the inbox", sleep_until_it_comes, F },
	{ "a message wakes who sleeps in poll", wakes_a_sleeper, F },
	{ "notifications of either owner, of both, by anybody", notify, FN },
	{ "a notification comes after the data", notify_after_data, FN },
	{ "copies that tell nobody", no_notification, FN },
	{ "an owner without an inbox cannot be told", owner_without_inbox, FN },
	{ "no room for a notification: the copy is done all the same", notify_without_room, FN },
	{ "ucx#4016, ucx#4172: the receiver dies", peer_dies, F },
	{ "the sender dies, its slots are used again", sender_dies, F },
	{ "an address ends with its context", closed_and_opened_again, F },
	{ 0 },
};
