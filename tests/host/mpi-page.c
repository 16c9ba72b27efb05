// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-page - a program of one page, as a newcomer to MPI writes it
 *
 * Each rank but the first sends a message of 4 MiB to the first, which adds up what is in it and
 * sends the sum back.  Nothing in it knows of XNEM.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N (1 << 20)

int main(int argc, char **argv)
{
	int rank, size, length, wrong = 0;
	char name[MPI_MAX_PROCESSOR_NAME];
	int *data = malloc(N * sizeof(int));
	long sum, right = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &length);
	if (rank == 0) {
		for (int from = 1; from < size; from++) {
			MPI_Recv(data, N, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			sum = 0;
			for (int i = 0; i < N; i++)
				sum += data[i];
			MPI_Send(&sum, 1, MPI_LONG, from, 1, MPI_COMM_WORLD);
		}
		printf("rank 0 on %s has added up %d messages\n", name, size - 1);
	} else {
		for (int i = 0; i < N; i++) {
			data[i] = i % 1000 * rank;
			right += data[i];
		}
		MPI_Send(data, N, MPI_INT, 0, 0, MPI_COMM_WORLD);
		MPI_Recv(&sum, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong = sum != right;
		printf("rank %d on %s: the sum is %s\n", rank, name, wrong ? "WRONG" : "right");
	}
	free(data);
	MPI_Finalize();
	return wrong;
}
