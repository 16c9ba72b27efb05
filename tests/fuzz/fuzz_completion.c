// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * xnem_check_completion().  Input: operation and flags (2 bytes each), length
 * (8), a completion.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xnem_completion *c, before;
	u64 length;
	bool ok, bounded;
	u16 op, flags;

	if (!take(&data, &size, &op, sizeof(op)) || !take(&data, &size, &flags, sizeof(flags)) ||
	    !take(&data, &size, &length, sizeof(length)) ||
	    !take(&data, &size, &before, sizeof(before)))
		return 0;
	c = malloc(sizeof(*c));
	must(c);
	*c = before;
	ok = xnem_check_completion(c, op, flags, length);
	must(!memcmp(c, &before, sizeof(before)));
	free(c);

	bounded = flags & XNEM_REQ_BOUNDED;
	if (ok) {
		must(before.status <= 14);
		must(!before.pad);
		/* Nobody is told of more bytes than were asked for. */
		must(before.bytes_done <= (op == XNEM_OP_COPY ? length : 0));
		if (before.status == XNEM_ST_OK && op == XNEM_OP_COPY && !bounded)
			must(before.bytes_done == length);
	} else {
		/* What a right backend answers is accepted. */
		must(before.status > 14 || before.pad || before.bytes_done ||
		     (op == XNEM_OP_COPY && before.status == XNEM_ST_OK && length && !bounded));
	}
	return 0;
}
