// SPDX-License-Identifier: MIT
/*
 * Numbers that are the same for the same seed, on every machine.
 */
#include "hostile.h"

uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
