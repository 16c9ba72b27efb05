// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Compiled as C++11, never run; see layout_compile.h. */
#include <xen/io/xnemif.h>
#include "layout_compile.h"

WIRE_LAYOUT(ASSERT_SIZE, ASSERT_FIELD)
