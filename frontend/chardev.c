// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/xnem<N>: contexts, ioctls, waiting.  See linux/xnem.h.
 */
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "frontend.h"
#include "trace.h"

/* Requests or completions moved in one go between process and kernel. */
#define CHUNK 8
#define SUBMIT_MAX 1024

static u32 unfetched(const struct xnem_ctx *ctx)
{
	return READ_ONCE(ctx->done_prod) - READ_ONCE(ctx->done_cons);
}

void xnem_ctx_wake(struct xnem_ctx *ctx)
{
	lockdep_assert_held(&ctx->fe->lock);
	/*
	 * Most often nobody sleeps: he who polls his completion page has what he
	 * waits for.  Full barrier: what has come is seen by whoever begins to
	 * sleep now; pairs with wait_event() and xnem_poll().
	 */
	if (wq_has_sleeper(&ctx->wait))
		wake_up_all(&ctx->wait);
	if (ctx->eventfd)
		xnem_eventfd_signal(ctx->eventfd);
}

void xnem_ctx_done(struct xnem_ctx *ctx, u64 user_data, u64 bytes_done, int status)
{
	struct xnem_complete *c = &ctx->done[ctx->done_prod & (XNEM_FE_DONE - 1)];

	lockdep_assert_held(&ctx->fe->lock);
	c->user_data = user_data;
	c->bytes_done = bytes_done;
	c->status = status;
	c->reserved = 0;
	/* In flight and unfetched together never exceed the quota: there is room. */
	ctx->done_prod++;
	ctx->inflight--;
	xnem_ctx_wake(ctx);
}

void xnem_ctx_cpage_done(struct xnem_ctx *ctx)
{
	lockdep_assert_held(&ctx->fe->lock);
	ctx->cpage_done++;
	ctx->inflight--;
	xnem_ctx_wake(ctx);
}

static bool all_zero(const __u64 *p, unsigned int n)
{
	__u64 bits = 0;

	while (n--)
		bits |= *p++;
	return !bits;
}

static int ioc_info(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_info arg;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (!all_zero(arg.reserved, ARRAY_SIZE(arg.reserved)))
		return -EINVAL;
	memset(&arg, 0, sizeof(arg));
	spin_lock_irq(&fe->lock);
	arg.abi_version = XNEM_ABI_VERSION;
	arg.proto_version = XNEM_PROTO_VERSION;
	arg.device_id = fe->id;
	arg.backend_domid = fe->backend;
	arg.max_pages = fe->max_pages;
	arg.used_pages = fe->used_pages;
	if (fe->phase == XNEM_FE_UP) {
		arg.connected = 1;
		arg.features = fe->features;
		arg.fabric_id = fe->fabric_id;
		arg.max_inflight = fe->ctx_quota;
		arg.max_region_bytes =
			(u64)(fe->nr_windows ? XNEM_WINDOWED_PAGES_MAX : fe->limits.region_pages)
			<< XNEM_PAGE_SHIFT;
		arg.windows = fe->nr_windows;
		arg.window_pages = fe->nr_windows ? fe->limits.window_pages : 0;
		arg.max_segments = fe->features & XNEM_FEAT_SEGMENTS ? XNEM_SEGMENTS_MAX : 1;
		arg.queues = fe->nr_queues;
	}
	arg.pages_bytes = xnem_pages_bytes(ctx);
	arg.inbox_slots = xnem_pages_inbox_slots(ctx);
	/* A next backend does not know it. */
	if (ctx->cpage && arg.inbox_slots) {
		arg.address.id = ctx->cpage->backend_id;
		arg.address.key = ctx->cpage->key;
	}
	spin_unlock_irq(&fe->lock);
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static int ioc_deregister(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_deregister arg;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved[0] || arg.reserved[1] || arg.reserved[2])
		return -EINVAL;
	return xnem_region_deregister(ctx, arg.handle);
}

/* What flags of the ioctl are called on the wire, and the feature they need. */
static const struct {
	u32 submit;
	u16 wire;
	u64 feature;
	bool copy_only;
} submit_flags[] = {
	{ XNEM_SUBMIT_CPAGE, XNEM_REQ_CPAGE, XNEM_FEAT_CPAGE, false },
	{ XNEM_SUBMIT_FENCE, XNEM_REQ_FENCE, XNEM_FEAT_FENCE, false },
	{ XNEM_SUBMIT_NOTIFY_SRC, XNEM_REQ_NOTIFY_SRC, XNEM_FEAT_NOTIFY, true },
	{ XNEM_SUBMIT_NOTIFY_DST, XNEM_REQ_NOTIFY_DST, XNEM_FEAT_NOTIFY, true },
	{ XNEM_SUBMIT_BOUNDED, XNEM_REQ_BOUNDED, XNEM_FEAT_CANCEL, true },
};

/* From the ioctl's form to the wire's, and the features it needs; 0 or -EINVAL. */
static int to_wire(const struct xnem_submit_req *from, const u8 *payload, struct xnem_request *to,
		   u64 *need)
{
	const u32 notify = XNEM_SUBMIT_NOTIFY_SRC | XNEM_SUBMIT_NOTIFY_DST;
	u32 left = from->flags;
	u16 flags = 0;
	u32 i;

	*need = 0;
	for (i = 0; i < ARRAY_SIZE(submit_flags); i++) {
		if (!(left & submit_flags[i].submit))
			continue;
		if (submit_flags[i].copy_only && from->op != XNEM_REQ_OP_COPY)
			return -EINVAL;
		left &= ~submit_flags[i].submit;
		flags |= submit_flags[i].wire;
		*need |= submit_flags[i].feature;
	}
	if (left || (from->immediate && !(from->flags & notify)) || from->reserved)
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	to->user_data = cpu_to_le64(from->user_data);
	to->flags = cpu_to_le16(flags);
	switch (from->op) {
	case XNEM_REQ_OP_PING:
		to->op = cpu_to_le16(XNEM_OP_PING);
		return 0;
	case XNEM_REQ_OP_COPY:
		to->op = cpu_to_le16(XNEM_OP_COPY);
		to->u.copy.src.id = cpu_to_le64(from->src.id);
		to->u.copy.src.key = cpu_to_le64(from->src.key);
		to->u.copy.dst.id = cpu_to_le64(from->dst.id);
		to->u.copy.dst.key = cpu_to_le64(from->dst.key);
		to->u.copy.src_offset = cpu_to_le64(from->src_offset);
		to->u.copy.dst_offset = cpu_to_le64(from->dst_offset);
		to->u.copy.length = cpu_to_le64(from->length);
		to->u.copy.immediate = cpu_to_le64(from->immediate);
		return 0;
	case XNEM_REQ_OP_MESSAGE:
		if (from->length > XNEM_MESSAGE_MAX || from->src.id || from->src.key ||
		    from->dst_offset)
			return -EINVAL;
		*need |= XNEM_FEAT_MESSAGE;
		to->op = cpu_to_le16(XNEM_OP_MESSAGE);
		to->u.msg.to.id = cpu_to_le64(from->dst.id);
		to->u.msg.to.key = cpu_to_le64(from->dst.key);
		to->u.msg.length = cpu_to_le32(from->length);
		memcpy(to->u.msg.data, payload, from->length);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Fetch what a message says; what is too long is refused later. */
static int get_payload(const struct xnem_submit_req *from, u8 *payload)
{
	if (from->op != XNEM_REQ_OP_MESSAGE || from->length > XNEM_MESSAGE_MAX)
		return 0;
	return copy_from_user(payload, u64_to_user_ptr(from->src_offset), from->length) ? -EFAULT :
											  0;
}

static int submit_one(struct xnem_ctx *ctx, const struct xnem_submit_req *from, const u8 *payload,
		      struct xnem_cached **use)
{
	struct xnem_request req;
	struct xnem_rq *rq;
	u64 need;
	int err = to_wire(from, payload, &req, &need);

	if (err)
		return err;
	if (need & ~ctx->fe->features)
		return xnem_queue_state(ctx->fe) ?: -EOPNOTSUPP;
	if ((from->flags & XNEM_SUBMIT_CPAGE) && !ctx->cpage)
		return xnem_queue_state(ctx->fe) ?: -EINVAL;
	if (ctx->inflight + unfetched(ctx) >= ctx->fe->ctx_quota)
		return xnem_queue_state(ctx->fe) ?: -EAGAIN;
	if (!xnem_cache_lives(use[0]) || !xnem_cache_lives(use[1]))
		return xnem_queue_state(ctx->fe) ?: -ENOTCONN;
	err = xnem_queue_post(ctx->fe, ctx, NULL, &req, false);
	if (err)
		return err;
	ctx->inflight++;
	/* Its end gives them back. */
	rq = &xnem_ctx_queue(ctx)->rqs[le32_to_cpu(req.id)];
	rq->use[0] = use[0];
	rq->use[1] = use[1];
	return 0;
}

static int ioc_submit(struct xnem_ctx *ctx, void __user *uarg)
{
	/* Each is filled as far as it is looked at; most often that is one request. */
	struct xnem_submit_req reqs[CHUNK] XNEM_UNINITIALIZED;
	u8 payload[CHUNK][XNEM_MESSAGE_MAX] XNEM_UNINITIALIZED;
	struct xnem_cached *use[CHUNK][2] XNEM_UNINITIALIZED;
	struct xnem_fe *fe = ctx->fe;
	struct xnem_submit arg;
	int err = 0, later = 0;
	u32 i, n, ready;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	trace_xnem_fe_submit(ctx, arg.count, 0);
	if (!all_zero(arg.reserved, ARRAY_SIZE(arg.reserved)) || !arg.count ||
	    arg.count > SUBMIT_MAX)
		return -EINVAL;
	arg.submitted = 0;
	while (!err && arg.submitted < arg.count) {
		n = min_t(u32, arg.count - arg.submitted, CHUNK);
		if (copy_from_user(reqs,
				   u64_to_user_ptr(arg.reqs + arg.submitted * sizeof(reqs[0])),
				   n * sizeof(reqs[0]))) {
			err = -EFAULT;
			break;
		}
		/* Before the lock; those up to one that cannot be fetched are started. */
		ready = xnem_cache_addresses(ctx, reqs, n, use, &later);
		for (i = 0; i < ready; i++) {
			err = get_payload(&reqs[i], payload[i]);
			if (err)
				break;
		}
		n = i;
		later = err ?: later;
		err = 0;
		spin_lock_irq(&fe->lock);
		/* What has ended by now makes room. */
		xnem_queue_poll(ctx);
		for (i = 0; i < n; i++) {
			err = submit_one(ctx, &reqs[i], payload[i], use[i]);
			if (err)
				break;
			arg.submitted++;
		}
		err = err ?: later;
		/* One notification for all, at the end; or before a lock break. */
		if (err || arg.submitted == arg.count)
			xnem_queue_flush(fe);
		spin_unlock_irq(&fe->lock);
		for (; i < ready; i++) {
			xnem_cache_unuse(use[i][0]);
			xnem_cache_unuse(use[i][1]);
		}
	}
	if (err && arg.submitted) {
		spin_lock_irq(&fe->lock);
		xnem_queue_flush(fe);
		spin_unlock_irq(&fe->lock);
		err = 0;
	}
	trace_xnem_fe_submitted(ctx, arg.submitted, err);
	/*
	 * What was started is started, even when the count cannot be written:
	 * its completions come, with the user_data the caller gave.
	 */
	if (copy_to_user(uarg, &arg, sizeof(arg)))
		return -EFAULT;
	return err;
}

/* More entries on the completion page than the process has read? It may be ahead. */
static bool cpage_news(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	return (arg->flags & XNEM_COMPLETE_CPAGE) &&
	       (s32)(READ_ONCE(ctx->cpage_done) - arg->cpage_seen) > 0;
}

/* Likewise of the inbox. */
static bool inbox_news(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	return (arg->flags & XNEM_COMPLETE_INBOX) && xnem_pages_inbox_news(ctx, arg->inbox_seen);
}

/* Can there be anything to wait for? */
static bool expects(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	return READ_ONCE(ctx->inflight) ||
	       ((arg->flags & XNEM_COMPLETE_INBOX) && READ_ONCE(ctx->inbox_live));
}

static bool enough(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	return cpage_news(ctx, arg) || inbox_news(ctx, arg) || unfetched(ctx) >= arg->min_count ||
	       !expects(ctx, arg);
}

/* Threads begin to sleep (@n: 1) or have slept (-1). */
static void count_sleeper(struct xnem_ctx *ctx, const struct xnem_get_completions *arg, int n)
{
	struct xnem_fe *fe = ctx->fe;

	spin_lock_irq(&fe->lock);
	ctx->sleepers += n;
	if (arg->flags & XNEM_COMPLETE_INBOX)
		ctx->inbox_sleepers += n;
	xnem_ctx_wants(ctx);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
}

static int wait_done(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	struct xnem_fe *fe = ctx->fe;
	int err = 0;

	spin_lock_irq(&fe->lock);
	xnem_queue_poll(ctx);
	spin_unlock_irq(&fe->lock);
	if (enough(ctx, arg) || !arg->timeout_ns)
		return 0;

	/* Whoever sleeps wants events, also for what is on a completion page. */
	count_sleeper(ctx, arg, 1);
	trace_xnem_fe_sleep(ctx, arg->min_count, 0);
	if (arg->timeout_ns < 0)
		err = wait_event_interruptible(ctx->wait, enough(ctx, arg));
	else
		err = wait_event_interruptible_hrtimeout(ctx->wait, enough(ctx, arg),
							 ns_to_ktime(arg->timeout_ns));
	trace_xnem_fe_wake(ctx, unfetched(ctx), err);
	count_sleeper(ctx, arg, -1);
	return err;
}

/* Take out up to @max completions; the number, or -EFAULT with none lost. */
static int fetch(struct xnem_ctx *ctx, u64 uaddr, u32 max)
{
	struct xnem_complete chunk[CHUNK];
	struct xnem_fe *fe = ctx->fe;
	u32 total = 0, n, i;
	int err = 0;

	mutex_lock(&ctx->fetch_lock);
	while (total < max) {
		spin_lock_irq(&fe->lock);
		n = min3(unfetched(ctx), max - total, (u32)CHUNK);
		for (i = 0; i < n; i++)
			chunk[i] = ctx->done[(ctx->done_cons + i) & (XNEM_FE_DONE - 1)];
		spin_unlock_irq(&fe->lock);
		if (!n)
			break;
		if (copy_to_user(u64_to_user_ptr(uaddr + total * sizeof(chunk[0])), chunk,
				 n * sizeof(chunk[0]))) {
			err = -EFAULT;
			break;
		}
		spin_lock_irq(&fe->lock);
		ctx->done_cons += n;
		spin_unlock_irq(&fe->lock);
		total += n;
	}
	mutex_unlock(&ctx->fetch_lock);
	return total ? total : err;
}

static int ioc_complete(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_get_completions arg;
	int waited, got;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if ((arg.flags & ~(XNEM_COMPLETE_CPAGE | XNEM_COMPLETE_INBOX)) || !arg.max_count ||
	    arg.min_count > arg.max_count)
		return -EINVAL;
	if (arg.inbox_seen && !(arg.flags & XNEM_COMPLETE_INBOX))
		return -EINVAL;
	do {
		waited = wait_done(ctx, &arg);
		got = fetch(ctx, arg.completions, arg.max_count);
		if (got < 0)
			return got;
		if (got || !arg.min_count || cpage_news(ctx, &arg) || inbox_news(ctx, &arg))
			break;
		/* A wait with a limit is not begun anew with all of it. */
		if (waited == -ERESTARTSYS)
			return arg.timeout_ns < 0 ? waited : -EINTR;
		if (!expects(ctx, &arg) && !unfetched(ctx))
			return -ENOENT;
		if (waited == -ETIME || !arg.timeout_ns)
			return -ETIME;
		/* Another thread was quicker, or submitted since we looked. */
	} while (true);
	arg.count = got;
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static int ioc_cancel(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_cancel arg;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved)
		return -EINVAL;
	spin_lock_irq(&fe->lock);
	/* What has ended by now cannot be cancelled. */
	xnem_queue_poll(ctx);
	err = xnem_queue_cancel(ctx, arg.user_data, &arg.count);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	if (err)
		return err;
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static void set_eventfd(struct xnem_ctx *ctx, struct eventfd_ctx *eventfd)
{
	struct xnem_fe *fe = ctx->fe;

	spin_lock_irq(&fe->lock);
	swap(ctx->eventfd, eventfd);
	xnem_ctx_wants(ctx);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
}

static int ioc_eventfd(struct xnem_ctx *ctx, void __user *uarg)
{
	struct eventfd_ctx *eventfd = NULL;
	struct xnem_eventfd arg;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved[0] || arg.reserved[1] || arg.reserved[2])
		return -EINVAL;
	if (arg.fd != -1) {
		eventfd = eventfd_ctx_fdget(arg.fd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	}
	set_eventfd(ctx, eventfd);
	return 0;
}

static int ioc_stats(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_stats arg;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (!all_zero(arg.reserved, ARRAY_SIZE(arg.reserved)))
		return -EINVAL;
	memset(&arg, 0, sizeof(arg));
	spin_lock_irq(&fe->lock);
	xnem_queue_poll(ctx);
	arg.requests = ctx->nr_requests;
	arg.completions = ctx->nr_completions;
	arg.errors = ctx->nr_errors;
	arg.bytes = ctx->nr_bytes;
	spin_unlock_irq(&fe->lock);
	arg.inbox = xnem_pages_inbox_cons(ctx);
	xnem_cache_stats(ctx, &arg);
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long xnem_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	struct xnem_ctx *ctx = file->private_data;
	void __user *arg = (void __user *)uarg;

	if (current->mm != ctx->mm)
		return -EPERM;
	/*
	 * From a device that is gone completions of before can still be
	 * fetched, and it can be waited for that memory is given back.
	 */
	if (READ_ONCE(ctx->fe->removed) && cmd != XNEM_IOC_COMPLETE && cmd != XNEM_IOC_DEREGISTER &&
	    cmd != XNEM_IOC_STATS)
		return -ENODEV;
	switch (cmd) {
	case XNEM_IOC_INFO:
		return ioc_info(ctx, arg);
	case XNEM_IOC_REGISTER:
		return xnem_ioc_register(ctx, arg);
	case XNEM_IOC_DEREGISTER:
		return ioc_deregister(ctx, arg);
	case XNEM_IOC_SUBMIT:
		return ioc_submit(ctx, arg);
	case XNEM_IOC_COMPLETE:
		return ioc_complete(ctx, arg);
	case XNEM_IOC_CANCEL:
		return ioc_cancel(ctx, arg);
	case XNEM_IOC_EVENTFD:
		return ioc_eventfd(ctx, arg);
	case XNEM_IOC_STATS:
		return ioc_stats(ctx, arg);
	case XNEM_IOC_CACHE_GET:
		return xnem_ioc_cache_get(ctx, arg);
	case XNEM_IOC_CACHE_PUT:
		return xnem_ioc_cache_put(ctx, arg);
	case XNEM_IOC_CACHE_LIMIT:
		return xnem_ioc_cache_limit(ctx, arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t xnem_poll(struct file *file, poll_table *wait)
{
	struct xnem_ctx *ctx = file->private_data;
	struct xnem_fe *fe = ctx->fe;
	__poll_t mask = 0;

	poll_wait(file, &ctx->wait, wait);
	smp_mb(); /* waiting before looking; pairs with xnem_ctx_wake() */
	/* He who polled will do so again, and may sleep in between without telling. */
	if (!READ_ONCE(ctx->polled)) {
		spin_lock_irq(&fe->lock);
		ctx->polled = true;
		xnem_ctx_wants(ctx);
		xnem_queue_flush(fe);
		spin_unlock_irq(&fe->lock);
	}
	if (unfetched(ctx) || xnem_pages_poll(ctx))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(fe->removed))
		mask |= EPOLLERR | EPOLLHUP;
	return mask;
}

static int xnem_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct xnem_ctx *ctx = file->private_data;

	if (current->mm != ctx->mm)
		return -EPERM;
	if (vma->vm_pgoff || !(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	return xnem_pages_mmap(ctx, vma);
}

static int xnem_open(struct inode *inode, struct file *file)
{
	struct xnem_fe *fe = container_of(file->private_data, struct xnem_fe, misc);
	struct xnem_ctx *ctx;
	int err;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return -ENOMEM;
	ctx->done = kvcalloc(XNEM_FE_DONE, sizeof(*ctx->done), GFP_KERNEL);
	if (!ctx->done) {
		err = -ENOMEM;
		goto fail;
	}
	kref_init(&ctx->ref);
	ctx->fe = fe;
	ctx->mm = current->mm;
	ctx->tag = from_kuid(&init_user_ns, current_uid());
	INIT_LIST_HEAD(&ctx->regions);
	INIT_LIST_HEAD(&ctx->pending);
	idr_init(&ctx->handles);
	xnem_cache_init(ctx);
	mutex_init(&ctx->handle_lock);
	mutex_init(&ctx->fetch_lock);
	init_waitqueue_head(&ctx->wait);
	/*
	 * Whole, as it is found by its number from now on.  The limit can change
	 * with the backend; the protocol's own is checked there.
	 */
	err = xa_alloc(&fe->numbers, &ctx->number, ctx,
		       XA_LIMIT(0, fe->limits.contexts ? fe->limits.contexts - 1 : 0), GFP_KERNEL);
	if (err) {
		err = err == -EBUSY ? -EMFILE : err;
		goto fail;
	}

	mmgrab(ctx->mm);
	/* misc_open() holds off misc_deregister(): the device is still there. */
	xnem_fe_get(fe);
	spin_lock_irq(&fe->lock);
	list_add_tail(&ctx->entry, &fe->contexts);
	fe->nr_contexts++;
	spin_unlock_irq(&fe->lock);
	file->private_data = ctx;
	return nonseekable_open(inode, file);

fail:
	kvfree(ctx->done);
	kfree(ctx);
	return err;
}

static int xnem_release(struct inode *inode, struct file *file)
{
	struct xnem_ctx *ctx = file->private_data;

	/* Nobody waits any more. */
	ctx->polled = false;
	set_eventfd(ctx, NULL);
	xnem_ctx_close(ctx);
	return 0;
}

static const struct file_operations xnem_fops = {
	.owner = THIS_MODULE,
	.open = xnem_open,
	.release = xnem_release,
	.unlocked_ioctl = xnem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = xnem_poll,
	.mmap = xnem_mmap,
};

int xnem_chardev_add(struct xnem_fe *fe)
{
	fe->misc.minor = MISC_DYNAMIC_MINOR;
	fe->misc.name = fe->name;
	fe->misc.fops = &xnem_fops;
	fe->misc.mode = 0660;
	fe->misc.parent = &fe->xdev->dev;
	return misc_register(&fe->misc);
}

void xnem_chardev_remove(struct xnem_fe *fe)
{
	misc_deregister(&fe->misc);
}
