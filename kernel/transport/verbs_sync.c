// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that device and processor both use while it is mapped. Where DMA goes through
 * bounce buffers (swiotlb: encrypted guests) or past the caches, each must be told what the
 * other wrote. Software devices use the memory itself.
 */
#include "verbs_internal.h"

/* Zeroed memory @at for both, @len bytes. */
int exs_verbs_mem_map(struct exs_verbs_ep *v, struct exs_verbs_mem *mem, void *at, u32 len)
{
	struct ib_device *dev = v->id->device;

	mem->at = at;
	mem->len = len;
	mem->dma = ib_dma_map_single(dev, at, len, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(dev, mem->dma) ? -ENOMEM : 0;
}

void exs_verbs_mem_unmap(struct exs_verbs_ep *v, struct exs_verbs_mem *mem)
{
	ib_dma_unmap_single(v->id->device, mem->dma, mem->len, DMA_BIDIRECTIONAL);
}

typedef void (*exs_sync_fn)(struct ib_device *dev, u64 addr, size_t len,
			    enum dma_data_direction dir);

static void exs_verbs_sync(struct exs_verbs_ep *v, struct exs_verbs_pos pos, u64 len,
			   enum dma_data_direction dir, exs_sync_fn fn)
{
	while (len && pos.sg) {
		u64 addr = sg_dma_address(pos.sg) + pos.off;
		u32 part = min_t(u64, len, sg_dma_len(pos.sg) - pos.off);

		/* An IOMMU may have joined separate pages. */
		part = min_t(u32, part, PAGE_SIZE - offset_in_page(addr));
		fn(v->id->device, addr, part, dir);
		exs_verbs_pos_advance(&pos, part);
		len -= part;
	}
}

/* exs_ep_ops.read_ring */
exs_hot
void exs_verbs_read_ring(struct exs_ep *ep, u32 off, u32 len)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_verbs_pos pos = { v->ring_sgt.sgl, 0 };

	if (!v->ring_mapped || ib_uses_virt_dma(v->id->device))
		return;
	exs_verbs_pos_advance(&pos, off);
	exs_verbs_sync(v, pos, len, DMA_FROM_DEVICE, ib_dma_sync_single_for_cpu);
}

/* The device has stopped writing: after this the ring is read without syncing. */
void exs_verbs_ring_over(struct exs_verbs_ep *v)
{
	spin_lock(&v->ep.conn->lock);
	exs_verbs_read_ring(&v->ep, 0, v->ring_size);
	spin_unlock(&v->ep.conn->lock);
}

static void exs_verbs_sync_xfer(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len,
				exs_sync_fn fn)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);

	if (!x->map.mapped || ib_uses_virt_dma(v->id->device))
		return;
	exs_verbs_sync(v, exs_verbs_seek(&x->map, off), len, exs_xfer_dir(x), fn);
}

/*
 * exs_ep_ops.writes: the cache may have the first and the last line as they were before the
 * device wrote there.
 */
exs_hot
void exs_verbs_writes(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len)
{
	exs_verbs_sync_xfer(ep, x, off, len, ib_dma_sync_single_for_cpu);
}

/* exs_ep_ops.wrote */
exs_hot
void exs_verbs_wrote(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len)
{
	exs_verbs_sync_xfer(ep, x, off, len, ib_dma_sync_single_for_device);
}
