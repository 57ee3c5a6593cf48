// SPDX-License-Identifier: GPL-2.0
/*
 * pin_user_pages() does not return the areas, and since then refuses those that a file system
 * writes back.
 */
#include <linux/mm.h>

long probe(unsigned long start, struct page **pages);
long probe(unsigned long start, struct page **pages)
{
	return pin_user_pages(start, 1, FOLL_LONGTERM, pages);
}
