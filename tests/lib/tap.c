// SPDX-License-Identifier: MIT
/*
 * tap.c - see tap.h
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tap.h"

static char noted[200];

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(noted, sizeof(noted), format, args);
	va_end(args);
}

static void print_number(int64_t n)
{
	const char *name = n < 0 && n > -200 ? strerrorname_np((int)-n) : NULL;

	printf("%" PRId64, n);
	if (name)
		printf(" (%s)", name);
}

int not_as_expected(const char *file, int line, const char *expr, int64_t want, int64_t got)
{
	const char *slash = strrchr(file, '/');

	printf("# %s:%d: %s is ", slash ? slash + 1 : file, line, expr);
	print_number(got);
	printf(", not ");
	print_number(want);
	printf("%s%s\n", *noted ? "; " : "", noted);
	fflush(stdout);
	return 1;
}

static unsigned int number;

void tap_result(int failed, const char *name)
{
	printf("%sok %u - %s\n", failed ? "not " : "", ++number, name);
	fflush(stdout);
}

void tap_plan(void)
{
	printf("1..%u\n", number);
}
