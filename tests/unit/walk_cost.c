// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the walk costs a page, to be run under callgrind (walk_cost.sh): walks
 * 1 MiB ROUNDS times and stores each operation where a batch of grant copies
 * would be.  Usage: walk_cost SRC_OFFSET DST_OFFSET
 */
#include <stdio.h>
#include <stdlib.h>

#include "xnem_walk.h"

#define PAGES 256
#define ROUNDS 100
#define BATCH 64

static u32 refs[PAGES + 2];
static struct xnem_copy_op batch[BATCH];

static inline __attribute__((always_inline)) void store(void *arg, u32 src_ref, u32 src_off,
							u32 dst_ref, u32 dst_off, u32 len)
{
	struct xnem_copy_op **to = arg;

	*(*to)++ = (struct xnem_copy_op){ src_ref, dst_ref, (u16)src_off, (u16)dst_off, (u16)len };
}

/*
 * Not inlined: callgrind counts this function and nothing of the set-up.  A
 * full batch would go to the hypervisor here; that is not the walk's cost.
 */
__attribute__((noinline)) unsigned int measured(struct xnem_walk *w)
{
	struct xnem_copy_op *to;
	unsigned int ops = 0, n;

	do {
		to = batch;
		n = xnem_walk_batch(w, BATCH, store, &to);
		__asm__ volatile("" : : "r"(batch) : "memory");
		ops += n;
	} while (n >= BATCH - 1);
	return ops;
}

int main(int argc, char **argv)
{
	unsigned int i, ops = 0;

	if (argc != 3)
		return 2;
	for (i = 0; i < ROUNDS; i++) {
		struct xnem_walk w;

		xnem_walk_init(&w, refs, strtoul(argv[1], NULL, 10), refs,
			       strtoul(argv[2], NULL, 10), PAGES * XNEM_PAGE_SIZE);
		ops += measured(&w);
	}
	printf("%u %u\n", PAGES * ROUNDS, ops);
	return 0;
}
