// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>
long probe(unsigned long addr, struct page **pages)
{
	return pin_user_pages(addr, 1, FOLL_LONGTERM, pages, NULL);
}
