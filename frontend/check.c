// SPDX-License-Identifier: GPL-2.0
/* The portable checks, built into this module. */
#include "../common/xnem_check.c"
