/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory that one key covers. Used when a receive is mapped, to count its keys, and
 * when they are registered: both get the same answer.
 */
#ifndef EXS_TRANSPORT_VERBS_EXTENT_H
#define EXS_TRANSPORT_VERBS_EXTENT_H

#include <linux/mm.h>
#include <linux/scatterlist.h>

/**
 * struct exs_verbs_pos - a place in DMA-mapped memory
 * @sg: entry; NULL: the end
 * @off: bytes into it
 */
struct exs_verbs_pos {
	struct scatterlist *sg;
	u32 off;
};

/* Advance by @n bytes, which are there, or to the end. */
static inline void exs_verbs_pos_advance(struct exs_verbs_pos *pos, u64 n)
{
	while (pos->sg && n >= sg_dma_len(pos->sg) - pos->off) {
		n -= sg_dma_len(pos->sg) - pos->off;
		pos->sg = sg_next(pos->sg);
		pos->off = 0;
		/* Behind the last DMA entry there may be unused ones. */
		if (pos->sg && !sg_dma_len(pos->sg))
			pos->sg = NULL;
	}
	if (pos->sg)
		pos->off += n;
}

/**
 * exs_verbs_extent() - how many bytes a key can cover
 * @pos: the first of them
 * @key_pages: pages of the key, of PAGE_SIZE bytes
 * @max: no more than so many, at least 1
 *
 * A key maps whole pages, but for the beginning of its first and the end of its
 * last one; adjacent entries may meet anywhere. An entry that does not fit is
 * covered in part: ib_sg_to_pages(), given all of it, would cover a page less than
 * the key has. Each part of an extent is one, too: so whatever lies within memory that n
 * keys cover is covered by n at the most.
 *
 * Return: bytes, 0 only behind the end.
 */
static inline u64 exs_verbs_extent(struct exs_verbs_pos pos, u32 key_pages, u64 max)
{
	u64 start = 0, end = 0, covered = 0;
	u32 pages = 0, entries;

	for (entries = 0; pos.sg && covered < max && entries < key_pages; entries++) {
		u64 addr = sg_dma_address(pos.sg) + pos.off;
		u64 left = sg_dma_len(pos.sg) - pos.off, room;

		if (!entries || addr != end) {
			if (entries && offset_in_page(addr | end))
				break;
			pages += PFN_UP(end) - PFN_DOWN(start);
			if (pages == key_pages)
				break;
			start = addr;
		}
		room = ((u64)(PFN_DOWN(start) + key_pages - pages) << PAGE_SHIFT) - addr;
		end = addr + min3(left, room, max - covered);
		covered += end - addr;
		exs_verbs_pos_advance(&pos, end - addr);
		if (end - addr < left)
			break;
	}
	return covered;
}

#endif
