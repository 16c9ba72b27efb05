/* SPDX-License-Identifier: MIT */
/*
 * pattern.h - bytes that depend on a seed and their position alone, so that
 * programs of different tests can look at each other's
 */
#ifndef TESTS_PATTERN_H
#define TESTS_PATTERN_H

#include <stdint.h>

unsigned char pattern_at(uint64_t seed, uint64_t pos);
void pattern_fill(void *mem, uint64_t len, uint64_t seed, uint64_t pos);
/** First byte that differs, or len. */
uint64_t pattern_check(const void *mem, uint64_t len, uint64_t seed, uint64_t pos);
/** First byte that is not byte, or len. */
uint64_t byte_check(const void *mem, uint64_t len, unsigned char byte);

#endif /* TESTS_PATTERN_H */
