// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/xnem<N>: contexts, ioctls, waiting.  See linux/xnem.h.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "frontend.h"

/* Requests or completions moved in one go between process and kernel. */
#define CHUNK 8
#define SUBMIT_MAX 1024

static u32 unfetched(const struct xnem_ctx *ctx)
{
	return READ_ONCE(ctx->done_prod) - READ_ONCE(ctx->done_cons);
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
	wake_up_all(&ctx->wait);
}

void xnem_ctx_cpage_done(struct xnem_ctx *ctx)
{
	lockdep_assert_held(&ctx->fe->lock);
	ctx->cpage_done++;
	ctx->inflight--;
	wake_up_all(&ctx->wait);
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
		arg.max_region_bytes = (u64)fe->limits.region_pages << XNEM_PAGE_SHIFT;
		arg.max_segments = 1;
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

static int ioc_register(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_register arg;
	int err;

	BUILD_BUG_ON(XNEM_REG_READ != XNEM_ACCESS_READ || XNEM_REG_WRITE != XNEM_ACCESS_WRITE);
	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (!all_zero(arg.reserved, ARRAY_SIZE(arg.reserved)) || (arg.flags & ~XNEM_REG_ANY_USER) ||
	    arg.nr_segments || arg.reserved0 || !arg.access ||
	    (arg.access & ~(XNEM_REG_READ | XNEM_REG_WRITE)))
		return -EINVAL;
	arg.handle = 0;
	arg.limit = 0;
	memset(&arg.cookie, 0, sizeof(arg.cookie));
	err = xnem_region_register(ctx, &arg);
	if (copy_to_user(uarg, &arg, sizeof(arg))) {
		/* Nobody would know its handle. */
		if (!err)
			xnem_region_deregister(ctx, arg.handle);
		return -EFAULT;
	}
	return err;
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

/* From the ioctl's form to the wire's; 0 or -EINVAL. */
static int to_wire(const struct xnem_submit_req *from, struct xnem_request *to)
{
	if ((from->flags & ~XNEM_SUBMIT_CPAGE) || from->immediate || from->reserved)
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	to->user_data = cpu_to_le64(from->user_data);
	to->flags = cpu_to_le16(from->flags & XNEM_SUBMIT_CPAGE ? XNEM_REQ_CPAGE : 0);
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
		return 0;
	default:
		return -EINVAL;
	}
}

static int submit_one(struct xnem_ctx *ctx, const struct xnem_submit_req *from)
{
	struct xnem_request req;
	int err = to_wire(from, &req);

	if (err)
		return err;
	if ((from->flags & XNEM_SUBMIT_CPAGE) && !ctx->cpage)
		return xnem_queue_state(ctx->fe) ?: -EINVAL;
	if (ctx->inflight + unfetched(ctx) >= ctx->fe->ctx_quota)
		return xnem_queue_state(ctx->fe) ?: -EAGAIN;
	err = xnem_queue_post(ctx->fe, ctx, NULL, &req, false);
	if (!err)
		ctx->inflight++;
	return err;
}

static int ioc_submit(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_submit_req reqs[CHUNK];
	struct xnem_fe *fe = ctx->fe;
	struct xnem_submit arg;
	int err = 0;
	u32 i, n;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
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
		spin_lock_irq(&fe->lock);
		/* What has ended by now makes room. */
		xnem_queue_poll(ctx);
		for (i = 0; i < n && !err; i++) {
			err = submit_one(ctx, &reqs[i]);
			if (!err)
				arg.submitted++;
		}
		/* One notification for all, at the end; or before a lock break. */
		if (err || arg.submitted == arg.count)
			xnem_queue_flush(fe);
		spin_unlock_irq(&fe->lock);
	}
	if (err && arg.submitted) {
		spin_lock_irq(&fe->lock);
		xnem_queue_flush(fe);
		spin_unlock_irq(&fe->lock);
		err = 0;
	}
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

static bool enough(struct xnem_ctx *ctx, const struct xnem_get_completions *arg)
{
	return cpage_news(ctx, arg) || unfetched(ctx) >= arg->min_count ||
	       !READ_ONCE(ctx->inflight);
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
	spin_lock_irq(&fe->lock);
	xnem_queue_want_events(xnem_ctx_queue(ctx));
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	if (arg->timeout_ns < 0)
		err = wait_event_interruptible(ctx->wait, enough(ctx, arg));
	else
		err = wait_event_interruptible_hrtimeout(ctx->wait, enough(ctx, arg),
							 ns_to_ktime(arg->timeout_ns));
	spin_lock_irq(&fe->lock);
	xnem_queue_unwant_events(xnem_ctx_queue(ctx));
	spin_unlock_irq(&fe->lock);
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
	if (arg.inbox_seen || (arg.flags & ~XNEM_COMPLETE_CPAGE) || !arg.max_count ||
	    arg.min_count > arg.max_count)
		return -EINVAL;
	do {
		waited = wait_done(ctx, &arg);
		got = fetch(ctx, arg.completions, arg.max_count);
		if (got < 0)
			return got;
		if (got || !arg.min_count || cpage_news(ctx, &arg))
			break;
		/* A wait with a limit is not begun anew with all of it. */
		if (waited == -ERESTARTSYS)
			return arg.timeout_ns < 0 ? waited : -EINTR;
		if (!READ_ONCE(ctx->inflight) && !unfetched(ctx))
			return -ENOENT;
		if (waited == -ETIME || !arg.timeout_ns)
			return -ETIME;
		/* Another thread was quicker, or submitted since we looked. */
	} while (true);
	arg.count = got;
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
	if (READ_ONCE(ctx->fe->removed) && cmd != XNEM_IOC_COMPLETE && cmd != XNEM_IOC_DEREGISTER)
		return -ENODEV;
	switch (cmd) {
	case XNEM_IOC_INFO:
		return ioc_info(ctx, arg);
	case XNEM_IOC_REGISTER:
		return ioc_register(ctx, arg);
	case XNEM_IOC_DEREGISTER:
		return ioc_deregister(ctx, arg);
	case XNEM_IOC_SUBMIT:
		return ioc_submit(ctx, arg);
	case XNEM_IOC_COMPLETE:
		return ioc_complete(ctx, arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t xnem_poll(struct file *file, poll_table *wait)
{
	struct xnem_ctx *ctx = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &ctx->wait, wait);
	if (unfetched(ctx))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(ctx->fe->removed))
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
	/* The limit can change with the backend; the protocol's own is checked there. */
	err = ida_alloc_max(&fe->numbers, fe->limits.contexts ? fe->limits.contexts - 1 : 0,
			    GFP_KERNEL);
	if (err < 0) {
		err = err == -ENOSPC ? -EMFILE : err;
		goto fail;
	}
	ctx->number = err;
	kref_init(&ctx->ref);
	ctx->fe = fe;
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	ctx->tag = from_kuid(&init_user_ns, current_uid());
	INIT_LIST_HEAD(&ctx->regions);
	INIT_LIST_HEAD(&ctx->pending);
	idr_init(&ctx->handles);
	mutex_init(&ctx->handle_lock);
	mutex_init(&ctx->fetch_lock);
	init_waitqueue_head(&ctx->wait);

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
	xnem_ctx_close(file->private_data);
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
