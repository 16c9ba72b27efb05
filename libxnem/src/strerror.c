// SPDX-License-Identifier: MIT
/*
 * What an errno means in XNEM.
 */
#include "internal.h"

static const struct {
	int err;
	const char *name;
	const char *text;
} errors[] = {
	{ 0, "OK", "success" },
#define E(name, text)             \
	{                         \
		name, #name, text \
	}
	E(ENOENT, "no such device node (is a device attached to this guest and xnem-frontend "
		  "loaded?), no such region (deregistered, or a wrong key), or nothing under way"),
	E(EACCES, "no permission for the device node (group xnem?), or the region does not allow "
		  "copies in this direction"),
	E(EPERM, "the context belongs to another process (fork?), or the region to another user"),
	E(ENODEV, "the device is gone for good (detached); open another"),
	E(ENXIO, "there is no device behind this device node"),
	E(ENOTTY, "this is not an XNEM device, or a driver too old for the call"),
	E(ENOTCONN, "the device has no backend at the moment; regions of before are gone"),
	E(EPROTONOSUPPORT, "driver and library speak different versions of the interface"),
	E(EMFILE, "too many open files in this process, or as many contexts or regions on the "
		  "device as the backend allows"),
	E(ENFILE, "too many open files in this system"),
	E(ENOMEM, "the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l) is reached, or this "
		  "process is out of memory"),
	E(ENOBUFS, "the kernel or the backend is short of memory"),
	E(ENOSPC, "the device's share of grant references is used up by regions, or by pages on "
		  "their way back"),
	E(EINVAL, "a parameter has a value that is not allowed"),
	E(E2BIG, "the region is longer than the device allows"),
	E(EFAULT, "memory is missing at this address or does not allow the access, or Xen refused "
		  "a page"),
	E(EOPNOTSUPP, "this kind of memory cannot be shared with other guests, or the backend does "
		      "not know the operation"),
	E(EMSGSIZE, "the message is longer than 64 bytes"),
	E(EBUSY, "the inbox of the receiver, or of the region's owner, is full; try again when it "
		 "has been read"),
	E(EDESTADDRREQ, "the region's owner cannot be told: it has no inbox"),
	E(EBADF, "this is no open file descriptor"),
	E(EXDEV, "the region is of another host, zone or backend, or of an earlier life of the "
		 "backend"),
	E(ESTALE, "the own region, or the own inbox, is of an earlier life of the backend; "
		  "register anew, or open another context"),
	E(ERANGE, "the range does not lie within the region"),
	E(EHOSTDOWN, "the owner of the region ended during the copy"),
	E(ECANCELED, "the copy was cancelled, or the context closed, before it had ended"),
	E(EAGAIN, "too much is under way or a temporary shortage; try again"),
	E(EPROTO, "kernel or backend gave an answer that makes no sense"),
	E(EINTR, "a signal came"),
	E(ETIMEDOUT, "not ended within the time allowed; it goes on"),
	E(EINPROGRESS, "not ended yet"),
	E(EBADR, "no such request, or its end was reported before"),
	E(EIO, "input or output failed"),
#undef E
};

XNEM_API const char *xnem_strerror(int err)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].err == err || -errors[i].err == err)
			return errors[i].text;
	return "an error that XNEM does not use";
}

XNEM_API const char *xnem_errname(int err)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].err == err || -errors[i].err == err)
			return errors[i].name;
	return "E?";
}
