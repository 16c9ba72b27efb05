/* SPDX-License-Identifier: MIT */
/*
 * sha256.h - SHA-256 (FIPS 180-4), small and portable
 *
 * So that the example runs on a bare guest and its checksum can be compared
 * with sha256sum(1).
 */
#ifndef XNEM_SHA256_H
#define XNEM_SHA256_H

#include <stdint.h>
#include <string.h>

struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

static inline uint32_t sha256_ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static inline void sha256_block(uint32_t h[8], const unsigned char *p)
{
	static const uint32_t k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
		0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
		0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
		0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
		0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
		0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
		0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
		0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
		0xc67178f2,
	};
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (sha256_ror(a, 7) ^ sha256_ror(a, 18) ^ a >> 3) +
		       (sha256_ror(b, 17) ^ sha256_ror(b, 19) ^ b >> 10);
	}
	memcpy(s, h, sizeof(s));
	/* eight steps a turn: the names move instead of the values */
#define SHA256_STEP(a, b, c, d, e, f, g, h, i)                                                  \
	do {                                                                                    \
		uint32_t t = (h) + (sha256_ror(e, 6) ^ sha256_ror(e, 11) ^ sha256_ror(e, 25)) + \
			     ((g) ^ ((e) & ((f) ^ (g)))) + k[i] + w[i];                         \
                                                                                                \
		(d) += t;                                                                       \
		(h) = t + (sha256_ror(a, 2) ^ sha256_ror(a, 13) ^ sha256_ror(a, 22)) +          \
		      (((a) & (b)) | ((c) & ((a) | (b))));                                      \
	} while (0)
	for (int i = 0; i < 64; i += 8) {
		SHA256_STEP(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], i);
		SHA256_STEP(s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], i + 1);
		SHA256_STEP(s[6], s[7], s[0], s[1], s[2], s[3], s[4], s[5], i + 2);
		SHA256_STEP(s[5], s[6], s[7], s[0], s[1], s[2], s[3], s[4], i + 3);
		SHA256_STEP(s[4], s[5], s[6], s[7], s[0], s[1], s[2], s[3], i + 4);
		SHA256_STEP(s[3], s[4], s[5], s[6], s[7], s[0], s[1], s[2], i + 5);
		SHA256_STEP(s[2], s[3], s[4], s[5], s[6], s[7], s[0], s[1], i + 6);
		SHA256_STEP(s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[0], i + 7);
	}
#undef SHA256_STEP
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

static inline void sha256_init(struct sha256 *c)
{
	static const uint32_t h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(c->h, h, sizeof(h));
	c->bytes = 0;
}

static inline void sha256_add(struct sha256 *c, const void *data, size_t len)
{
	size_t used = c->bytes % 64;
	const unsigned char *p = data;

	c->bytes += len;
	if (used) {
		size_t n = len < 64 - used ? len : 64 - used;

		memcpy(c->block + used, p, n);
		p += n;
		len -= n;
		if (used + n < 64)
			return;
		sha256_block(c->h, c->block);
	}
	for (; len >= 64; p += 64, len -= 64)
		sha256_block(c->h, p);
	if (len)
		memcpy(c->block, p, len);
}

static inline void sha256_end(struct sha256 *c, unsigned char digest[32])
{
	uint64_t bits = c->bytes * 8;
	unsigned char pad[72] = { 0x80 };
	size_t n = 64 - (c->bytes + 8) % 64;

	for (int i = 0; i < 8; i++)
		pad[n + i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(c, pad, n + 8);
	for (int i = 0; i < 32; i++)
		digest[i] = (unsigned char)(c->h[i / 4] >> (24 - 8 * (i % 4)));
}

#endif /* XNEM_SHA256_H */
