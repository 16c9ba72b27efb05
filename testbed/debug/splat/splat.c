// SPDX-License-Identifier: GPL-2.0
/*
 * Goes wrong on purpose, once when it is loaded, as how= says: to see that a debug kernel
 * notices, and the testbed what it says. For testbed/selftest-debug.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

static char *how = "";
module_param(how, charp, 0);

/* Read when it runs, so that the compiler cannot know what comes. */
static volatile unsigned int beyond = 40;
static volatile char sink;

static void use_after_free(void)
{
	char *volatile p = kmalloc(100, GFP_KERNEL);

	if (!p)
		return;
	p[beyond] = 1;
	kfree(p);
	sink = p[beyond];
}

static void write_after_free(void)
{
	static void *again[64];
	char *volatile p = kmalloc(100, GFP_KERNEL);

	if (!p)
		return;
	kfree(p);
	p[beyond] = 1;
	/* SLUB looks when the object is given out again. */
	for (int i = 0; i < ARRAY_SIZE(again); i++)
		again[i] = kmalloc(100, GFP_KERNEL);
	for (int i = 0; i < ARRAY_SIZE(again); i++)
		kfree(again[i]);
}

static void vmalloc_bounds(void)
{
	char *volatile p = vmalloc(5000);

	if (!p)
		return;
	sink = p[5000 + beyond];
	vfree(p);
}

static void index(void)
{
	static char few[8];

	sink = few[beyond & 15];
}

static void count(void)
{
	static refcount_t refs = REFCOUNT_INIT(1);

	if (refcount_dec_and_test(&refs))
		refcount_inc(&refs);
}

static int lists_thread(void *unused)
{
	LIST_HEAD(head);
	struct list_head entry;

	list_add(&entry, &head);
	head.next = &head;
	list_del(&entry);
	return 0;
}

/* Whoever finds a broken list does not survive it: not insmod, which holds the module. */
static void lists(void)
{
	if (!IS_ERR(kthread_run(lists_thread, NULL, "splat")))
		msleep(1000);
}

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

static void locks(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void sleeps(void)
{
	spin_lock(&first);
	msleep(1);
	spin_unlock(&first);
}

static void leak(void)
{
	for (int i = 0; i < 8; i++)
		sink = !kmalloc(1000, GFP_KERNEL);
}

static const struct {
	const char *how;
	void (*go_wrong)(void);
} kinds[] = {
	{ "use-after-free", use_after_free },
	{ "write-after-free", write_after_free },
	{ "vmalloc-bounds", vmalloc_bounds },
	{ "index", index },
	{ "count", count },
	{ "lists", lists },
	{ "locks", locks },
	{ "sleeps", sleeps },
	{ "leak", leak },
};

static int __init splat_init(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].how, how))
			continue;
		kinds[i].go_wrong();
		return 0;
	}
	return -EINVAL;
}

static void __exit splat_exit(void)
{
}

module_init(splat_init);
module_exit(splat_exit);
MODULE_DESCRIPTION("Goes wrong on purpose");
MODULE_LICENSE("GPL");
