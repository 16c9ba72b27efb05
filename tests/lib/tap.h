/* SPDX-License-Identifier: MIT */
/*
 * tap.h - what a test says that runs in a guest: C functions that return 0 when
 * all is right, for programs that print the Test Anything Protocol
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdint.h>

/** In a function that returns int: what must be so. */
#define EXPECT(want, expr)                                                              \
	do {                                                                            \
		int64_t got_ = (int64_t)(expr), want_ = (int64_t)(want);                \
		if (got_ != want_)                                                      \
			return not_as_expected(__FILE__, __LINE__, #expr, want_, got_); \
	} while (0)
#define EXPECT_TRUE(expr)                                                        \
	do {                                                                     \
		if (!(expr))                                                     \
			return not_as_expected(__FILE__, __LINE__, #expr, 1, 0); \
	} while (0)
/** The call was already right or wrong, and has said so. */
#define CALL(expr)                \
	do {                      \
		if (expr)         \
			return 1; \
	} while (0)

/** Prints it, an error with its name where a number is one; returns 1. */
int not_as_expected(const char *file, int line, const char *expr, int64_t want, int64_t got);
/** Also of use in the line that EXPECT prints; of the last call. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The line of a test. */
void tap_result(int failed, const char *name);
/** How many there were; the last line. */
void tap_plan(void);

#endif /* TESTS_TAP_H */
