/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the trace points of both modules have in common: operations in words.
 * Numbers, those of xnemif.h's XNEM_OP_*: names of enumerators mean nothing to
 * programs that read the format outside the kernel.
 */
#ifndef XNEM_TRACE_H
#define XNEM_TRACE_H

#include <linux/tracepoint.h>

/* clang-format off */
#define xnem_show_op(op)			\
	__print_symbolic(op,			\
		{ 0, "ping" },			\
		{ 1, "register" },		\
		{ 2, "deregister" },		\
		{ 3, "copy" },			\
		{ 4, "open-context" },		\
		{ 5, "close-context" },		\
		{ 16, "message" },		\
		{ 17, "cancel" },		\
		{ 18, "describe" })
/* clang-format on */

#endif /* XNEM_TRACE_H */
