/* SPDX-License-Identifier: MIT */
/*
 * must.h - what the examples do with errors: say so, and end
 */
#ifndef EXAMPLE_MUST_H
#define EXAMPLE_MUST_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xnem.h"

/** Each call of libxnem returns a negative errno on failure, for which it has a sentence. */
static inline void must(const char *what, int err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%s: %s: %s (%s)\n", program_invocation_short_name, what,
		xnem_strerror(err), xnem_errname(err));
	exit(1);
}

static inline void must_not_fail(const char *what, bool fine)
{
	if (fine)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		errno ? strerror(errno) : "failed");
	exit(1);
}

#endif /* EXAMPLE_MUST_H */
