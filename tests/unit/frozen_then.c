// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Version 1 as it was frozen; see test_frozen.c. */
#include "../frozen/xnemif-1.h"
#include "frozen_rows.h"

FROZEN_ROWS(frozen_then);
