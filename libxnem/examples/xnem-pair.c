// SPDX-License-Identifier: MIT
/*
 * xnem-pair - two processes exchange a buffer; the first example to read
 *
 *	xnem-pair PORT		in one VM: offers a buffer
 *	xnem-pair HOST PORT	in another one: reads it, and writes an answer to it
 *
 * Whoever owns memory makes it a region and gives its name, a cookie, away.
 * Whoever has the cookie copies from the region and to it, and the owner takes
 * no part in that.  So the owner has to be told that something was written: here
 * by the end of the connection that has brought the cookie.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "tcp.h"
#include "xnem.h"

#define LENGTH 100000

/* the one that has the memory */
static void offer(struct xnem *ctx, const char *port, char *buffer)
{
	struct xnem_region *region;
	int listener, sock;
	char end;

	snprintf(buffer, LENGTH, "a question");

	/* others may read it and write to it; it may be any memory of this process */
	must("registration", xnem_register(ctx, buffer, LENGTH, XNEM_READ | XNEM_WRITE, &region));

	listener = tcp_listen((unsigned short)atoi(port));
	must_not_fail("listening", listener >= 0);
	sock = accept(listener, NULL, NULL);
	must_not_fail("accepting", sock >= 0);
	must_not_fail("sending the cookie",
		      tcp_send(sock, xnem_region_cookie(region), XNEM_COOKIE_SIZE));
	must_not_fail("waiting for the end", !tcp_recv(sock, &end, 1));
	printf("the other side has written: %s\n", buffer);

	/* from here on nobody touches the memory any more: it may be freed */
	must("deregistration", xnem_deregister(region));
	close(sock);
	close(listener);
}

/* the one that copies, both ways */
static void use(struct xnem *ctx, const char *host, const char *port, char *buffer)
{
	struct xnem_region *region;
	struct xnem_cookie remote;
	int sock = tcp_connect(host, port);

	must_not_fail("connecting", sock >= 0);
	must_not_fail("the cookie", tcp_recv(sock, &remote, sizeof(remote)));
	/* is the other one on this host at all? */
	must("the other side", xnem_reachable(ctx, &remote));

	/* own memory needs a region, too; once for all copies */
	must("registration", xnem_register(ctx, buffer, LENGTH, XNEM_READ | XNEM_WRITE, &region));
	must("get", xnem_get(region, 0, &remote, 0, LENGTH, NULL));
	printf("the other side has: %s\n", buffer);

	snprintf(buffer, LENGTH, "an answer");
	must("put", xnem_put(region, 0, &remote, 0, LENGTH, NULL));
	must("deregistration", xnem_deregister(region));
	close(sock);
}

int main(int argc, char **argv)
{
	char *buffer = calloc(1, LENGTH);
	struct xnem *ctx;

	if (!buffer || argc < 2 || argc > 3) {
		fprintf(stderr, "usage: xnem-pair PORT\n"
				"       xnem-pair HOST PORT\n");
		return 64;
	}
	must("open", xnem_open(NULL, &ctx));
	if (argc == 2)
		offer(ctx, argv[1], buffer);
	else
		use(ctx, argv[1], argv[2], buffer);
	must("close", xnem_close(ctx));
	free(buffer);
	return 0;
}
