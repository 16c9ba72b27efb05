// SPDX-License-Identifier: GPL-2.0
/*
 * The floor: what Xen alone takes to copy between two regions that are
 * registered now, so that a copy through the whole of XNEM can be compared
 * with it in the same boot, on the same pages.
 *
 * Write "<source id> <destination id> <rounds>" to
 * /sys/kernel/debug/xnem-backend/floor (decimal; a region's id is the first
 * word of its cookie), then read: bytes of a round, operations, and ns a
 * round.  A round copies what both regions have in common, in hypercalls of 64
 * operations that are made beforehand.  Root of the backend's domain only.
 */
#include <asm/xen/hypercall.h>
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <xen/interface/grant_table.h>

#include "backend.h"

#define FLOOR_BATCH 64
#define FLOOR_ROUNDS_MAX 10000

static DEFINE_MUTEX(floor_lock);
static char floor_result[128];

static unsigned int prepare(struct gnttab_copy *ops, unsigned int max,
			    const struct xnem_region *src, const struct xnem_region *dst,
			    u64 length)
{
	struct xnem_copy_op op;
	struct xnem_walk walk;
	unsigned int n = 0;

	xnem_walk_init(&walk, src->refs, src->offset, dst->refs, dst->offset, length);
	while (n < max && xnem_walk_next(&walk, &op)) {
		ops[n].source.u.ref = op.src_ref;
		ops[n].source.domid = src->domid;
		ops[n].source.offset = op.src_off;
		ops[n].dest.u.ref = op.dst_ref;
		ops[n].dest.domid = dst->domid;
		ops[n].dest.offset = op.dst_off;
		ops[n].len = op.len;
		ops[n].flags = GNTCOPY_source_gref | GNTCOPY_dest_gref;
		ops[n++].status = GNTST_general_error;
	}
	return n;
}

static int measure(const struct xnem_region *src, const struct xnem_region *dst, u32 rounds)
{
	u64 length = min(src->length, dst->length);
	unsigned int max = src->nr_pages + dst->nr_pages;
	struct gnttab_copy *ops = kvcalloc(max, sizeof(*ops), GFP_KERNEL);
	unsigned int nr, i, round;
	int err = 0;
	u64 ns;

	if (!ops)
		return -ENOMEM;
	nr = prepare(ops, max, src, dst, length);
	ns = ktime_get_ns();
	for (round = 0; round < rounds && !err; round++) {
		/* Whoever ends one of them waits for us. */
		if (READ_ONCE(src->dying) || READ_ONCE(dst->dying) || signal_pending(current))
			err = -EINTR;
		for (i = 0; i < nr && !err; i += FLOOR_BATCH)
			err = HYPERVISOR_grant_table_op(GNTTABOP_copy, &ops[i],
							min(nr - i, (unsigned int)FLOOR_BATCH));
		cond_resched();
	}
	ns = ktime_get_ns() - ns;
	for (i = 0; i < nr && !err; i++)
		if (ops[i].status != GNTST_okay)
			err = -EIO;
	if (!err)
		scnprintf(floor_result, sizeof(floor_result), "bytes %llu\nops %u\nns %llu\n",
			  length, nr, div_u64(ns, rounds));
	kvfree(ops);
	return err;
}

static ssize_t floor_write(struct file *file, const char __user *ubuf, size_t count, loff_t *pos)
{
	struct xnem_region *src, *dst = NULL;
	u64 src_id, dst_id;
	char buf[80];
	u32 rounds;
	int err;

	if (count >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, count))
		return -EFAULT;
	buf[count] = 0;
	if (sscanf(buf, "%llu %llu %u", &src_id, &dst_id, &rounds) != 3 || !rounds ||
	    rounds > FLOOR_ROUNDS_MAX)
		return -EINVAL;

	src = xnem_region_use_any(src_id);
	if (src)
		dst = xnem_region_use_any(dst_id);
	mutex_lock(&floor_lock);
	if (!dst)
		err = -ENOENT;
	else if (!src->refs || src->segs || !dst->refs || dst->segs)
		err = -EINVAL; /* one stretch of granted pages each */
	else
		err = measure(src, dst, rounds);
	mutex_unlock(&floor_lock);
	if (src)
		xnem_region_drop(src);
	if (dst)
		xnem_region_drop(dst);
	return err ? err : count;
}

static ssize_t floor_read(struct file *file, char __user *ubuf, size_t count, loff_t *pos)
{
	ssize_t n;

	mutex_lock(&floor_lock);
	n = simple_read_from_buffer(ubuf, count, pos, floor_result, strlen(floor_result));
	mutex_unlock(&floor_lock);
	return n;
}

static const struct file_operations floor_fops = {
	.owner = THIS_MODULE,
	.read = floor_read,
	.write = floor_write,
	.llseek = default_llseek,
};

void xnem_floor_init(struct dentry *root)
{
	debugfs_create_file("floor", 0600, root, NULL, &floor_fops);
}
