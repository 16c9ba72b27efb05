// SPDX-License-Identifier: GPL-2.0
/*
 * The trace points of trace.h, made here.  All else is read before: the kernel's headers for Xen
 * bring trace points of their own, which are not to be made again.
 */
#include "frontend.h"
#include "xnem_trace.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
