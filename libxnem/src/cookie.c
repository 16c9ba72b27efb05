// SPDX-License-Identifier: MIT
/*
 * Cookies and addresses: id, key and fabric id, each 8 bytes little-endian, so that the
 * bytes mean the same wherever they are sent.
 */
#include <string.h>

#include "internal.h"

static void put64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

void xnem_bytes_pack(unsigned char bytes[XNEM_COOKIE_SIZE], const struct xnem_uapi_cookie *in,
		     uint64_t fabric)
{
	put64(bytes, in->id);
	put64(bytes + 8, in->key);
	put64(bytes + 16, fabric);
}

void xnem_bytes_unpack(const unsigned char bytes[XNEM_COOKIE_SIZE], struct xnem_uapi_cookie *out)
{
	out->id = get64(bytes);
	out->key = get64(bytes + 8);
}

uint64_t xnem_bytes_fabric(const unsigned char bytes[XNEM_COOKIE_SIZE])
{
	return get64(bytes + 16);
}

XNEM_API uint64_t xnem_cookie_fabric(const struct xnem_cookie *cookie)
{
	return xnem_bytes_fabric(cookie->bytes);
}

XNEM_API void xnem_cookie_to_text(const struct xnem_cookie *cookie,
				  char text[XNEM_COOKIE_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < XNEM_COOKIE_SIZE; i++) {
		text[2 * i] = digits[cookie->bytes[i] >> 4];
		text[2 * i + 1] = digits[cookie->bytes[i] & 15];
	}
	text[2 * XNEM_COOKIE_SIZE] = '\0';
}

/* not isxdigit(): the locale has no say here */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

XNEM_API int xnem_cookie_from_text(const char *text, struct xnem_cookie *cookie)
{
	struct xnem_cookie tmp;

	if (!text)
		return -EINVAL;
	for (int i = 0; i < XNEM_COOKIE_SIZE; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return -EINVAL;
		tmp.bytes[i] = (unsigned char)(high << 4 | low);
	}
	text += 2 * XNEM_COOKIE_SIZE;
	if (text[strspn(text, " \t\r\n")] != '\0')
		return -EINVAL;
	*cookie = tmp;
	return 0;
}
