/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the portable core needs from where it is built: fixed-width types,
 * little-endian access, single loads and stores, barriers.
 *
 * The core calls neither the kernel nor libc.  It is built into both modules
 * (__KERNEL__) and natively for tests and fuzzers.  A test that wants to see
 * every interleaving of two sides of a ring defines XNEM_PORT_HOOKS and
 * supplies the xnem_hook_* functions: every access to shared memory and every
 * barrier of xnem_ring.h then passes through them.
 */
#ifndef XNEM_PORT_H
#define XNEM_PORT_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>

#define xnem_le16_get(v) le16_to_cpu(v)
#define xnem_le32_get(v) le32_to_cpu(v)
#define xnem_le64_get(v) le64_to_cpu(v)
#define xnem_le16_put(v) cpu_to_le16(v)
#define xnem_le32_put(v) cpu_to_le32(v)
#define xnem_le64_put(v) cpu_to_le64(v)

/*
 * virt_*: the other side is another virtual machine, so a kernel built for
 * one CPU needs real barriers too.
 */
#define xnem_load32(p) le32_to_cpu(READ_ONCE(*(p)))
#define xnem_store32(p, v) WRITE_ONCE(*(p), cpu_to_le32(v))
#define xnem_rmb() virt_rmb()
#define xnem_wmb() virt_wmb()
#define xnem_mb() virt_mb()

#else /* !__KERNEL__ */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the native build of the core is little-endian only"
#endif
#define xnem_le16_get(v) (v)
#define xnem_le32_get(v) (v)
#define xnem_le64_get(v) (v)
#define xnem_le16_put(v) (v)
#define xnem_le32_put(v) (v)
#define xnem_le64_put(v) (v)

#ifdef XNEM_PORT_HOOKS
u32 xnem_hook_load32(const u32 *p);
void xnem_hook_store32(u32 *p, u32 v);
void xnem_hook_rmb(void);
void xnem_hook_wmb(void);
void xnem_hook_mb(void);
#define xnem_load32(p) xnem_hook_load32(p)
#define xnem_store32(p, v) xnem_hook_store32(p, v)
#define xnem_rmb() xnem_hook_rmb()
#define xnem_wmb() xnem_hook_wmb()
#define xnem_mb() xnem_hook_mb()
#else
#define xnem_load32(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define xnem_store32(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define xnem_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define xnem_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define xnem_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#endif /* __KERNEL__ */

#endif /* XNEM_PORT_H */
