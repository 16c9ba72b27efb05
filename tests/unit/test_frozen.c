// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The header of today against the frozen version 1 (tests/frozen): what a
 * frontend was built from once must stay where it was.  Both headers have the
 * same names, so each is read by a file of its own (frozen_then.c, frozen_now.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "frozen_rows.h"

static bool same(const struct frozen_row *then, const struct frozen_row *now)
{
	if (then->size != now->size)
		return false;
	if (then->kind != 'G')
		return then->value == now->value;
	return now->value >= then->value;
}

static void check_kind(const char *kinds)
{
	size_t i, bad = 0, seen = 0;

	assert_int_equal(frozen_then.nr, frozen_now.nr);
	for (i = 0; i < frozen_then.nr; i++) {
		const struct frozen_row *then = &frozen_then.row[i], *now = &frozen_now.row[i];

		if (!strchr(kinds, then->kind))
			continue;
		seen++;
		if (same(then, now))
			continue;
		bad++;
		print_error("%s: %llu (%llu bytes), was %llu (%llu bytes)\n", now->what, now->value,
			    now->size, then->value, then->size);
	}
	assert_true(seen);
	if (bad)
		fail_msg("%zu differ from version 1: that is another version of the protocol", bad);
}

static void layout(void **state)
{
	(void)state;
	check_kind("SF");
}

static void numbers(void **state)
{
	(void)state;
	check_kind("NG");
}

/* Masks of known bits grow by bits: none of before is missing. */
static void masks(void **state)
{
	size_t i, seen = 0;

	(void)state;
	for (i = 0; i < frozen_then.nr; i++) {
		const struct frozen_row *then = &frozen_then.row[i];
		size_t len = strlen(then->what);

		if (then->kind != 'G' || len < 4 || strcmp(then->what + len - 4, "_ALL"))
			continue;
		seen++;
		if (then->value & ~frozen_now.row[i].value)
			fail_msg("%s: bits of version 1 are missing", then->what);
	}
	assert_int_equal(seen, 2);
}

static bool listed(const char *name)
{
	size_t i;

	for (i = 0; i < frozen_then.nr; i++)
		if (!strcmp(frozen_then.row[i].what, name))
			return true;
	return false;
}

/* The list leaves out no struct and no number of the frozen page. */
static void nothing_left_out(void **state)
{
	char line[256], name[64], rest[192];
	size_t names = 0, rows = 0, i;
	bool in_enum = false;
	FILE *f = fopen(TOP "/tests/frozen/xnemif-1.h", "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "enum ", 5))
			in_enum = true;
		else if (line[0] == '}')
			in_enum = false;
		if (sscanf(line, "struct %63[a-z_] %1[{]", name, rest) != 2 &&
		    /* Neither the guard, which has no value, nor macros. */
		    (sscanf(line, "#define %63[A-Z0-9_]%191[^\n]", name, rest) != 2 ||
		     rest[0] != ' ') &&
		    (!in_enum || sscanf(line, "\t%63[A-Z0-9_] %1[=]", name, rest) != 2))
			continue;
		names++;
		if (!listed(name))
			fail_msg("%s is not in list-1.h", name);
	}
	fclose(f);
	for (i = 0; i < frozen_then.nr; i++)
		rows += frozen_then.row[i].kind != 'F';
	/* As many as the list has, in case that the search is wrong. */
	assert_int_equal(names, rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(numbers),
		cmocka_unit_test(masks),
		cmocka_unit_test(nothing_left_out),
	};

	return cmocka_run_group_tests_name("frozen", tests, NULL, NULL);
}
