// SPDX-License-Identifier: GPL-2.0
/*
 * Workers: one thread a CPU, each with the queues it serves.
 */
#include <linux/cpu.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "backend.h"
#include "trace.h"

static unsigned int workers;
module_param(workers, uint, 0444);
MODULE_PARM_DESC(workers, "worker threads (0: one a CPU)");

static unsigned int spin_us = 10;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "microseconds to look for more work before sleeping, 0 .. 1000");

static struct xnem_worker **all;
unsigned int xnem_nr_workers;
static DEFINE_MUTEX(assign_lock);

void xnem_worker_kick(struct xnem_worker *w)
{
	/* What was done before is seen by who clears it: pairs with worker_main(). */
	atomic_set_release(&w->kicked, 1);
	wake_up(&w->wait);
}

void xnem_workers_kick_all(void)
{
	unsigned int i;

	for (i = 0; i < xnem_nr_workers; i++)
		xnem_worker_kick(all[i]);
}

static bool anything_new(struct xnem_worker *w)
{
	struct xnem_be_queue *q;

	if (atomic_read(&w->kicked) || !llist_empty(&w->released) || xnem_large_pending())
		return true;
	list_for_each_entry(q, &w->queues, entry)
		if (!q->broken && xnem_ring_look(&q->header->sq) != q->sq_cons)
			return true;
	return false;
}

/* Look for a while without asking for events: they cost both ends more. */
static bool spin(struct xnem_worker *w)
{
	u64 until;

	/* What came during the last pass needs no clock. */
	if (anything_new(w))
		return true;
	if (!READ_ONCE(spin_us))
		return false;
	until = ktime_get_ns() + (u64)min(READ_ONCE(spin_us), 1000u) * 1000;
	do {
		cpu_relax();
		if (anything_new(w))
			return true;
	} while (ktime_get_ns() < until);
	return false;
}

/*
 * Ask every queue for an event.  Returns true when the worker may sleep:
 * every ring was looked at once more after the asking.
 */
static bool arm_all(struct xnem_worker *w)
{
	struct xnem_be_queue *q;
	bool sleep = true;

	list_for_each_entry(q, &w->queues, entry) {
		if (q->broken)
			continue;
		if (!xnem_ring_arm(&q->header->sq, q->sq_cons))
			sleep = false;
		else
			q->stats.sleeps++;
	}
	return sleep;
}

static void show_all(struct xnem_worker *w)
{
	struct xnem_be_queue *q;

	list_for_each_entry(q, &w->queues, entry)
		xnem_queue_show(q);
}

static int worker_main(void *arg)
{
	struct xnem_worker *w = arg;
	struct xnem_be_queue *q;

	while (!kthread_should_stop()) {
		bool work = false;
		bool sleep = false;

		mutex_lock(&w->lock);
		/* Full barrier: cleared before the rings are looked at. */
		atomic_xchg(&w->kicked, 0);
		xnem_copy_end_dying(w);
		xnem_windows_expire();
		list_for_each_entry(q, &w->queues, entry) {
			work |= xnem_ctx_unpark(q);
			work |= xnem_queue_take(q);
			q->looked_at = w->bytes;
			xnem_queue_eoi(q);
		}
		/* Small copies first: they wait for one chunk at most. */
		work |= xnem_copy_run(w);
		/* And who sleeps until one has ended does not wait for that chunk, too. */
		if (xnem_large_pending())
			show_all(w);
		work |= xnem_large_run(w);
		work |= xnem_large_reap(w);
		work |= xnem_region_reap(w);
		show_all(w);
		if (!work && !spin(w))
			sleep = arm_all(w);
		mutex_unlock(&w->lock);

		if (!sleep) {
			cond_resched();
			continue;
		}
		trace_xnem_be_sleep(w);
		if (xnem_windows_pending())
			wait_event_idle_timeout(
				w->wait, atomic_read(&w->kicked) || kthread_should_stop(), HZ / 10);
		else
			wait_event_idle(w->wait, atomic_read(&w->kicked) || kthread_should_stop());
		trace_xnem_be_wake(w);
	}
	return 0;
}

static void worker_free(struct xnem_worker *w)
{
	unsigned int i;

	if (!w)
		return;
	for (i = 0; i < XNEM_INLINE_REFS; i++)
		if (w->desc[i])
			__free_page(w->desc[i]);
	kvfree(w);
}

static struct xnem_worker *worker_start(unsigned int index, unsigned int cpu)
{
	struct xnem_worker *w = kvzalloc(sizeof(*w), GFP_KERNEL);
	unsigned int i;

	if (!w)
		return NULL;
	w->index = index;
	mutex_init(&w->lock);
	INIT_LIST_HEAD(&w->queues);
	INIT_LIST_HEAD(&w->active);
	init_llist_head(&w->released);
	init_llist_head(&w->finished);
	init_waitqueue_head(&w->wait);
	for (i = 0; i < XNEM_INLINE_REFS; i++) {
		w->desc[i] = alloc_page(GFP_KERNEL);
		if (!w->desc[i])
			goto fail;
	}
	w->task = kthread_create(worker_main, w, "xnem-worker/%u", index);
	if (IS_ERR(w->task))
		goto fail;
	kthread_bind(w->task, cpu);
	wake_up_process(w->task);
	return w;
fail:
	worker_free(w);
	return NULL;
}

int xnem_workers_start(void)
{
	unsigned int want = workers ? workers : num_online_cpus();
	unsigned int cpu = cpumask_first(cpu_online_mask);

	all = kcalloc(want, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	cpus_read_lock();
	for (xnem_nr_workers = 0; xnem_nr_workers < want; xnem_nr_workers++) {
		all[xnem_nr_workers] = worker_start(xnem_nr_workers, cpu);
		if (!all[xnem_nr_workers])
			break;
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	}
	cpus_read_unlock();
	if (xnem_nr_workers < want) {
		xnem_workers_stop();
		return -ENOMEM;
	}
	return 0;
}

void xnem_workers_stop(void)
{
	unsigned int i;

	/* All of them before any is freed: one kicks another. */
	for (i = 0; i < xnem_nr_workers; i++)
		kthread_stop(all[i]->task);
	while (xnem_nr_workers)
		worker_free(all[--xnem_nr_workers]);
	kfree(all);
	all = NULL;
}

void xnem_worker_assign(struct xnem_be_queue *q)
{
	struct xnem_worker *w;
	unsigned int i;

	mutex_lock(&assign_lock);
	w = all[0];
	for (i = 1; i < xnem_nr_workers; i++)
		if (all[i]->nr_queues < w->nr_queues)
			w = all[i];
	w->nr_queues++;
	mutex_unlock(&assign_lock);
	q->worker = w;
}

void xnem_worker_unassign(struct xnem_be_queue *q)
{
	mutex_lock(&assign_lock);
	q->worker->nr_queues--;
	mutex_unlock(&assign_lock);
}

void xnem_worker_serve(struct xnem_be_queue *q)
{
	struct xnem_worker *w = q->worker;

	mutex_lock(&w->lock);
	list_add_tail(&q->entry, &w->queues);
	mutex_unlock(&w->lock);
	xnem_worker_kick(w);
}

void xnem_worker_remove(struct xnem_be_queue *q)
{
	struct xnem_worker *w = q->worker;

	mutex_lock(&w->lock);
	list_del_init(&q->entry);
	if (!list_empty(&q->turn))
		list_del_init(&q->turn);
	if (q == &q->dev->queues[0])
		xnem_windows_close(q->dev);
	xnem_ctx_abandon_all(q);
	mutex_unlock(&w->lock);
	/* Other workers may be copying for it. */
	xnem_large_wait(q);
	mutex_lock(&w->lock);
	xnem_large_reap(w);
	q->stats.dropped += q->in_flight;
	mutex_unlock(&w->lock);
	xnem_worker_unassign(q);
}
