/* SPDX-License-Identifier: MIT */
/*
 * Everything of version 1 that is a size, a place or a number, by name; frozen
 * like xnemif-1.h beside it.  Padding is left out, as it may get a meaning.
 *
 * S(struct), F(struct, field); N(number) stays the same, G(number) may grow: the
 * last of a row, or bits to which others are added.
 */
#define XNEM_1_LAYOUT(S, F)                  \
	S(xnem_cookie)                       \
	F(xnem_cookie, id)                   \
	F(xnem_cookie, key)                  \
	S(xnem_segment)                      \
	F(xnem_segment, length)              \
	F(xnem_segment, offset)              \
	S(xnem_request)                      \
	F(xnem_request, id)                  \
	F(xnem_request, op)                  \
	F(xnem_request, flags)               \
	F(xnem_request, context)             \
	F(xnem_request, user_data)           \
	F(xnem_request, tag)                 \
	F(xnem_request, u)                   \
	F(xnem_request, u.reg)               \
	F(xnem_request, u.reg.length)        \
	F(xnem_request, u.reg.offset)        \
	F(xnem_request, u.reg.access)        \
	F(xnem_request, u.reg.flags)         \
	F(xnem_request, u.reg.nr_pages)      \
	F(xnem_request, u.reg.ref)           \
	F(xnem_request, u.dereg)             \
	F(xnem_request, u.dereg.region_id)   \
	F(xnem_request, u.copy)              \
	F(xnem_request, u.copy.src)          \
	F(xnem_request, u.copy.dst)          \
	F(xnem_request, u.copy.src_offset)   \
	F(xnem_request, u.copy.dst_offset)   \
	F(xnem_request, u.copy.length)       \
	F(xnem_request, u.copy.immediate)    \
	F(xnem_request, u.open)              \
	F(xnem_request, u.open.cpage_ref)    \
	F(xnem_request, u.open.flags)        \
	F(xnem_request, u.open.control_ref)  \
	F(xnem_request, u.open.inbox_order)  \
	F(xnem_request, u.open.inbox_ref)    \
	F(xnem_request, u.msg)               \
	F(xnem_request, u.msg.to)            \
	F(xnem_request, u.msg.length)        \
	F(xnem_request, u.msg.data)          \
	F(xnem_request, u.cancel)            \
	F(xnem_request, u.cancel.id)         \
	F(xnem_request, u.describe)          \
	F(xnem_request, u.describe.window)   \
	F(xnem_request, u.describe.seq)      \
	F(xnem_request, u.describe.nr_pages) \
	F(xnem_request, u.describe.indirect) \
	F(xnem_request, u.describe.ref)      \
	S(xnem_completion)                   \
	F(xnem_completion, id)               \
	F(xnem_completion, status)           \
	F(xnem_completion, bytes_done)       \
	F(xnem_completion, data)             \
	S(xnem_ring_index)                   \
	F(xnem_ring_index, prod)             \
	F(xnem_ring_index, cons)             \
	F(xnem_ring_index, event)            \
	S(xnem_attention)                    \
	F(xnem_attention, event)             \
	F(xnem_attention, windows)           \
	F(xnem_attention, contexts)          \
	S(xnem_want)                         \
	F(xnem_want, region_id)              \
	F(xnem_want, page)                   \
	F(xnem_want, nr_pages)               \
	F(xnem_want, seq)                    \
	S(xnem_queue_header)                 \
	F(xnem_queue_header, sq)             \
	F(xnem_queue_header, cq)             \
	F(xnem_queue_header, attention)      \
	F(xnem_queue_header, want)           \
	S(xnem_context_control)              \
	F(xnem_context_control, inbox_cons)  \
	F(xnem_context_control, cpage_cons)  \
	S(xnem_inbox_slot)                   \
	F(xnem_inbox_slot, value)            \
	F(xnem_inbox_slot, bytes)            \
	F(xnem_inbox_slot, from)             \
	F(xnem_inbox_slot, tag)              \
	F(xnem_inbox_slot, data)             \
	F(xnem_inbox_slot, kind)             \
	F(xnem_inbox_slot, domid)            \
	F(xnem_inbox_slot, seq)              \
	S(xnem_cpage_entry)                  \
	F(xnem_cpage_entry, user_data)       \
	F(xnem_cpage_entry, bytes_done)      \
	F(xnem_cpage_entry, status)          \
	F(xnem_cpage_entry, kind)            \
	F(xnem_cpage_entry, seq)

#define XNEM_1_NUMBERS(N, G)         \
	N(XNEM_PAGE_SHIFT)           \
	N(XNEM_PAGE_SIZE)            \
	N(XNEM_ZONE_NAME_MAX)        \
	N(XNEM_RING_ORDER_MAX)       \
	N(XNEM_FEAT_CPAGE)           \
	N(XNEM_FEAT_MESSAGE)         \
	N(XNEM_FEAT_NOTIFY)          \
	N(XNEM_FEAT_FENCE)           \
	N(XNEM_FEAT_WINDOW)          \
	N(XNEM_FEAT_TEAM)            \
	N(XNEM_FEAT_ATOMIC)          \
	N(XNEM_FEAT_SEGMENTS)        \
	N(XNEM_FEAT_CANCEL)          \
	N(XNEM_OP_PING)              \
	N(XNEM_OP_REGISTER)          \
	N(XNEM_OP_DEREGISTER)        \
	N(XNEM_OP_COPY)              \
	N(XNEM_OP_OPEN_CONTEXT)      \
	N(XNEM_OP_CLOSE_CONTEXT)     \
	N(XNEM_OP_MESSAGE)           \
	N(XNEM_OP_CANCEL)            \
	N(XNEM_OP_DESCRIBE)          \
	N(XNEM_OP_TEAM_JOIN)         \
	N(XNEM_OP_TEAM_LEAVE)        \
	N(XNEM_OP_COLLECTIVE)        \
	N(XNEM_OP_FETCH_ADD)         \
	N(XNEM_OP_COMPARE_SWAP)      \
	N(XNEM_REQ_CPAGE)            \
	N(XNEM_REQ_NOTIFY_SRC)       \
	N(XNEM_REQ_FENCE)            \
	N(XNEM_REQ_NOTIFY_DST)       \
	N(XNEM_REQ_BOUNDED)          \
	N(XNEM_ACCESS_READ)          \
	N(XNEM_ACCESS_WRITE)         \
	N(XNEM_REGION_ANY_TAG)       \
	N(XNEM_REGION_INDIRECT)      \
	N(XNEM_REGION_ONCE)          \
	N(XNEM_REGION_SEGMENTS)      \
	N(XNEM_REGION_WINDOWED)      \
	N(XNEM_INLINE_REFS)          \
	N(XNEM_DESC_REFS)            \
	N(XNEM_REGION_PAGES_MAX)     \
	N(XNEM_WINDOWED_PAGES_MAX)   \
	N(XNEM_WINDOWS_MAX)          \
	N(XNEM_WINDOW_PAGES_MAX)     \
	N(XNEM_DESCRIBE_REFS)        \
	N(XNEM_DESC_SEGMENTS)        \
	N(XNEM_SEGMENTS_MAX)         \
	N(XNEM_MESSAGE_MAX)          \
	N(XNEM_INBOX_ORDER_MAX)      \
	N(XNEM_OPEN_INBOX)           \
	N(XNEM_ST_OK)                \
	N(XNEM_ST_INVALID)           \
	N(XNEM_ST_UNSUPPORTED)       \
	N(XNEM_ST_COOKIE)            \
	N(XNEM_ST_ACCESS)            \
	N(XNEM_ST_TAG)               \
	N(XNEM_ST_RANGE)             \
	N(XNEM_ST_LIMIT)             \
	N(XNEM_ST_NOMEM)             \
	N(XNEM_ST_FAULT)             \
	N(XNEM_ST_PEER_GONE)         \
	N(XNEM_ST_CANCELLED)         \
	N(XNEM_ST_AGAIN)             \
	N(XNEM_ST_CONTEXT)           \
	N(XNEM_ST_BUSY)              \
	N(XNEM_CONTEXTS_MAX)         \
	N(XNEM_INBOX_MESSAGE)        \
	N(XNEM_INBOX_NOTIFY)         \
	N(XNEM_INBOX_SLOTS_PER_PAGE) \
	N(XNEM_CPAGE_COMPLETION)     \
	N(XNEM_CPAGE_ENTRIES)        \
	N(XNEM_SQ_SLOTS_PER_PAGE)    \
	N(XNEM_CQ_SLOTS_PER_PAGE)    \
	G(XNEM_PROTO_VERSION)        \
	G(XNEM_REQ_ALL)              \
	G(XNEM_REGION_ALL)           \
	G(XNEM_ST_MAX)
