// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
struct xenbus_driver probe = { .name = "probe" };
