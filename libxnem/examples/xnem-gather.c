// SPDX-License-Identifier: MIT
/*
 * xnem-gather - many pieces of memory as one, on both sides
 *
 *	xnem-gather PORT		in one VM: owns a table of numbers
 *	xnem-gather HOST PORT		in another one: brings it over in one call
 *
 * The owner's table has columns that lie anywhere in its memory: they become one
 * region (xnem_registerv), in which one follows the other.  The reader wants
 * them elsewhere, the first as a variable, the others as rows of a matrix with
 * gaps between them: one call gathers all (xnem_getv).  Nothing is packed or
 * unpacked by either side, and each byte is copied once.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "tcp.h"
#include "xnem.h"

#define COLUMNS 5
#define ROWS 3001
/* of the reader's matrix: more than a column needs */
#define STRIDE 4096

struct head {
	uint64_t columns, rows;
};

static uint64_t value(uint64_t column, uint64_t row)
{
	return column * 1000000007 + row * row;
}

static void own(struct xnem *ctx, const char *port)
{
	struct head head = { .columns = COLUMNS, .rows = ROWS };
	struct iovec iov[1 + COLUMNS] = { { .iov_base = &head, .iov_len = sizeof(head) } };
	struct xnem_region *region;
	int listener, sock;
	char end;

	for (uint64_t c = 0; c < COLUMNS; c++) {
		uint64_t *column = malloc(ROWS * sizeof(*column));

		must_not_fail("memory", column);
		for (uint64_t r = 0; r < ROWS; r++)
			column[r] = value(c, r);
		iov[1 + c] = (struct iovec){ column, ROWS * sizeof(*column) };
	}
	/* up to max_segments of xnem_get_info(); read-only: nobody can change it */
	must("registration", xnem_registerv(ctx, iov, 1 + COLUMNS, XNEM_READ, &region));

	listener = tcp_listen((unsigned short)atoi(port));
	must_not_fail("listen", listener >= 0);
	sock = accept(listener, NULL, NULL);
	must_not_fail("accept", sock >= 0);
	must_not_fail("send", tcp_send(sock, xnem_region_cookie(region), XNEM_COOKIE_SIZE));
	must_not_fail("the other side's end", !tcp_recv(sock, &end, 1));
	must("deregistration", xnem_deregister(region));
	for (int c = 0; c < COLUMNS; c++)
		free(iov[1 + c].iov_base);
	printf("pieces=%d bytes=%zu\n", 1 + COLUMNS,
	       sizeof(head) + COLUMNS * ROWS * sizeof(uint64_t));
	close(sock);
	close(listener);
}

static void gather(struct xnem *ctx, const char *host, const char *port)
{
	uint64_t(*matrix)[STRIDE] = calloc(COLUMNS, sizeof(*matrix));
	struct head head = { 0 };
	struct iovec iov[1 + COLUMNS] = { { .iov_base = &head, .iov_len = sizeof(head) } };
	struct xnem_cookie remote;
	uint64_t done;
	int sock = tcp_connect(host, port);

	must_not_fail("memory", matrix);
	must_not_fail("connection", sock >= 0 && tcp_recv(sock, &remote, sizeof(remote)));
	for (int c = 0; c < COLUMNS; c++)
		iov[1 + c] = (struct iovec){ matrix[c], ROWS * sizeof(matrix[c][0]) };

	/* any memory of this process, registered or not: the cache sees to that */
	must("gather", xnem_getv(ctx, iov, 1 + COLUMNS, &remote, 0, &done));
	close(sock);

	must_not_fail("head", head.columns == COLUMNS && head.rows == ROWS);
	for (uint64_t c = 0; c < COLUMNS; c++)
		for (uint64_t r = 0; r < STRIDE; r++)
			if (matrix[c][r] != (r < ROWS ? value(c, r) : 0)) {
				fprintf(stderr, "xnem-gather: column %ju, row %ju is wrong\n",
					(uintmax_t)c, (uintmax_t)r);
				exit(1);
			}
	printf("bytes=%ju all right\n", (uintmax_t)done);
	free(matrix);
}

int main(int argc, char **argv)
{
	struct xnem *ctx;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: xnem-gather PORT\n"
				"       xnem-gather HOST PORT\n");
		return 64;
	}
	must("open", xnem_open(NULL, &ctx));
	if (argc == 2)
		own(ctx, argv[1]);
	else
		gather(ctx, argv[1], argv[2]);
	must("close", xnem_close(ctx));
	return 0;
}
