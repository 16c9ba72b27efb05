// SPDX-License-Identifier: GPL-2.0
/*
 * Preload library for counted mode: a process that polls gives its turn away.
 *
 * With -icount QEMU runs the virtual CPUs one after the other and ends the turn of
 * one early only when it halts or executes `pause`. A process that polls (MPI does)
 * would else burn its whole turn, and the other side's answer would come a full turn
 * later. LD_PRELOAD=/usr/lib/xnem/libpause.so makes poll() and sched_yield() execute it.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int sched_yield(void)
{
	__builtin_ia32_pause();
	return syscall(SYS_sched_yield);
}

EXPORT int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	/* A poll that may sleep halts the CPU by itself; the pause costs it nothing. */
	__builtin_ia32_pause();
	return syscall(SYS_poll, fds, nfds, timeout);
}
