// SPDX-License-Identifier: MIT
/*
 * pattern.c - see pattern.h
 */
#include "pattern.h"

/* splitmix64: eight bytes of the pattern */
static uint64_t mix(uint64_t seed, uint64_t word)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15 + word * 0xd1342543de82ef95 + 0x2545f4914f6cdd1d;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

unsigned char pattern_at(uint64_t seed, uint64_t pos)
{
	return (unsigned char)(mix(seed, pos / 8) >> (pos % 8 * 8));
}

void pattern_fill(void *mem, uint64_t len, uint64_t seed, uint64_t pos)
{
	unsigned char *p = mem;

	while (len) {
		uint64_t word = mix(seed, pos / 8) >> (pos % 8 * 8);
		unsigned int n = 8 - pos % 8;

		if (n > len)
			n = (unsigned int)len;
		for (unsigned int i = 0; i < n; i++)
			p[i] = (unsigned char)(word >> (8 * i));
		p += n;
		pos += n;
		len -= n;
	}
}

uint64_t pattern_check(const void *mem, uint64_t len, uint64_t seed, uint64_t pos)
{
	const unsigned char *p = mem;
	uint64_t done = 0;

	while (done < len) {
		uint64_t word = mix(seed, pos / 8) >> (pos % 8 * 8);
		uint64_t n = 8 - pos % 8;

		if (n > len - done)
			n = len - done;
		for (uint64_t i = 0; i < n; i++)
			if (p[done + i] != (unsigned char)(word >> (8 * i)))
				return done + i;
		pos += n;
		done += n;
	}
	return len;
}

uint64_t byte_check(const void *mem, uint64_t len, unsigned char byte)
{
	const unsigned char *p = mem;

	for (uint64_t i = 0; i < len; i++)
		if (p[i] != byte)
			return i;
	return len;
}
