// SPDX-License-Identifier: MIT
/*
 * xnem-info - which XNEM devices are here, and whether they work
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "xnem.h"

enum { EXIT_WORKS = 0, EXIT_NO_DEVICE = 1, EXIT_NO_BACKEND = 2, EXIT_USAGE = 64 };

static const char usage[] =
	"usage: xnem-info [-h | --help] [-V | --version] [DEVICE...]\n"
	"Shows the XNEM devices of this guest (or those given), their fabric id, state and\n"
	"limits, and says in one line what is missing when XNEM does not work.\n"
	"\n"
	"Exit status:\n"
	"   0  each device works\n"
	"   1  no device, or one that cannot be opened\n"
	"   2  a device has no backend\n"
	"  64  wrong arguments\n";

static void show_memlock(void)
{
	struct rlimit limit;

	printf("memlock limit:  ");
	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		printf("unknown\n");
	else if (limit.rlim_cur == RLIM_INFINITY)
		printf("none\n");
	else
		printf("%ju KiB a process (ulimit -l)%s\n", (uintmax_t)limit.rlim_cur / 1024,
		       geteuid() ? "" : "; root has none");
}

static const char *hint(int err)
{
	switch (err) {
	case -ENOENT:
		if (access("/sys/module/xnem_frontend", F_OK))
			return "the module xnem-frontend is not loaded here (modprobe xnem-frontend)";
		return "no such device: attach one to this guest, in dom0 (xnem-attach)";
	case -EACCES:
		return "no permission: become a member of the group xnem, or root";
	case -ENOTTY:
		return "not an XNEM device";
	default:
		return xnem_strerror(err);
	}
}

static int show_device(const char *device)
{
	struct xnem_device_info info;
	struct xnem *ctx;
	uint64_t ping_ns;
	int err;

	printf("\ndevice:         %s\n", device);
	err = xnem_open(device, &ctx);
	if (!err) {
		err = xnem_get_info(ctx, &info);
		if (err)
			xnem_close(ctx);
	}
	if (err) {
		printf("missing:        %s (%s)\n", hint(err), xnem_errname(err));
		return EXIT_NO_DEVICE;
	}
	printf("number:         %" PRIu32 "\n", info.device_id);
	printf("state:          %s\n", info.connected ? "connected" : "no backend");
	printf("backend domain: %" PRIu32 "\n", info.backend_domid);
	printf("fabric id:      %016" PRIx64 "\n", info.fabric_id);
	printf("versions:       protocol %" PRIu32 ", interface %" PRIu32 ", features %#" PRIx64
	       "\n",
	       info.proto_version, info.abi_version, info.features);
	printf("region:         at most %" PRIu64 " KiB\n", info.max_region_bytes / 1024);
	printf("all regions:    %" PRIu64 " of %" PRIu64 " KiB in use\n", info.used_pages * 4,
	       info.max_pages * 4);
	printf("in flight:      at most %" PRIu32 " requests a context\n", info.max_inflight);
	printf("segments:       at most %" PRIu32 " a region\n", info.max_segments);
	if (info.windows)
		printf("windows:        %" PRIu32 " of %" PRIu32
		       " KiB, for regions that do not fit\n",
		       info.windows, info.window_pages * 4);
	else
		printf("windows:        none\n");
	if (info.inbox_slots)
		printf("inbox:          %" PRIu32 " messages and notifications a context\n",
		       info.inbox_slots);
	else
		printf("inbox:          none\n");
	printf("queues:         %" PRIu32 "\n", info.queues);
	if (info.connected) {
		err = xnem_ping(ctx, 5000000000, &ping_ns);
		if (!err)
			printf("ping:           %" PRIu64 " ns\n", ping_ns);
		else
			printf("missing:        the backend does not answer: %s (%s)\n",
			       xnem_strerror(err), xnem_errname(err));
	} else {
		err = -ENOTCONN;
		printf("missing:        the backend: load the module xnem-backend in domain %" PRIu32
		       "\n",
		       info.backend_domid);
	}
	xnem_close(ctx);
	return err ? EXIT_NO_BACKEND : EXIT_WORKS;
}

/* 1 before 2: no device is worse than no backend */
static int worse(int a, int b)
{
	if (!a || !b)
		return a ? a : b;
	return a < b ? a : b;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c, ret = EXIT_WORKS;
	glob_t found;

	while ((c = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			printf("xnem-info %s\n", xnem_version());
			return 0;
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	printf("libxnem:        %s\n", xnem_version());
	show_memlock();
	if (optind < argc) {
		while (optind < argc)
			ret = worse(ret, show_device(argv[optind++]));
		return ret;
	}
	if (glob("/dev/xnem[0-9]*", 0, NULL, &found)) {
		printf("missing:        %s\n", hint(-ENOENT));
		return EXIT_NO_DEVICE;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		ret = worse(ret, show_device(found.gl_pathv[i]));
	globfree(&found);
	return ret;
}
