// SPDX-License-Identifier: GPL-2.0
/*
 * halo - the exchange of borders that grid programs spend their communication on
 *
 *	halo [EDGE:VALUES:ITERATIONS...]
 *
 * A periodic grid of cells, VALUES doubles each, in two of its three dimensions cut
 * into as many parts as there are ranks; a rank has EDGE^3 cells and a layer of its
 * neighbours' around them.  In each iteration a rank sends its four borders and gets four:
 * two are contiguous, two are vectors with a piece for each layer.  Prints, for
 * each set of arguments, the time of an iteration (the slowest rank's, the best of
 * TRIALS) as a JSON record a line.  Before that each value that arrives is
 * checked, for CHECKED iterations.  Exit status: 0 all were right, 1 not.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define TRIALS 3
#define CHECKED 2

struct grid {
	int edge, values;
	/* parts of the whole and which of them is ours, in z and in y */
	int dims[2], at[2];
	int down, up, left, right;
	double *cells;
	MPI_Datatype z_face, y_face;
	MPI_Comm comm;
};

/* Index of a cell's first value; z and y from 0 to edge + 1, the layers around included. */
static size_t cell(const struct grid *g, int z, int y, int x)
{
	return (((size_t)z * (g->edge + 2) + y) * g->edge + x) * g->values;
}

/* What the cell at a place of the whole grid holds in an iteration. */
static double expected(const struct grid *g, int z, int y, int x, int value, int iteration)
{
	int all_z = g->dims[0] * g->edge, all_y = g->dims[1] * g->edge;
	double place = ((z + all_z) % all_z * (double)all_y + (y + all_y) % all_y) * g->edge + x;

	return place * g->values + value + iteration * 0.25;
}

static void fill(struct grid *g, int iteration)
{
	for (int z = 1; z <= g->edge; z++)
		for (int y = 1; y <= g->edge; y++)
			for (int x = 0; x < g->edge; x++)
				for (int v = 0; v < g->values; v++)
					g->cells[cell(g, z, y, x) + v] = expected(
						g, g->at[0] * g->edge + z - 1,
						g->at[1] * g->edge + y - 1, x, v, iteration);
}

/* Values of the layers around that are wrong; corners take no part. */
static long wrong(const struct grid *g, int iteration)
{
	long bad = 0;

	for (int side = 0; side < 4; side++)
		for (int i = 1; i <= g->edge; i++)
			for (int x = 0; x < g->edge; x++)
				for (int v = 0; v < g->values; v++) {
					int end = side % 2 ? g->edge + 1 : 0;
					int z = side < 2 ? end : i, y = side < 2 ? i : end;

					bad += g->cells[cell(g, z, y, x) + v] !=
					       expected(g, g->at[0] * g->edge + z - 1,
							g->at[1] * g->edge + y - 1, x, v,
							iteration);
				}
	return bad;
}

static void exchange(struct grid *g)
{
	double *c = g->cells;
	int n = g->edge;
	MPI_Request r[8];

	MPI_Irecv(c + cell(g, 0, 1, 0), 1, g->z_face, g->down, 1, g->comm, &r[0]);
	MPI_Irecv(c + cell(g, n + 1, 1, 0), 1, g->z_face, g->up, 2, g->comm, &r[1]);
	MPI_Irecv(c + cell(g, 1, 0, 0), 1, g->y_face, g->left, 3, g->comm, &r[2]);
	MPI_Irecv(c + cell(g, 1, n + 1, 0), 1, g->y_face, g->right, 4, g->comm, &r[3]);
	MPI_Isend(c + cell(g, n, 1, 0), 1, g->z_face, g->up, 1, g->comm, &r[4]);
	MPI_Isend(c + cell(g, 1, 1, 0), 1, g->z_face, g->down, 2, g->comm, &r[5]);
	MPI_Isend(c + cell(g, 1, n, 0), 1, g->y_face, g->right, 3, g->comm, &r[6]);
	MPI_Isend(c + cell(g, 1, 1, 0), 1, g->y_face, g->left, 4, g->comm, &r[7]);
	MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
}

static long measure(struct grid *g, int iterations, int rank, int ranks)
{
	long face = (long)g->edge * g->edge * g->values, bad = 0, all;
	double best = 0;

	g->cells = malloc(cell(g, g->edge + 2, 0, 0) * sizeof(double));
	if (!g->cells) {
		fprintf(stderr, "halo: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Type_contiguous(face, MPI_DOUBLE, &g->z_face);
	MPI_Type_vector(g->edge, g->edge * g->values, (g->edge + 2) * g->edge * g->values,
			MPI_DOUBLE, &g->y_face);
	MPI_Type_commit(&g->z_face);
	MPI_Type_commit(&g->y_face);

	for (int i = 0; i < CHECKED; i++) {
		fill(g, i);
		exchange(g);
		bad += wrong(g, i);
	}
	for (int trial = 0; trial < TRIALS; trial++) {
		double t, slowest;

		MPI_Barrier(g->comm);
		t = MPI_Wtime();
		for (int i = 0; i < iterations; i++)
			exchange(g);
		t = (MPI_Wtime() - t) / iterations;
		MPI_Allreduce(&t, &slowest, 1, MPI_DOUBLE, MPI_MAX, g->comm);
		if (!trial || slowest < best)
			best = slowest;
	}
	MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, g->comm);
	if (!rank) {
		printf("{\"ranks\": %d, \"edge\": %d, \"values\": %d, \"bytes\": %ld, \"iterations\": %d, "
		       "\"usec\": %.3f, \"verified\": %s}\n",
		       ranks, g->edge, g->values, face * (long)sizeof(double), iterations,
		       best * 1e6, all ? "false" : "true");
		fflush(stdout);
	}
	MPI_Type_free(&g->z_face);
	MPI_Type_free(&g->y_face);
	free(g->cells);
	return all;
}

int main(int argc, char **argv)
{
	static char *usual[] = { "halo", "32:8:20", "64:8:10", "64:32:4" };
	const int periodic[2] = { 1, 1 };
	struct grid g = { 0 };
	int rank, ranks;
	long bad = 0;

	MPI_Init(&argc, &argv);
	if (argc < 2) {
		argc = sizeof(usual) / sizeof(*usual);
		argv = usual;
	}
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, g.dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, g.dims, periodic, 0, &g.comm);
	MPI_Comm_rank(g.comm, &rank);
	MPI_Cart_coords(g.comm, rank, 2, g.at);
	MPI_Cart_shift(g.comm, 0, 1, &g.down, &g.up);
	MPI_Cart_shift(g.comm, 1, 1, &g.left, &g.right);
	for (int a = 1; a < argc; a++) {
		int iterations;

		if (sscanf(argv[a], "%d:%d:%d", &g.edge, &g.values, &iterations) != 3 ||
		    g.edge < 1 || g.values < 1 || iterations < 1) {
			fprintf(stderr, "usage: halo [EDGE:VALUES:ITERATIONS...]\n");
			MPI_Abort(MPI_COMM_WORLD, 64);
		}
		bad += measure(&g, iterations, rank, ranks);
	}
	MPI_Comm_free(&g.comm);
	MPI_Finalize();
	return bad ? 1 : 0;
}
