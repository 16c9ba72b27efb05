// SPDX-License-Identifier: GPL-2.0
/*
 * Counters in debugfs: /sys/kernel/debug/xnem/xnem<N>/counters, "key value" a
 * line; keys are only ever added.
 *
 * At rest: pinned == unpinned, granted == revoked + quarantined, and
 * quarantined, regions, contexts and inflight are 0.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "frontend.h"

static struct dentry *root;

static const char *const names[XNEM_FE_STAT_COUNT] = {
#define X(name) #name,
	XNEM_FE_STATS(X)
#undef X
};

static int counters_show(struct seq_file *m, void *unused)
{
	struct xnem_fe *fe = m->private;
	u32 inflight = 0, queues, quarantined, regions, contexts, used, max;
	enum xnem_fe_phase phase;
	unsigned int i;

	spin_lock_irq(&fe->lock);
	phase = fe->phase;
	queues = fe->nr_queues;
	if (phase != XNEM_FE_DOWN)
		for (i = 0; i < queues; i++)
			inflight += fe->queues[i].nr_rqs - fe->queues[i].nr_free;
	quarantined = fe->quarantined;
	regions = fe->nr_regions;
	contexts = fe->nr_contexts;
	used = fe->used_pages;
	max = fe->max_pages;
	spin_unlock_irq(&fe->lock);

	for (i = 0; i < XNEM_FE_STAT_COUNT; i++)
		seq_printf(m, "%s %lld\n", names[i], atomic64_read(&fe->stats[i]));
	seq_printf(m, "inflight %u\nquarantined %u\nregions %u\ncontexts %u\n", inflight,
		   quarantined, regions, contexts);
	seq_printf(m, "used_pages %u\nmax_pages %u\nqueues %u\nconnected %d\n", used, max, queues,
		   phase == XNEM_FE_UP);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

void xnem_stats_init(void)
{
	root = debugfs_create_dir("xnem", NULL);
}

void xnem_stats_exit(void)
{
	debugfs_remove_recursive(root);
}

void xnem_stats_add_device(struct xnem_fe *fe)
{
	fe->debugfs = debugfs_create_dir(fe->name, root);
	debugfs_create_file("counters", 0444, fe->debugfs, fe, &counters_fops);
}

void xnem_stats_remove_device(struct xnem_fe *fe)
{
	debugfs_remove_recursive(fe->debugfs);
}
