// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-die - rank 0 survives rank 1, which somebody kills in the middle of a message
 *
 *	mpiexec -disable-auto-cleanup -hosts g1,g2 mpi-die send|recv [BYTES]
 *
 * Rank 0 sends to rank 1, or receives from it, one message after the other (64 MiB each) until an
 * error comes, and says what error and how long after the last message.
 * Exit status of rank 0: 0 there was an error, 1 it came to the end without one.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT 10000

int main(int argc, char **argv)
{
	int sends = argc > 1 && !strcmp(argv[1], "send");
	int bytes = argc > 2 ? atoi(argv[2]) : 64 << 20;
	char *data = malloc(bytes), text[MPI_MAX_ERROR_STRING];
	int rank, length, err = MPI_SUCCESS, done = 0;
	double last;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (!data)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(data, rank, bytes);
	last = MPI_Wtime();
	while (done < LIMIT) {
		if (sends == !rank)
			err = MPI_Send(data, bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
		else
			err = MPI_Recv(data, bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD,
				       MPI_STATUS_IGNORE);
		if (err)
			break;
		last = MPI_Wtime();
		if (!done++ && !rank) {
			printf("the first is done\n");
			fflush(stdout);
		}
	}
	if (!rank) {
		MPI_Error_string(err, text, &length);
		printf("%s after %d messages and %.0f ms: %.60s\n", err ? "an error" : "NO ERROR",
		       done, (MPI_Wtime() - last) * 1e3, text);
		fflush(stdout);
	}
	/* MPI_Finalize would wait for the dead. */
	_exit(err ? 0 : 1);
}
