/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What all harnesses share.  A property that does not hold traps: the fuzzer
 * keeps the input that did it.
 */
#ifndef XNEM_FUZZ_H
#define XNEM_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xnem_check.h"

#define must(cond)                        \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

/* The next @n bytes of the input; false when there are not as many. */
static inline bool take(const uint8_t **data, size_t *size, void *to, size_t n)
{
	if (*size < n)
		return false;
	memcpy(to, *data, n);
	*data += n;
	*size -= n;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* XNEM_FUZZ_H */
