/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Compiled, never run: the layouts as another language or word size sees
 * them.  Included by layout_*.c and layout_*.cc, each for itself, so that a
 * header that needs another one included first does not pass either.
 */
#include "layout_table.h"

#ifdef __cplusplus
#define LAYOUT_ASSERT(cond, text) static_assert(cond, text)
#else
#define LAYOUT_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#define ASSERT_SIZE(type, size) LAYOUT_ASSERT(sizeof(struct type) == (size), "size of " #type);
#define ASSERT_FIELD(type, field, off, size)                           \
	LAYOUT_ASSERT(__builtin_offsetof(struct type, field) == (off), \
		      "offset of " #type "." #field);                  \
	LAYOUT_ASSERT(sizeof(((struct type *)0)->field) == (size), "size of " #type "." #field);
