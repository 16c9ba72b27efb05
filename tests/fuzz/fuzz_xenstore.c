// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All parsers of xenstore values.  Input: one byte that says which (and, for
 * references, how many are allowed at most), then the text.
 */
#include <stdio.h>

#include "fuzz.h"

/* Text that the parser accepts is a number as strtoull() sees it. */
static void number(const char *s, u32 v)
{
	char *end;

	/* Longer ones than this are zeros in front. */
	while (s[0] == '0' && s[1])
		s++;
	must(strlen(s) <= 10);
	must(strtoull(s, &end, 10) == v);
	must(!*end);
}

static void limits(const char *s)
{
	struct xnem_limits lim, again;
	char text[512];

	if (!xnem_parse_limits(s, &lim))
		return;
	must(lim.queues && lim.inflight && lim.contexts && lim.regions);
	must(lim.region_pages && lim.pages);
	must(lim.sq_order <= XNEM_RING_ORDER_MAX && lim.cq_order <= XNEM_RING_ORDER_MAX);
	must(lim.contexts <= 1024 && lim.windows <= 16 && lim.window_pages <= 1024);
	must(!lim.windows || lim.window_pages);
	/* Written the way a backend writes them, they are the same again. */
	snprintf(text, sizeof(text),
		 "queues=%u sq-order=%u cq-order=%u inflight=%u contexts=%u regions=%u "
		 "region-pages=%u pages=%u windows=%u window-pages=%u",
		 lim.queues, lim.sq_order, lim.cq_order, lim.inflight, lim.contexts, lim.regions,
		 lim.region_pages, lim.pages, lim.windows, lim.window_pages);
	must(xnem_parse_limits(text, &again));
	must(!memcmp(&lim, &again, sizeof(lim)));
}

static void refs(const char *s, u32 max)
{
	u32 *ref = malloc(max ? max * sizeof(*ref) : 1), *again;
	u32 n, m, i;

	must(ref);
	if (xnem_parse_refs(s, ref, max, &n)) {
		char text[32 * 11 + 1];
		size_t at = 0;

		must(n >= 1 && n <= max && !(n & (n - 1)));
		for (i = 0; i < n; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", i ? " " : "",
					       ref[i]);
		again = malloc(n * sizeof(*again));
		must(again);
		must(xnem_parse_refs(text, again, n, &m));
		must(m == n && !memcmp(ref, again, n * sizeof(*ref)));
		free(again);
	}
	free(ref);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 v, min, max;
	u64 x;
	u8 which;
	char *s;

	if (!take(&data, &size, &which, 1))
		return 0;
	s = malloc(size + 1);
	must(s);
	memcpy(s, data, size);
	s[size] = 0;

	switch (which % 6) {
	case 0:
		if (xnem_parse_u32(s, &v))
			number(s, v);
		break;
	case 1:
		if (xnem_parse_versions(s, &min, &max)) {
			char *space = strchr(s, ' ');

			must(space && min <= max);
			*space = 0;
			number(s, min);
			number(space + 1, max);
		}
		break;
	case 2:
		if (xnem_parse_hex64(s, &x)) {
			char *end;

			must(strlen(s) >= 1 && strlen(s) <= 16);
			must(strspn(s, "0123456789abcdefABCDEF") == strlen(s));
			must(strtoull(s, &end, 16) == x);
			must(!*end);
		}
		break;
	case 3:
		limits(s);
		break;
	case 4:
		refs(s, which / 6 % 17);
		break;
	case 5:
		if (xnem_zone_name_ok(s)) {
			must(strlen(s) >= 1 && strlen(s) <= XNEM_ZONE_NAME_MAX);
			/* Nothing that a path or a list could take amiss. */
			must(!strpbrk(s, "/ \t\n\"'%"));
		}
		break;
	}
	free(s);
	return 0;
}
