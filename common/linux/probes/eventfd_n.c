// SPDX-License-Identifier: GPL-2.0
#include <linux/eventfd.h>
void probe(struct eventfd_ctx *eventfd)
{
	eventfd_signal(eventfd, 1);
}
