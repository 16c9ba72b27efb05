/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the two contracts look like in bytes, written down a second time and
 * independently of the headers' own assertions (which C++ does not see):
 * S(struct, size), F(struct, field, offset, size).
 */
#define WIRE_LAYOUT(S, F)                           \
	S(xnem_cookie, 16)                          \
	F(xnem_cookie, id, 0, 8)                    \
	F(xnem_cookie, key, 8, 8)                   \
	S(xnem_segment, 16)                         \
	F(xnem_segment, length, 0, 8)               \
	F(xnem_segment, offset, 8, 4)               \
	F(xnem_segment, pad, 12, 4)                 \
	S(xnem_request, 128)                        \
	F(xnem_request, id, 0, 4)                   \
	F(xnem_request, op, 4, 2)                   \
	F(xnem_request, flags, 6, 2)                \
	F(xnem_request, context, 8, 4)              \
	F(xnem_request, pad0, 12, 4)                \
	F(xnem_request, user_data, 16, 8)           \
	F(xnem_request, tag, 24, 8)                 \
	F(xnem_request, u, 32, 96)                  \
	F(xnem_request, u.reg, 32, 96)              \
	F(xnem_request, u.reg.length, 32, 8)        \
	F(xnem_request, u.reg.offset, 40, 4)        \
	F(xnem_request, u.reg.access, 44, 4)        \
	F(xnem_request, u.reg.flags, 48, 4)         \
	F(xnem_request, u.reg.nr_pages, 52, 4)      \
	F(xnem_request, u.reg.ref, 56, 72)          \
	F(xnem_request, u.dereg, 32, 96)            \
	F(xnem_request, u.dereg.region_id, 32, 8)   \
	F(xnem_request, u.dereg.pad, 40, 88)        \
	F(xnem_request, u.copy, 32, 96)             \
	F(xnem_request, u.copy.src, 32, 16)         \
	F(xnem_request, u.copy.dst, 48, 16)         \
	F(xnem_request, u.copy.src_offset, 64, 8)   \
	F(xnem_request, u.copy.dst_offset, 72, 8)   \
	F(xnem_request, u.copy.length, 80, 8)       \
	F(xnem_request, u.copy.immediate, 88, 8)    \
	F(xnem_request, u.copy.pad, 96, 32)         \
	F(xnem_request, u.open, 32, 96)             \
	F(xnem_request, u.open.cpage_ref, 32, 4)    \
	F(xnem_request, u.open.flags, 36, 4)        \
	F(xnem_request, u.open.control_ref, 40, 4)  \
	F(xnem_request, u.open.inbox_order, 44, 4)  \
	F(xnem_request, u.open.inbox_ref, 48, 32)   \
	F(xnem_request, u.open.pad, 80, 48)         \
	F(xnem_request, u.msg, 32, 96)              \
	F(xnem_request, u.msg.to, 32, 16)           \
	F(xnem_request, u.msg.length, 48, 4)        \
	F(xnem_request, u.msg.pad1, 52, 4)          \
	F(xnem_request, u.msg.data, 56, 64)         \
	F(xnem_request, u.msg.pad2, 120, 8)         \
	F(xnem_request, u.cancel, 32, 96)           \
	F(xnem_request, u.cancel.id, 32, 4)         \
	F(xnem_request, u.cancel.pad1, 36, 4)       \
	F(xnem_request, u.cancel.pad, 40, 88)       \
	F(xnem_request, u.describe, 32, 96)         \
	F(xnem_request, u.describe.window, 32, 4)   \
	F(xnem_request, u.describe.seq, 36, 4)      \
	F(xnem_request, u.describe.nr_pages, 40, 4) \
	F(xnem_request, u.describe.indirect, 44, 4) \
	F(xnem_request, u.describe.ref, 48, 80)     \
	F(xnem_request, u.none, 32, 96)             \
	F(xnem_request, u.none.pad, 32, 96)         \
	S(xnem_completion, 32)                      \
	F(xnem_completion, id, 0, 4)                \
	F(xnem_completion, status, 4, 2)            \
	F(xnem_completion, pad, 6, 2)               \
	F(xnem_completion, bytes_done, 8, 8)        \
	F(xnem_completion, data, 16, 16)            \
	S(xnem_ring_index, 128)                     \
	F(xnem_ring_index, prod, 0, 4)              \
	F(xnem_ring_index, pad0, 4, 60)             \
	F(xnem_ring_index, cons, 64, 4)             \
	F(xnem_ring_index, event, 68, 4)            \
	F(xnem_ring_index, pad1, 72, 56)            \
	S(xnem_attention, 256)                      \
	F(xnem_attention, event, 0, 4)              \
	F(xnem_attention, pad0, 4, 60)              \
	F(xnem_attention, windows, 64, 4)           \
	F(xnem_attention, pad1, 68, 60)             \
	F(xnem_attention, contexts, 128, 128)       \
	S(xnem_want, 32)                            \
	F(xnem_want, region_id, 0, 8)               \
	F(xnem_want, page, 8, 4)                    \
	F(xnem_want, nr_pages, 12, 4)               \
	F(xnem_want, pad, 16, 12)                   \
	F(xnem_want, seq, 28, 4)                    \
	S(xnem_queue_header, 1024)                  \
	F(xnem_queue_header, sq, 0, 128)            \
	F(xnem_queue_header, cq, 128, 128)          \
	F(xnem_queue_header, attention, 256, 256)   \
	F(xnem_queue_header, want, 512, 512)        \
	S(xnem_context_control, 128)                \
	F(xnem_context_control, inbox_cons, 0, 4)   \
	F(xnem_context_control, pad0, 4, 60)        \
	F(xnem_context_control, cpage_cons, 64, 4)  \
	F(xnem_context_control, pad1, 68, 60)       \
	S(xnem_inbox_slot, 128)                     \
	F(xnem_inbox_slot, value, 0, 8)             \
	F(xnem_inbox_slot, bytes, 8, 8)             \
	F(xnem_inbox_slot, from, 16, 16)            \
	F(xnem_inbox_slot, tag, 32, 8)              \
	F(xnem_inbox_slot, data, 40, 64)            \
	F(xnem_inbox_slot, kind, 104, 4)            \
	F(xnem_inbox_slot, domid, 108, 4)           \
	F(xnem_inbox_slot, pad, 112, 12)            \
	F(xnem_inbox_slot, seq, 124, 4)             \
	S(xnem_cpage_entry, 32)                     \
	F(xnem_cpage_entry, user_data, 0, 8)        \
	F(xnem_cpage_entry, bytes_done, 8, 8)       \
	F(xnem_cpage_entry, status, 16, 4)          \
	F(xnem_cpage_entry, kind, 20, 4)            \
	F(xnem_cpage_entry, pad, 24, 4)             \
	F(xnem_cpage_entry, seq, 28, 4)

#define UAPI_LAYOUT(S, F)                          \
	S(xnem_uapi_cookie, 16)                    \
	F(xnem_uapi_cookie, id, 0, 8)              \
	F(xnem_uapi_cookie, key, 8, 8)             \
	S(xnem_info, 160)                          \
	F(xnem_info, abi_version, 0, 4)            \
	F(xnem_info, proto_version, 4, 4)          \
	F(xnem_info, features, 8, 8)               \
	F(xnem_info, fabric_id, 16, 8)             \
	F(xnem_info, connected, 24, 4)             \
	F(xnem_info, device_id, 28, 4)             \
	F(xnem_info, backend_domid, 32, 4)         \
	F(xnem_info, max_inflight, 36, 4)          \
	F(xnem_info, max_region_bytes, 40, 8)      \
	F(xnem_info, max_pages, 48, 8)             \
	F(xnem_info, used_pages, 56, 8)            \
	F(xnem_info, address, 64, 16)              \
	F(xnem_info, pages_bytes, 80, 4)           \
	F(xnem_info, inbox_slots, 84, 4)           \
	F(xnem_info, max_segments, 88, 4)          \
	F(xnem_info, window_pages, 92, 4)          \
	F(xnem_info, windows, 96, 4)               \
	F(xnem_info, queues, 100, 4)               \
	F(xnem_info, reserved, 104, 56)            \
	S(xnem_seg, 16)                            \
	F(xnem_seg, addr, 0, 8)                    \
	F(xnem_seg, length, 8, 8)                  \
	S(xnem_register, 80)                       \
	F(xnem_register, addr, 0, 8)               \
	F(xnem_register, length, 8, 8)             \
	F(xnem_register, access, 16, 4)            \
	F(xnem_register, flags, 20, 4)             \
	F(xnem_register, handle, 24, 4)            \
	F(xnem_register, limit, 28, 4)             \
	F(xnem_register, cookie, 32, 16)           \
	F(xnem_register, nr_segments, 48, 4)       \
	F(xnem_register, reserved0, 52, 4)         \
	F(xnem_register, reserved, 56, 24)         \
	S(xnem_deregister, 16)                     \
	F(xnem_deregister, handle, 0, 4)           \
	F(xnem_deregister, reserved, 4, 12)        \
	S(xnem_cache_get, 80)                      \
	F(xnem_cache_get, addr, 0, 8)              \
	F(xnem_cache_get, length, 8, 8)            \
	F(xnem_cache_get, access, 16, 4)           \
	F(xnem_cache_get, flags, 20, 4)            \
	F(xnem_cache_get, handle, 24, 4)           \
	F(xnem_cache_get, limit, 28, 4)            \
	F(xnem_cache_get, cookie, 32, 16)          \
	F(xnem_cache_get, offset, 48, 8)           \
	F(xnem_cache_get, hit, 56, 4)              \
	F(xnem_cache_get, reserved0, 60, 4)        \
	F(xnem_cache_get, reserved, 64, 16)        \
	S(xnem_cache_put, 16)                      \
	F(xnem_cache_put, handle, 0, 4)            \
	F(xnem_cache_put, reserved, 4, 12)         \
	S(xnem_cache_limit, 32)                    \
	F(xnem_cache_limit, max_pages, 0, 8)       \
	F(xnem_cache_limit, reserved, 8, 24)       \
	S(xnem_submit_req, 88)                     \
	F(xnem_submit_req, op, 0, 4)               \
	F(xnem_submit_req, flags, 4, 4)            \
	F(xnem_submit_req, user_data, 8, 8)        \
	F(xnem_submit_req, src, 16, 16)            \
	F(xnem_submit_req, dst, 32, 16)            \
	F(xnem_submit_req, src_offset, 48, 8)      \
	F(xnem_submit_req, dst_offset, 56, 8)      \
	F(xnem_submit_req, length, 64, 8)          \
	F(xnem_submit_req, immediate, 72, 8)       \
	F(xnem_submit_req, reserved, 80, 8)        \
	S(xnem_submit, 32)                         \
	F(xnem_submit, reqs, 0, 8)                 \
	F(xnem_submit, count, 8, 4)                \
	F(xnem_submit, submitted, 12, 4)           \
	F(xnem_submit, reserved, 16, 16)           \
	S(xnem_complete, 24)                       \
	F(xnem_complete, user_data, 0, 8)          \
	F(xnem_complete, bytes_done, 8, 8)         \
	F(xnem_complete, status, 16, 4)            \
	F(xnem_complete, reserved, 20, 4)          \
	S(xnem_get_completions, 40)                \
	F(xnem_get_completions, completions, 0, 8) \
	F(xnem_get_completions, max_count, 8, 4)   \
	F(xnem_get_completions, min_count, 12, 4)  \
	F(xnem_get_completions, timeout_ns, 16, 8) \
	F(xnem_get_completions, count, 24, 4)      \
	F(xnem_get_completions, flags, 28, 4)      \
	F(xnem_get_completions, cpage_seen, 32, 4) \
	F(xnem_get_completions, inbox_seen, 36, 4) \
	S(xnem_cancel, 16)                         \
	F(xnem_cancel, user_data, 0, 8)            \
	F(xnem_cancel, count, 8, 4)                \
	F(xnem_cancel, reserved, 12, 4)            \
	S(xnem_eventfd, 16)                        \
	F(xnem_eventfd, fd, 0, 4)                  \
	F(xnem_eventfd, reserved, 4, 12)           \
	S(xnem_stats, 160)                         \
	F(xnem_stats, requests, 0, 8)              \
	F(xnem_stats, completions, 8, 8)           \
	F(xnem_stats, errors, 16, 8)               \
	F(xnem_stats, bytes, 24, 8)                \
	F(xnem_stats, inbox, 32, 8)                \
	F(xnem_stats, registered, 40, 8)           \
	F(xnem_stats, cache_hits, 48, 8)           \
	F(xnem_stats, cache_misses, 56, 8)         \
	F(xnem_stats, cache_stale, 64, 8)          \
	F(xnem_stats, cache_evicted, 72, 8)        \
	F(xnem_stats, pages, 80, 8)                \
	F(xnem_stats, cache_pages, 88, 8)          \
	F(xnem_stats, windows, 96, 8)              \
	F(xnem_stats, reserved, 104, 56)
