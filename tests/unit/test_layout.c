// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Layouts of the wire protocol and of the ioctl interface, and the numbers
 * that must not move: another frontend may be built from the page alone.
 * The same table is compiled for 32 bit and as C++ (layout_*.c, layout_*.cc).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

struct number {
	const char *name;
	unsigned long long is, want;
};

static const struct number wire_numbers[] = {
	{ "XNEM_PROTO_VERSION", XNEM_PROTO_VERSION, 1 },
	/* CVE-2022-23041: rings and orders in Xen's pages, not in those of the kernel. */
	{ "XNEM_PAGE_SHIFT", XNEM_PAGE_SHIFT, 12 },
	{ "XNEM_PAGE_SIZE", XNEM_PAGE_SIZE, 4096 },
	{ "XNEM_ZONE_NAME_MAX", XNEM_ZONE_NAME_MAX, 63 },
	{ "XNEM_RING_ORDER_MAX", XNEM_RING_ORDER_MAX, 4 },
	{ "XNEM_FEAT_CPAGE", XNEM_FEAT_CPAGE, 0x001 },
	{ "XNEM_FEAT_MESSAGE", XNEM_FEAT_MESSAGE, 0x002 },
	{ "XNEM_FEAT_NOTIFY", XNEM_FEAT_NOTIFY, 0x004 },
	{ "XNEM_FEAT_FENCE", XNEM_FEAT_FENCE, 0x008 },
	{ "XNEM_FEAT_WINDOW", XNEM_FEAT_WINDOW, 0x010 },
	{ "XNEM_FEAT_TEAM", XNEM_FEAT_TEAM, 0x020 },
	{ "XNEM_FEAT_ATOMIC", XNEM_FEAT_ATOMIC, 0x040 },
	{ "XNEM_FEAT_SEGMENTS", XNEM_FEAT_SEGMENTS, 0x080 },
	{ "XNEM_FEAT_CANCEL", XNEM_FEAT_CANCEL, 0x100 },
	{ "XNEM_OP_PING", XNEM_OP_PING, 0 },
	{ "XNEM_OP_REGISTER", XNEM_OP_REGISTER, 1 },
	{ "XNEM_OP_DEREGISTER", XNEM_OP_DEREGISTER, 2 },
	{ "XNEM_OP_COPY", XNEM_OP_COPY, 3 },
	{ "XNEM_OP_OPEN_CONTEXT", XNEM_OP_OPEN_CONTEXT, 4 },
	{ "XNEM_OP_CLOSE_CONTEXT", XNEM_OP_CLOSE_CONTEXT, 5 },
	{ "XNEM_OP_MESSAGE", XNEM_OP_MESSAGE, 16 },
	{ "XNEM_OP_CANCEL", XNEM_OP_CANCEL, 17 },
	{ "XNEM_OP_DESCRIBE", XNEM_OP_DESCRIBE, 18 },
	{ "XNEM_OP_TEAM_JOIN", XNEM_OP_TEAM_JOIN, 32 },
	{ "XNEM_OP_TEAM_LEAVE", XNEM_OP_TEAM_LEAVE, 33 },
	{ "XNEM_OP_COLLECTIVE", XNEM_OP_COLLECTIVE, 34 },
	{ "XNEM_OP_FETCH_ADD", XNEM_OP_FETCH_ADD, 48 },
	{ "XNEM_OP_COMPARE_SWAP", XNEM_OP_COMPARE_SWAP, 49 },
	{ "XNEM_REQ_CPAGE", XNEM_REQ_CPAGE, 1 },
	{ "XNEM_REQ_NOTIFY_SRC", XNEM_REQ_NOTIFY_SRC, 2 },
	{ "XNEM_REQ_FENCE", XNEM_REQ_FENCE, 4 },
	{ "XNEM_REQ_NOTIFY_DST", XNEM_REQ_NOTIFY_DST, 8 },
	{ "XNEM_REQ_BOUNDED", XNEM_REQ_BOUNDED, 16 },
	{ "XNEM_REQ_ALL", XNEM_REQ_ALL, 31 },
	{ "XNEM_ACCESS_READ", XNEM_ACCESS_READ, 1 },
	{ "XNEM_ACCESS_WRITE", XNEM_ACCESS_WRITE, 2 },
	{ "XNEM_REGION_ANY_TAG", XNEM_REGION_ANY_TAG, 1 },
	{ "XNEM_REGION_INDIRECT", XNEM_REGION_INDIRECT, 2 },
	{ "XNEM_REGION_ONCE", XNEM_REGION_ONCE, 4 },
	{ "XNEM_REGION_SEGMENTS", XNEM_REGION_SEGMENTS, 8 },
	{ "XNEM_REGION_WINDOWED", XNEM_REGION_WINDOWED, 16 },
	{ "XNEM_REGION_ALL", XNEM_REGION_ALL, 31 },
	{ "XNEM_INLINE_REFS", XNEM_INLINE_REFS, 18 },
	{ "XNEM_DESC_REFS", XNEM_DESC_REFS, 1024 },
	{ "XNEM_REGION_PAGES_MAX", XNEM_REGION_PAGES_MAX, 18432 },
	/* 8 TiB of 4 KiB */
	{ "XNEM_WINDOWED_PAGES_MAX", XNEM_WINDOWED_PAGES_MAX, 2147483648 },
	{ "XNEM_WINDOWS_MAX", XNEM_WINDOWS_MAX, 16 },
	{ "XNEM_WINDOW_PAGES_MAX", XNEM_WINDOW_PAGES_MAX, 1024 },
	{ "XNEM_DESCRIBE_REFS", XNEM_DESCRIBE_REFS, 20 },
	{ "XNEM_DESC_SEGMENTS", XNEM_DESC_SEGMENTS, 256 },
	{ "XNEM_SEGMENTS_MAX", XNEM_SEGMENTS_MAX, 1024 },
	{ "XNEM_MESSAGE_MAX", XNEM_MESSAGE_MAX, 64 },
	{ "XNEM_INBOX_ORDER_MAX", XNEM_INBOX_ORDER_MAX, 3 },
	{ "XNEM_OPEN_INBOX", XNEM_OPEN_INBOX, 1 },
	{ "XNEM_ST_OK", XNEM_ST_OK, 0 },
	{ "XNEM_ST_INVALID", XNEM_ST_INVALID, 1 },
	{ "XNEM_ST_UNSUPPORTED", XNEM_ST_UNSUPPORTED, 2 },
	{ "XNEM_ST_COOKIE", XNEM_ST_COOKIE, 3 },
	{ "XNEM_ST_ACCESS", XNEM_ST_ACCESS, 4 },
	{ "XNEM_ST_TAG", XNEM_ST_TAG, 5 },
	{ "XNEM_ST_RANGE", XNEM_ST_RANGE, 6 },
	{ "XNEM_ST_LIMIT", XNEM_ST_LIMIT, 7 },
	{ "XNEM_ST_NOMEM", XNEM_ST_NOMEM, 8 },
	{ "XNEM_ST_FAULT", XNEM_ST_FAULT, 9 },
	{ "XNEM_ST_PEER_GONE", XNEM_ST_PEER_GONE, 10 },
	{ "XNEM_ST_CANCELLED", XNEM_ST_CANCELLED, 11 },
	{ "XNEM_ST_AGAIN", XNEM_ST_AGAIN, 12 },
	{ "XNEM_ST_CONTEXT", XNEM_ST_CONTEXT, 13 },
	{ "XNEM_ST_BUSY", XNEM_ST_BUSY, 14 },
	{ "XNEM_ST_MAX", XNEM_ST_MAX, 14 },
	{ "XNEM_CONTEXTS_MAX", XNEM_CONTEXTS_MAX, 1024 },
	{ "XNEM_INBOX_MESSAGE", XNEM_INBOX_MESSAGE, 1 },
	{ "XNEM_INBOX_NOTIFY", XNEM_INBOX_NOTIFY, 2 },
	{ "XNEM_INBOX_SLOTS_PER_PAGE", XNEM_INBOX_SLOTS_PER_PAGE, 32 },
	{ "XNEM_CPAGE_COMPLETION", XNEM_CPAGE_COMPLETION, 0 },
	{ "XNEM_CPAGE_ENTRIES", XNEM_CPAGE_ENTRIES, 128 },
	{ "XNEM_SQ_SLOTS_PER_PAGE", XNEM_SQ_SLOTS_PER_PAGE, 32 },
	{ "XNEM_CQ_SLOTS_PER_PAGE", XNEM_CQ_SLOTS_PER_PAGE, 128 },
};

static const struct number uapi_numbers[] = {
	{ "XNEM_ABI_VERSION", XNEM_ABI_VERSION, 1 },
	/* What the two contracts share must be the same number in both. */
	{ "XNEM_REG_READ", XNEM_REG_READ, XNEM_ACCESS_READ },
	{ "XNEM_REG_WRITE", XNEM_REG_WRITE, XNEM_ACCESS_WRITE },
	{ "XNEM_REG_ANY_USER", XNEM_REG_ANY_USER, 1 },
	{ "XNEM_REG_ONCE", XNEM_REG_ONCE, 2 },
	{ "XNEM_REG_WINDOWED", XNEM_REG_WINDOWED, 4 },
	{ "XNEM_REQ_OP_PING", XNEM_REQ_OP_PING, 0 },
	{ "XNEM_REQ_OP_COPY", XNEM_REQ_OP_COPY, 1 },
	{ "XNEM_REQ_OP_MESSAGE", XNEM_REQ_OP_MESSAGE, 2 },
	{ "XNEM_SUBMIT_CPAGE", XNEM_SUBMIT_CPAGE, 0x01 },
	{ "XNEM_SUBMIT_FENCE", XNEM_SUBMIT_FENCE, 0x02 },
	{ "XNEM_SUBMIT_NOTIFY_SRC", XNEM_SUBMIT_NOTIFY_SRC, 0x04 },
	{ "XNEM_SUBMIT_NOTIFY_DST", XNEM_SUBMIT_NOTIFY_DST, 0x08 },
	{ "XNEM_SUBMIT_BOUNDED", XNEM_SUBMIT_BOUNDED, 0x10 },
	{ "XNEM_SUBMIT_SRC_ADDR", XNEM_SUBMIT_SRC_ADDR, 0x20 },
	{ "XNEM_SUBMIT_DST_ADDR", XNEM_SUBMIT_DST_ADDR, 0x40 },
	{ "XNEM_COMPLETE_CPAGE", XNEM_COMPLETE_CPAGE, 1 },
	{ "XNEM_COMPLETE_INBOX", XNEM_COMPLETE_INBOX, 2 },
	{ "XNEM_IOC_MAGIC", XNEM_IOC_MAGIC, 0x58 },
	/* ioctl numbers hold direction and size: one constant pins all. */
	{ "XNEM_IOC_INFO", XNEM_IOC_INFO, 0xc0a05840 },
	{ "XNEM_IOC_REGISTER", XNEM_IOC_REGISTER, 0xc0505841 },
	{ "XNEM_IOC_DEREGISTER", XNEM_IOC_DEREGISTER, 0xc0105842 },
	{ "XNEM_IOC_SUBMIT", XNEM_IOC_SUBMIT, 0xc0205843 },
	{ "XNEM_IOC_COMPLETE", XNEM_IOC_COMPLETE, 0xc0285844 },
	{ "XNEM_IOC_CACHE_GET", XNEM_IOC_CACHE_GET, 0xc0505845 },
	{ "XNEM_IOC_CACHE_PUT", XNEM_IOC_CACHE_PUT, 0xc0105846 },
	{ "XNEM_IOC_CACHE_LIMIT", XNEM_IOC_CACHE_LIMIT, 0xc0205847 },
	{ "XNEM_IOC_CANCEL", XNEM_IOC_CANCEL, 0xc0105848 },
	{ "XNEM_IOC_EVENTFD", XNEM_IOC_EVENTFD, 0xc0105849 },
	{ "XNEM_IOC_STATS", XNEM_IOC_STATS, 0xc0a0584a },
};
#define NR(array) (sizeof(array) / sizeof((array)[0]))

static void check_numbers(const struct number *n, size_t nr)
{
	for (; nr--; n++)
		if (n->is != n->want)
			fail_msg("%s: %#llx, want %#llx", n->name, n->is, n->want);
}

static void numbers(void **state)
{
	(void)state;
	check_numbers(wire_numbers, NR(wire_numbers));
	check_numbers(uapi_numbers, NR(uapi_numbers));
}

/* ---- nothing is left out: the headers' own text against the tables ---- */

static bool has_row(const struct layout_row *row, size_t nr, const char *name)
{
	for (; nr--; row++)
		if (!strcmp(row->what, name))
			return true;
	return false;
}

static bool has_number(const struct number *n, size_t nr, const char *name)
{
	for (; nr--; n++)
		if (!strcmp(n->name, name))
			return true;
	return false;
}

static void check_text(const char *path, const struct layout_row *row, size_t rows,
		       const struct number *n, size_t nr)
{
	char line[256], name[64], rest[192];
	bool in_enum = false;
	size_t structs = 0, names = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("cannot read %s", path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "enum ", 5))
			in_enum = true;
		else if (line[0] == '}')
			in_enum = false;
		if (sscanf(line, "struct %63[a-z_] %1[{]", name, rest) == 2) {
			structs++;
			if (!has_row(row, rows, name))
				fail_msg("%s: struct %s is not in the table", path, name);
		} else if (sscanf(line, "#define %63[A-Z0-9_]%191[^\n]", name, rest) == 2) {
			/* Neither the guard, which has no value, nor macros. */
			if (rest[0] != ' ')
				continue;
		} else if (!in_enum || sscanf(line, "\t%63[A-Z0-9_] %1[=]", name, rest) != 2) {
			continue;
		}
		if (strncmp(name, "XNEM_", 5))
			continue;
		names++;
		if (!has_number(n, nr, name))
			fail_msg("%s: %s is not in the table", path, name);
	}
	fclose(f);
	assert_int_equal(names, nr);
	/* As many structs as the table has, in case that the search is wrong. */
	for (; rows--; row++)
		structs -= !strchr(row->what, '.');
	assert_int_equal(structs, 0);
}

static void nothing_left_out(void **state)
{
	(void)state;
	check_text(TOP "/include/xen/io/xnemif.h", wire_rows, NR(wire_rows), wire_numbers,
		   NR(wire_numbers));
	check_text(TOP "/include/uapi/linux/xnem.h", uapi_rows, NR(uapi_rows), uapi_numbers,
		   NR(uapi_numbers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_layout),	    cmocka_unit_test(uapi_layout),
		cmocka_unit_test(no_holes),	    cmocka_unit_test(numbers),
		cmocka_unit_test(nothing_left_out),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
