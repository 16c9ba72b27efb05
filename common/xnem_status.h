/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a status of the wire is called by Linux: the frontend says it in
 * completions, the library reads statuses on the completion page itself.
 */
#ifndef XNEM_STATUS_H
#define XNEM_STATUS_H

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif
#include <xen/io/xnemif.h>

/** A negative errno; 0 for XNEM_ST_OK, -EPROTO for what is no status. */
static inline int xnem_status_errno(unsigned int status)
{
	switch (status) {
	case XNEM_ST_OK:
		return 0;
	case XNEM_ST_INVALID:
		return -EINVAL;
	case XNEM_ST_UNSUPPORTED:
		return -EOPNOTSUPP;
	case XNEM_ST_COOKIE:
		return -ENOENT;
	case XNEM_ST_ACCESS:
		return -EACCES;
	case XNEM_ST_TAG:
		return -EPERM;
	case XNEM_ST_RANGE:
		return -ERANGE;
	case XNEM_ST_LIMIT:
		return -EMFILE;
	case XNEM_ST_NOMEM:
		return -ENOMEM;
	case XNEM_ST_FAULT:
		return -EFAULT;
	case XNEM_ST_PEER_GONE:
		return -EHOSTDOWN;
	case XNEM_ST_CANCELLED:
		return -ECANCELED;
	case XNEM_ST_AGAIN:
		return -EAGAIN;
	case XNEM_ST_CONTEXT:
		return -EDESTADDRREQ;
	case XNEM_ST_BUSY:
		return -EBUSY;
	default:
		return -EPROTO;
	}
}

#endif /* XNEM_STATUS_H */
