/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What version 1 of the wire protocol looks like in the header that the includer
 * has read; see test_frozen.c.
 */
#ifndef FROZEN_ROWS_H
#define FROZEN_ROWS_H

#include <stddef.h>

#include "../frozen/list-1.h"

struct frozen_row {
	const char *what;
	/** 'S' struct, 'F' field, 'N' number, 'G' number that may grow. */
	char kind;
	unsigned long long size, value;
};

struct frozen_rows {
	const struct frozen_row *row;
	size_t nr;
};

/** As the frozen header has it, and as the header of today has it. */
extern const struct frozen_rows frozen_then, frozen_now;

#define FROZEN_S(type) { #type, 'S', sizeof(struct type), 0 },
#define FROZEN_F(type, field) \
	{ #type "." #field, 'F', sizeof(((struct type *)0)->field), offsetof(struct type, field) },
/* The size says whether it is as wide as before: a shift of it must not break. */
#define FROZEN_N(name) { #name, 'N', sizeof(name), name },
#define FROZEN_G(name) { #name, 'G', sizeof(name), name },

#define FROZEN_ROWS(name)                                                                       \
	static const struct frozen_row rows[] = { XNEM_1_LAYOUT(FROZEN_S, FROZEN_F)             \
							  XNEM_1_NUMBERS(FROZEN_N, FROZEN_G) }; \
	const struct frozen_rows name = { rows, sizeof(rows) / sizeof(rows[0]) }

#endif /* FROZEN_ROWS_H */
