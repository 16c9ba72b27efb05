// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Layouts of the wire protocol and of the ioctl interface, and the numbers
 * that must not move: another frontend may be built from the page alone.
 * The same table is compiled for 32 bit and as C++ (layout_*.c, layout_*.cc).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <linux/xnem.h>
#include <xen/io/xnemif.h>
#include "layout_table.h"

struct layout_row {
	const char *what;
	size_t is_offset, is_size, offset, size;
};

#define ROW_SIZE(type, sz) { #type, 0, sizeof(struct type), 0, sz },
#define ROW_FIELD(type, field, off, sz)                                                           \
	{ #type "." #field, offsetof(struct type, field), sizeof(((struct type *)0)->field), off, \
	  sz },

static const struct layout_row wire_rows[] = { WIRE_LAYOUT(ROW_SIZE, ROW_FIELD) };
static const struct layout_row uapi_rows[] = { UAPI_LAYOUT(ROW_SIZE, ROW_FIELD) };

static void check_rows(const struct layout_row *row, size_t n)
{
	for (; n--; row++)
		if (row->is_offset != row->offset || row->is_size != row->size)
			fail_msg("%s: at %zu, %zu bytes; want at %zu, %zu bytes", row->what,
				 row->is_offset, row->is_size, row->offset, row->size);
}

static void wire_layout(void **state)
{
	(void)state;
	check_rows(wire_rows, sizeof(wire_rows) / sizeof(wire_rows[0]));
}

static void uapi_layout(void **state)
{
	(void)state;
	check_rows(uapi_rows, sizeof(uapi_rows) / sizeof(uapi_rows[0]));
}

/*
 * No hole anywhere: a hole would carry bytes of the sender's stack, and its
 * size could differ between compilers.
 */
static void no_holes(void **state)
{
	size_t end = 0, size = 0, member_end = 0, i;

	(void)state;
	for (i = 0; i < sizeof(uapi_rows) / sizeof(uapi_rows[0]); i++) {
		const struct layout_row *row = &uapi_rows[i];

		if (!strchr(row->what, '.')) {
			assert_int_equal(end, size);
			end = 0;
			size = row->size;
			continue;
		}
		if (row->offset != end)
			fail_msg("hole before %s", row->what);
		end += row->size;
	}
	assert_int_equal(end, size);

	/* The union's members overlap: each is followed by itself. */
	end = size = 0;
	for (i = 0; i < sizeof(wire_rows) / sizeof(wire_rows[0]); i++) {
		const struct layout_row *row = &wire_rows[i];
		const char *dot = strchr(row->what, '.');

		if (!dot) {
			assert_int_equal(end, size);
			end = 0;
			size = row->size;
			continue;
		}
		if (!strcmp(row->what, "xnem_request.u")) {
			assert_int_equal(row->offset, end);
			end += row->size;
			continue;
		}
		if (!strncmp(dot, ".u.", 3)) {
			if (!strchr(dot + 3, '.')) {
				assert_true(!member_end ||
					    member_end == sizeof(struct xnem_request));
				member_end = row->offset;
				continue;
			}
			if (row->offset != member_end)
				fail_msg("hole before %s", row->what);
			member_end += row->size;
			continue;
		}
		if (row->offset != end)
			fail_msg("hole before %s", row->what);
		end += row->size;
	}
	assert_int_equal(end, size);
}

static void numbers(void **state)
{
	static const struct {
		unsigned long long is, want;
	} n[] = {
		{ XNEM_PROTO_VERSION, 0 },
		{ XNEM_PAGE_SIZE, 4096 },
		{ XNEM_ZONE_NAME_MAX, 63 },
		{ XNEM_RING_ORDER_MAX, 4 },
		{ XNEM_FEAT_CPAGE, 0x01 },
		{ XNEM_FEAT_MESSAGE, 0x02 },
		{ XNEM_FEAT_NOTIFY, 0x04 },
		{ XNEM_FEAT_FENCE, 0x08 },
		{ XNEM_FEAT_WINDOW, 0x10 },
		{ XNEM_FEAT_TEAM, 0x20 },
		{ XNEM_FEAT_ATOMIC, 0x40 },
		{ XNEM_OP_PING, 0 },
		{ XNEM_OP_REGISTER, 1 },
		{ XNEM_OP_DEREGISTER, 2 },
		{ XNEM_OP_COPY, 3 },
		{ XNEM_OP_OPEN_CONTEXT, 4 },
		{ XNEM_OP_CLOSE_CONTEXT, 5 },
		{ XNEM_OP_MESSAGE, 16 },
		{ XNEM_OP_CANCEL, 17 },
		{ XNEM_OP_DESCRIBE, 18 },
		{ XNEM_OP_TEAM_JOIN, 32 },
		{ XNEM_OP_TEAM_LEAVE, 33 },
		{ XNEM_OP_COLLECTIVE, 34 },
		{ XNEM_OP_FETCH_ADD, 48 },
		{ XNEM_OP_COMPARE_SWAP, 49 },
		{ XNEM_REQ_CPAGE, 1 },
		{ XNEM_REQ_NOTIFY, 2 },
		{ XNEM_REQ_FENCE, 4 },
		{ XNEM_ACCESS_READ, 1 },
		{ XNEM_ACCESS_WRITE, 2 },
		{ XNEM_REGION_ANY_TAG, 1 },
		{ XNEM_REGION_INDIRECT, 2 },
		{ XNEM_INLINE_REFS, 18 },
		{ XNEM_DESC_REFS, 1024 },
		{ XNEM_REGION_PAGES_MAX, 18432 },
		{ XNEM_ST_OK, 0 },
		{ XNEM_ST_INVALID, 1 },
		{ XNEM_ST_UNSUPPORTED, 2 },
		{ XNEM_ST_COOKIE, 3 },
		{ XNEM_ST_ACCESS, 4 },
		{ XNEM_ST_TAG, 5 },
		{ XNEM_ST_RANGE, 6 },
		{ XNEM_ST_LIMIT, 7 },
		{ XNEM_ST_NOMEM, 8 },
		{ XNEM_ST_FAULT, 9 },
		{ XNEM_ST_PEER_GONE, 10 },
		{ XNEM_ST_CANCELLED, 11 },
		{ XNEM_ST_AGAIN, 12 },
		{ XNEM_ST_CONTEXT, 13 },
		{ XNEM_ST_MAX, 13 },
		{ XNEM_CPAGE_COMPLETION, 0 },
		{ XNEM_CPAGE_NOTIFY, 1 },
		{ XNEM_CPAGE_MESSAGE, 2 },
		{ XNEM_CPAGE_ENTRIES, 128 },
		{ XNEM_SQ_SLOTS_PER_PAGE, 32 },
		{ XNEM_CQ_SLOTS_PER_PAGE, 128 },
		/* What the two contracts share must be the same number in both. */
		{ XNEM_REG_READ, XNEM_ACCESS_READ },
		{ XNEM_REG_WRITE, XNEM_ACCESS_WRITE },
		/* ioctl numbers hold direction and size: one constant pins all. */
		{ XNEM_IOC_INFO, 0xc0805840 },
		{ XNEM_IOC_REGISTER, 0xc0505841 },
		{ XNEM_IOC_DEREGISTER, 0xc0105842 },
		{ XNEM_IOC_SUBMIT, 0xc0205843 },
		{ XNEM_IOC_COMPLETE, 0xc0285844 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		if (n[i].is != n[i].want)
			fail_msg("row %zu: %#llx, want %#llx", i, n[i].is, n[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_layout),
		cmocka_unit_test(uapi_layout),
		cmocka_unit_test(no_holes),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
