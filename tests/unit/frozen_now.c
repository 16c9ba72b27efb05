// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Version 1 as the header of today has it; see test_frozen.c. */
#include <xen/io/xnemif.h>
#include "frozen_rows.h"

FROZEN_ROWS(frozen_now);
