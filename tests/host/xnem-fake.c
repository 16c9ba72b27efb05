// SPDX-License-Identifier: MIT
/*
 * xnem-fake - a device for LD_PRELOAD, to try programs without Xen
 *
 *	XNEM_FAKE=/tmp/table XNEM_DEVICE=/dev/null LD_PRELOAD=xnem-fake.so program
 *
 * The ioctls on the character device /dev/null are answered here as the
 * kernel's documentation says; copies go between the processes that share the
 * file XNEM_FAKE, by process_vm_readv.  For developing programs: it proves
 * nothing about the drivers.  One context a process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/xnem.h>

#define MAX_REGIONS 1024
#define MAX_INFLIGHT 64
#define MAX_BYTES (64ull << 20)
#define FABRIC 0xfab51cull

struct region {
	int pid;
	uint32_t access;
	uint64_t key, addr, len;
};

struct table {
	uint64_t next_key;
	struct region region[MAX_REGIONS];
};

static struct table *table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct xnem_submit_req queue[MAX_INFLIGHT];
static struct xnem_complete done[MAX_INFLIGHT];
static unsigned int nr_queue, nr_done, nr_busy;
static pthread_t worker;
static bool working;
static pid_t opener;

static void attach(void)
{
	const char *path = getenv("XNEM_FAKE");
	int fd = open(path ? path : "/tmp/xnem-fake", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*table)))
		abort();
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		abort();
	close(fd);
	opener = getpid();
}

static bool readable(uint64_t addr, uint64_t len, bool write)
{
	struct iovec to, from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	char sink[1];

	/* touch a byte of each page through the kernel, which says if it can */
	for (uint64_t p = addr; p < addr + len; p = (p & ~4095ull) + 4096) {
		from.iov_base = (void *)(uintptr_t)p;
		from.iov_len = 1;
		to = (struct iovec){ .iov_base = sink, .iov_len = 1 };
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
			return false;
		if (write && process_vm_writev(getpid(), &to, 1, &from, 1, 0) != 1)
			return false;
	}
	return true;
}

static int do_register(struct xnem_register *r)
{
	struct rlimit limit;
	unsigned int i;

	if (r->reserved[0] || r->reserved[1] || r->reserved[2] || r->nr_segments || r->reserved0 ||
	    !r->length || r->addr + r->length < r->addr || !r->access || r->access & ~3u ||
	    r->flags & ~1u)
		return -EINVAL;
	if (r->length > MAX_BYTES)
		return -E2BIG;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	r->limit = 0;
	if (geteuid() && r->length > limit.rlim_cur) {
		r->limit = 1;
		return -ENOMEM;
	}
	if (!readable(r->addr, r->length, r->access & XNEM_REG_WRITE))
		return -EFAULT;
	for (i = 0; i < MAX_REGIONS; i++) {
		int none = 0;

		if (table->region[i].pid && kill(table->region[i].pid, 0))
			table->region[i].pid = 0;
		if (__atomic_compare_exchange_n(&table->region[i].pid, &none, getpid(), false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			break;
	}
	if (i == MAX_REGIONS)
		return -EMFILE;
	table->region[i].addr = r->addr;
	table->region[i].len = r->length;
	table->region[i].access = r->access;
	table->region[i].key = __atomic_add_fetch(&table->next_key, 0x1000001, __ATOMIC_SEQ_CST);
	r->handle = i + 1;
	r->cookie.id = i + 1;
	r->cookie.key = table->region[i].key;
	return 0;
}

static struct region *find(const struct xnem_uapi_cookie *c)
{
	struct region *r;

	if (!c->id || c->id > MAX_REGIONS)
		return NULL;
	r = &table->region[c->id - 1];
	return r->pid && r->key == c->key ? r : NULL;
}

static int copy(const struct xnem_submit_req *q, uint64_t *bytes)
{
	struct region *src = find(&q->src), *dst = find(&q->dst);
	static char bounce[1 << 20];

	if (!src || !dst)
		return -ENOENT;
	if (!(src->access & XNEM_REG_READ) || !(dst->access & XNEM_REG_WRITE))
		return -EACCES;
	if (q->src_offset > src->len || q->length > src->len - q->src_offset ||
	    q->dst_offset > dst->len || q->length > dst->len - q->dst_offset)
		return -ERANGE;
	while (*bytes < q->length) {
		uint64_t n = q->length - *bytes;
		struct iovec here = { .iov_base = bounce }, there;

		if (n > sizeof(bounce))
			n = sizeof(bounce);
		here.iov_len = n;
		there.iov_base = (void *)(uintptr_t)(src->addr + q->src_offset + *bytes);
		there.iov_len = n;
		if (process_vm_readv(src->pid, &here, 1, &there, 1, 0) != (ssize_t)n)
			return errno == ESRCH ? -EHOSTDOWN : -EFAULT;
		there.iov_base = (void *)(uintptr_t)(dst->addr + q->dst_offset + *bytes);
		if (process_vm_writev(dst->pid, &here, 1, &there, 1, 0) != (ssize_t)n)
			return errno == ESRCH ? -EHOSTDOWN : -EFAULT;
		*bytes += n;
	}
	return 0;
}

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct xnem_submit_req q;
		uint64_t bytes = 0;
		int status = 0;

		if (!nr_queue) {
			pthread_cond_wait(&ended, &lock);
			continue;
		}
		q = queue[0];
		memmove(queue, queue + 1, --nr_queue * sizeof(q));
		nr_busy++;
		pthread_mutex_unlock(&lock);
		if (q.op == XNEM_REQ_OP_COPY)
			status = copy(&q, &bytes);
		pthread_mutex_lock(&lock);
		nr_busy--;
		done[nr_done++] = (struct xnem_complete){
			.user_data = q.user_data,
			.bytes_done = bytes,
			.status = status,
		};
		pthread_cond_broadcast(&ended);
	}
	return NULL;
}

static int do_submit(struct xnem_submit *s)
{
	const struct xnem_submit_req *q = (const void *)(uintptr_t)s->reqs;
	int err = 0;

	if (s->reserved[0] || s->reserved[1] || !s->count || s->count > 1024)
		return -EINVAL;
	if (!readable(s->reqs, s->count * sizeof(*q), false))
		return -EFAULT;
	pthread_mutex_lock(&lock);
	if (!working) {
		pthread_create(&worker, NULL, work, NULL);
		working = true;
	}
	for (s->submitted = 0; s->submitted < s->count && !err; q++) {
		if (q->op > XNEM_REQ_OP_COPY || q->flags || q->immediate || q->reserved)
			err = -EINVAL;
		else if (nr_queue + nr_done + nr_busy >= MAX_INFLIGHT)
			err = -EAGAIN;
		else
			queue[nr_queue++] = *q, s->submitted++;
	}
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	return s->submitted ? 0 : err;
}

static int do_complete(struct xnem_get_completions *g)
{
	struct timespec until;
	int err = 0;

	if (g->inbox_seen || (g->flags & ~XNEM_COMPLETE_CPAGE) || !g->max_count ||
	    g->min_count > g->max_count)
		return -EINVAL;
	clock_gettime(CLOCK_REALTIME, &until);
	if (g->timeout_ns > 0) {
		uint64_t ns = until.tv_nsec + (uint64_t)g->timeout_ns;

		until.tv_sec += ns / 1000000000;
		until.tv_nsec = ns % 1000000000;
	}
	pthread_mutex_lock(&lock);
	while (nr_done < g->min_count && (nr_queue || nr_busy) && g->timeout_ns && !err)
		err = g->timeout_ns < 0 ? pthread_cond_wait(&ended, &lock) :
					  pthread_cond_timedwait(&ended, &lock, &until);
	g->count = nr_done < g->max_count ? nr_done : g->max_count;
	if (!g->count && g->min_count) {
		err = nr_queue || nr_busy ? -ETIME : -ENOENT;
	} else if (g->count && !readable(g->completions, g->count * sizeof(done[0]), true)) {
		err = -EFAULT;
	} else {
		memcpy((void *)(uintptr_t)g->completions, done, g->count * sizeof(done[0]));
		nr_done -= g->count;
		memmove(done, done + g->count, nr_done * sizeof(done[0]));
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int do_deregister(const struct xnem_deregister *d)
{
	if (d->reserved[0] || d->reserved[1] || d->reserved[2] || !d->handle ||
	    d->handle > MAX_REGIONS || table->region[d->handle - 1].pid != getpid())
		return -EINVAL;
	pthread_mutex_lock(&lock);
	while (nr_queue || nr_busy)
		pthread_cond_wait(&ended, &lock);
	pthread_mutex_unlock(&lock);
	table->region[d->handle - 1].key = 0;
	table->region[d->handle - 1].pid = 0;
	return 0;
}

static int do_info(struct xnem_info *i)
{
	for (unsigned int k = 0; k < 8; k++)
		if (i->reserved[k])
			return -EINVAL;
	*i = (struct xnem_info){
		.abi_version = XNEM_ABI_VERSION,
		.fabric_id = FABRIC,
		.connected = 1,
		.max_inflight = MAX_INFLIGHT,
		.max_region_bytes = MAX_BYTES,
		.max_pages = 1 << 16,
	};
	return 0;
}

static int fake(unsigned long call, void *arg)
{
	if (opener != getpid())
		return -EPERM;
	if (call != XNEM_IOC_INFO && call != XNEM_IOC_REGISTER && call != XNEM_IOC_DEREGISTER &&
	    call != XNEM_IOC_SUBMIT && call != XNEM_IOC_COMPLETE)
		return -ENOTTY;
	if ((uintptr_t)arg < 4096)
		return -EFAULT;
	switch (call) {
	case XNEM_IOC_INFO:
		return do_info(arg);
	case XNEM_IOC_REGISTER:
		return do_register(arg);
	case XNEM_IOC_DEREGISTER:
		return do_deregister(arg);
	case XNEM_IOC_SUBMIT:
		return do_submit(arg);
	default:
		return do_complete(arg);
	}
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long call, ...)
{
	int (*real)(int fd, unsigned long call, void *arg);
	struct stat st;
	va_list args;
	void *arg;
	int ret;

	va_start(args, call);
	arg = va_arg(args, void *);
	va_end(args);
	if (fstat(fd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
		return real(fd, call, arg);
	}
	if (!table)
		attach();
	ret = fake(call, arg);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return 0;
}
