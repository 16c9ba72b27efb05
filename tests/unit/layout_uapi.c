// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Compiled as C11 for 64 and 32 bit, never run; see layout_compile.h. */
#include <linux/xnem.h>
#include "layout_compile.h"

UAPI_LAYOUT(ASSERT_SIZE, ASSERT_FIELD)
