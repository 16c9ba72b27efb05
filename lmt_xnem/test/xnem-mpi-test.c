// SPDX-License-Identifier: MIT
/*
 * Large messages of every kind, between ranks 0 and 1 (others take part in the
 * collectives); each is checked byte by byte.
 *
 *	mpiexec -hosts g1,g2 xnem-mpi-test [-l] [-n COUNT] [NAME...]
 *
 * Prints TAP on rank 0.  -l lists the tests, -n is how many messages are
 * outstanding where many are.  Tests that are not run unless named:
 *
 *	huge    a message above 2 GiB
 *	death   rank 1 dies in the middle (mpiexec -disable-auto-cleanup)
 *	gone    rank 0's guest loses its device (as root; its first device)
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define W MPI_COMM_WORLD
#define MIB (1 << 20)
#define LENGTH(a_) ((int)(sizeof(a_) / sizeof((a_)[0])))

static int rank, size, peer;
/* what went wrong here, in the test that runs */
static int bad;
static char bad_text[200];
static int many = 200;

#define EXPECT(cond_, ...)                                                 \
	do {                                                               \
		if (!(cond_) && !bad++)                                    \
			snprintf(bad_text, sizeof(bad_text), __VA_ARGS__); \
	} while (0)

static void *need(size_t len)
{
	void *p = malloc(len);

	if (!p) {
		fprintf(stderr, "no memory for %zu bytes\n", len);
		MPI_Abort(W, 2);
	}
	return p;
}

static unsigned char byte_of(size_t i, unsigned int seed)
{
	return (unsigned char)((i * 2654435761u >> 13) + (i >> 7) + seed * 37);
}

static void fill(void *buf, size_t len, unsigned int seed)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(i, seed);
}

static void check(const void *buf, size_t len, unsigned int seed, const char *what)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++) {
		EXPECT(p[i] == byte_of(i, seed), "%s: byte %zu of %zu is wrong", what, i, len);
		if (bad)
			return;
	}
}

static void check_status(const MPI_Status *s, int source, int tag, int bytes)
{
	int n;

	MPI_Get_count(s, MPI_BYTE, &n);
	EXPECT(s->MPI_SOURCE == source && s->MPI_TAG == tag && n == bytes,
	       "status: source %d tag %d count %d", s->MPI_SOURCE, s->MPI_TAG, n);
}

/* ---- one to one ------------------------------------------------------------ */

static void test_sizes(void)
{
	static const int sizes[] = { 1,	     1000,  16383,	16384,	 32767,	     32768,
				     32769,  65536, 100001,	131072,	 131073,     262144,
				     999999, MIB,   MIB + 4095, 4 * MIB, 6 * MIB + 1 };
	char *buf = need(7 * MIB);

	for (int i = 0; i < LENGTH(sizes); i++) {
		for (int off = 0; off < 4096; off += 1365) {
			MPI_Status s;

			if (rank == 0) {
				fill(buf + off, sizes[i], i);
				MPI_Send(buf + off, sizes[i], MPI_BYTE, 1, i, W);
				memset(buf + off, 0, sizes[i]);
				MPI_Recv(buf + off, sizes[i], MPI_BYTE, 1, i, W, &s);
				check_status(&s, 1, i, sizes[i]);
				check(buf + off, sizes[i], i, "back");
			} else {
				MPI_Recv(buf + 4095 - off, 6 * MIB + 1, MPI_BYTE, 0, i, W, &s);
				check_status(&s, 0, i, sizes[i]);
				check(buf + 4095 - off, sizes[i], i, "there");
				MPI_Send(buf + 4095 - off, sizes[i], MPI_BYTE, 0, i, W);
			}
		}
	}
	free(buf);
}

static void test_modes(void)
{
	int n = MIB + 77;
	char *buf = need(n), *attach = need(3 * (size_t)n);
	MPI_Request req;

	if (rank == 0) {
		MPI_Buffer_attach(attach, 3 * n);
		fill(buf, n, 1);
		MPI_Ssend(buf, n, MPI_BYTE, 1, 1, W);
		fill(buf, n, 2);
		MPI_Bsend(buf, n, MPI_BYTE, 1, 2, W);
		/* a buffered send leaves the buffer free at once */
		fill(buf, n, 3);
		MPI_Issend(buf, n, MPI_BYTE, 1, 3, W, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		fill(buf, n, 4);
		MPI_Ibsend(buf, n, MPI_BYTE, 1, 4, W, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		fill(buf, n, 5);
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, W, MPI_STATUS_IGNORE);
		MPI_Rsend(buf, n, MPI_BYTE, 1, 5, W);
		fill(buf, n, 6);
		MPI_Send_init(buf, n, MPI_BYTE, 1, 6, W, &req);
		for (int i = 0; i < 5; i++) {
			MPI_Start(&req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			fill(buf, n, 7 + i);
		}
		MPI_Request_free(&req);
		void *p;
		int got;

		MPI_Buffer_detach(&p, &got);
	} else {
		for (int i = 1; i < 5; i++) {
			MPI_Recv(buf, n, MPI_BYTE, 0, i, W, MPI_STATUS_IGNORE);
			check(buf, n, i, "mode");
		}
		MPI_Irecv(buf, n, MPI_BYTE, 0, 5, W, &req);
		MPI_Send(NULL, 0, MPI_BYTE, 0, 5, W);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		check(buf, n, 5, "ready");
		MPI_Recv_init(buf, n, MPI_BYTE, 0, 6, W, &req);
		for (int i = 0; i < 5; i++) {
			MPI_Start(&req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			check(buf, n, 6 + i, "persistent");
		}
		MPI_Request_free(&req);
	}
	free(attach);
	free(buf);
}

/** Both sides send at the same time. */
static void test_both_ways(void)
{
	int n = 3 * MIB + 5;
	char *out = need(n), *in = need(n);

	fill(out, n, rank);
	for (int i = 0; i < 10; i++) {
		memset(in, 0, n);
		MPI_Sendrecv(out, n, MPI_BYTE, peer, 0, in, n, MPI_BYTE, peer, 0, W,
			     MPI_STATUS_IGNORE);
		check(in, n, peer, "sendrecv");
	}
	MPI_Sendrecv_replace(out, n, MPI_BYTE, peer, 0, peer, 0, W, MPI_STATUS_IGNORE);
	check(out, n, peer, "replace");
	free(out);
	free(in);
}

static void test_probe(void)
{
	int n = MIB, flag;
	char *buf = need(n);
	MPI_Message m;
	MPI_Status s;

	if (rank == 0) {
		for (int i = 0; i < 4; i++) {
			fill(buf, n - i, i);
			MPI_Send(buf, n - i, MPI_BYTE, 1, i, W);
		}
	} else {
		MPI_Probe(0, MPI_ANY_TAG, W, &s);
		check_status(&s, 0, 0, n);
		MPI_Recv(buf, n, MPI_BYTE, 0, 0, W, &s);
		check(buf, n, 0, "probe");
		do
			MPI_Iprobe(MPI_ANY_SOURCE, 1, W, &flag, &s);
		while (!flag);
		check_status(&s, 0, 1, n - 1);
		MPI_Recv(buf, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &s);
		check_status(&s, 0, 1, n - 1);
		check(buf, n - 1, 1, "iprobe");
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, W, &m, &s);
		check_status(&s, 0, 2, n - 2);
		MPI_Mrecv(buf, n, MPI_BYTE, &m, &s);
		check(buf, n - 2, 2, "mprobe");
		do
			MPI_Improbe(0, 3, W, &flag, &m, &s);
		while (!flag);
		MPI_Request req;

		MPI_Imrecv(buf, n, MPI_BYTE, &m, &req);
		MPI_Wait(&req, &s);
		check_status(&s, 0, 3, n - 3);
		check(buf, n - 3, 3, "imrecv");
	}
	free(buf);
}

static void test_truncate(void)
{
	int n = MIB, room = MIB / 2 + 3;
	char *buf = need(n);
	MPI_Status s;
	MPI_Message m;
	int err, class, count;

	MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
	for (int i = 0; i < 4; i++) {
		if (rank == 0) {
			fill(buf, n, i);
			MPI_Send(buf, n, MPI_BYTE, 1, i, W);
			continue;
		}
		memset(buf, 0x55, n);
		switch (i) {
		case 0:
			err = MPI_Recv(buf, room, MPI_BYTE, 0, i, W, &s);
			break;
		case 1:
			MPI_Probe(0, i, W, &s);
			err = MPI_Recv(buf, room, MPI_BYTE, 0, i, W, &s);
			break;
		case 2:
			MPI_Mprobe(0, i, W, &m, &s);
			err = MPI_Mrecv(buf, room, MPI_BYTE, &m, &s);
			break;
		default:
			err = MPI_Recv(NULL, 0, MPI_BYTE, 0, i, W, &s);
		}
		MPI_Error_class(err, &class);
		MPI_Get_count(&s, MPI_BYTE, &count);
		EXPECT(class == MPI_ERR_TRUNCATE, "%d: class %d", i, class);
		if (i < 3) {
			EXPECT(count == room, "%d: count %d", i, count);
			check(buf, room, i, "truncated");
			EXPECT(buf[room] == 0x55, "%d: more than there is room for", i);
		}
	}
	MPI_Comm_set_errhandler(W, MPI_ERRORS_ARE_FATAL);
	free(buf);
}

static void test_cancel(void)
{
	int n = MIB, flag;
	char *buf = need(n);
	MPI_Request req;
	MPI_Status s;

	for (int i = 0; i < 20; i++) {
		if (rank == 0) {
			fill(buf, n, i);
			MPI_Isend(buf, n, MPI_BYTE, 1, 1, W, &req);
			MPI_Cancel(&req);
			MPI_Wait(&req, &s);
			MPI_Test_cancelled(&s, &flag);
			EXPECT(flag, "%d: not cancelled", i);
			/* one that is matched already, or will be meanwhile */
			MPI_Isend(buf, n, MPI_BYTE, 1, 2, W, &req);
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, W, MPI_STATUS_IGNORE);
			MPI_Cancel(&req);
			MPI_Wait(&req, &s);
			MPI_Test_cancelled(&s, &flag);
			MPI_Send(&flag, 1, MPI_INT, 1, 4, W);
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, W, MPI_STATUS_IGNORE);
		} else {
			MPI_Irecv(buf, n, MPI_BYTE, 0, 2, W, &req);
			MPI_Send(NULL, 0, MPI_BYTE, 0, 3, W);
			MPI_Recv(&flag, 1, MPI_INT, 0, 4, W, MPI_STATUS_IGNORE);
			if (flag)
				MPI_Cancel(&req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			if (!flag)
				check(buf, n, i, "not cancelled");
			MPI_Iprobe(0, 1, W, &flag, MPI_STATUS_IGNORE);
			EXPECT(!flag, "%d: a cancelled message is there", i);
			MPI_Send(NULL, 0, MPI_BYTE, 0, 5, W);
		}
	}
	free(buf);
}

/** Many sends wait for one late receiver; then in both directions at once. */
static void test_outstanding(void)
{
	/* more than most users may pin, and less than the guests have */
	int n = MIB, pool = many < 40 ? many : 40;
	char *out = need((size_t)n * pool), *in = need(n);
	MPI_Request *reqs = need(2 * many * sizeof(*reqs));

	/* the same on both sides, so that what arrives can be compared with it */
	for (int i = 0; i < pool; i++)
		fill(out + (size_t)i * n, n, i);
	if (rank == 0) {
		for (int i = 0; i < many; i++)
			MPI_Isend(out + (size_t)(i % pool) * n, n, MPI_BYTE, 1, i, W, &reqs[i]);
		MPI_Send(NULL, 0, MPI_BYTE, 1, many, W);
		MPI_Waitall(many, reqs, MPI_STATUSES_IGNORE);
	} else {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, many, W, MPI_STATUS_IGNORE);
		for (int i = many - 1; i >= 0; i--) {
			memset(in, 0, n);
			MPI_Recv(in, n, MPI_BYTE, 0, i, W, MPI_STATUS_IGNORE);
			EXPECT(!memcmp(in, out + (size_t)(i % pool) * n, n), "late: %d", i);
		}
	}
	for (int i = 0; i < many; i++)
		MPI_Isend(out + (size_t)(i % pool) * n, n, MPI_BYTE, peer, i, W, &reqs[i]);
	for (int i = 0; i < many; i++) {
		memset(in, 0, n);
		MPI_Recv(in, n, MPI_BYTE, peer, i, W, MPI_STATUS_IGNORE);
		EXPECT(!memcmp(in, out + (size_t)(i % pool) * n, n), "both: %d", i);
	}
	MPI_Waitall(many, reqs, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
	free(reqs);
}

/** Requests that are let go of before they have ended. */
static void test_request_free(void)
{
	int n = MIB;
	char *buf = need(n);
	MPI_Request req;

	fill(buf, n, 3);
	if (rank == 0) {
		MPI_Isend(buf, n, MPI_BYTE, 1, 0, W, &req);
		MPI_Request_free(&req);
	}
	if (rank == 1) {
		memset(buf, 0, n);
		MPI_Recv(buf, n, MPI_BYTE, 0, 0, W, MPI_STATUS_IGNORE);
		check(buf, n, 3, "freed");
		MPI_Send(NULL, 0, MPI_BYTE, 0, 1, W);
	} else {
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, W, MPI_STATUS_IGNORE);
	}
	free(buf);
}

/** The same addresses, other memory: what a cache has of it is old. */
static void test_remap(void)
{
	size_t n = 2 * MIB;
	char *at = NULL, *buf;

	for (int i = 0; i < 20; i++) {
		buf = mmap(at, n, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
		at = buf;
		if (rank == 0) {
			fill(buf, n, i);
			MPI_Send(buf, n, MPI_BYTE, 1, 0, W);
		} else {
			MPI_Recv(buf, n, MPI_BYTE, 0, 0, W, MPI_STATUS_IGNORE);
			check(buf, n, i, "mapped again");
		}
		munmap(buf, n);
	}
	/* and without system calls of the program's own */
	for (int i = 0; i < 20; i++) {
		buf = need(n + i * 4096);
		if (rank == 0) {
			fill(buf, n, i);
			MPI_Send(buf, n, MPI_BYTE, 1, 0, W);
		} else {
			MPI_Recv(buf, n, MPI_BYTE, 0, 0, W, MPI_STATUS_IGNORE);
			check(buf, n, i, "allocated again");
		}
		free(buf);
	}
}

/* ---- datatypes ---------------------------------------------------------------- */

/** Sends @count of @type and receives as bytes, and the other way, and as itself. */
static void derived(MPI_Datatype type, int count, const char *name)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	int n, position = 0;
	char *there, *back, *packed;
	size_t span;

	MPI_Type_commit(&type);
	MPI_Type_size(type, &n);
	n *= count;
	MPI_Type_get_extent(type, &lb, &extent);
	MPI_Type_get_true_extent(type, &true_lb, &true_extent);
	span = extent * count + true_extent;
	there = need(span);
	back = need(span);
	packed = need(n);
	for (int way = 0; way < 3; way++) {
		fill(there, span, way);
		memset(back, 0x11, span);
		position = 0;
		MPI_Pack(there, count, type, packed, n, &position, W);
		if (rank == 0) {
			if (way == 0)
				MPI_Send(packed, n, MPI_BYTE, 1, way, W);
			else
				MPI_Send(there, count, type, 1, way, W);
		} else if (way == 1) {
			char *got = need(n);

			MPI_Recv(got, n, MPI_BYTE, 0, way, W, MPI_STATUS_IGNORE);
			EXPECT(!memcmp(got, packed, n), "%s to bytes", name);
			free(got);
		} else {
			char *got = need(n);
			MPI_Status s;
			int c;

			MPI_Recv(back, count, type, 0, way, W, &s);
			MPI_Get_count(&s, type, &c);
			EXPECT(c == count, "%s: count %d", name, c);
			position = 0;
			MPI_Pack(back, count, type, got, n, &position, W);
			EXPECT(!memcmp(got, packed, n), "%s way %d", name, way);
			/* what lies between stays as it is */
			memset(got, 0x11, n);
			position = 0;
			MPI_Unpack(got, n, &position, back, count, type, W);
			for (size_t i = 0; i < span; i++)
				EXPECT(back[i] == 0x11, "%s way %d: a gap at %zu was written", name,
				       way, i);
			free(got);
		}
	}
	MPI_Type_free(&type);
	free(there);
	free(back);
	free(packed);
}

static void test_datatypes(void)
{
	MPI_Datatype t, u;
	int lengths[500], places[500];

	MPI_Type_vector(1000, 100, 150, MPI_INT, &t);
	derived(t, 1, "vector of 400 bytes");
	MPI_Type_vector(10, 100000, 130000, MPI_BYTE, &t);
	derived(t, 2, "vector of 100000 bytes");
	MPI_Type_vector(50000, 1, 3, MPI_SHORT, &t);
	derived(t, 3, "vector of 2 bytes");
	for (int i = 0; i < 500; i++) {
		lengths[i] = 1 + i % 700;
		places[i] = 1000 * ((i * 7) % 500);
	}
	MPI_Type_indexed(500, lengths, places, MPI_DOUBLE, &t);
	derived(t, 1, "indexed, out of order");
	MPI_Type_contiguous(12345, MPI_DOUBLE, &t);
	derived(t, 4, "contiguous");
	MPI_Type_create_resized(MPI_INT, 0, 16, &u);
	MPI_Type_contiguous(30000, u, &t);
	derived(t, 2, "resized");
	MPI_Type_free(&u);
	int two_lengths[] = { 1, 3 };
	MPI_Aint two_places[] = { 8, 24 };
	MPI_Datatype two_types[] = { MPI_DOUBLE, MPI_INT };

	MPI_Type_create_struct(2, two_lengths, two_places, two_types, &u);
	MPI_Type_contiguous(20000, u, &t);
	derived(t, 1, "struct");
	MPI_Type_free(&u);
	int sizes[] = { 600, 700 }, subsizes[] = { 300, 333 }, starts[] = { 111, 222 };

	MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t);
	derived(t, 1, "subarray");
}

/** A type that is freed while the message is under way; a short message to a vector. */
static void test_datatype_life(void)
{
	int n = 100 * 5000;
	char *buf = need(2 * n);
	MPI_Datatype t;
	MPI_Request req;
	MPI_Status s;

	MPI_Type_vector(5000, 100, 200, MPI_BYTE, &t);
	MPI_Type_commit(&t);
	fill(buf, 2 * n, 9);
	if (rank == 0) {
		MPI_Isend(buf, 1, t, 1, 0, W, &req);
		MPI_Type_free(&t);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Send(buf, n / 2 + 50, MPI_BYTE, 1, 1, W);
	} else {
		memset(buf, 0, 2 * n);
		MPI_Irecv(buf, 1, t, 0, 0, W, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		for (int i = 0; i < 2 * n; i++)
			EXPECT((unsigned char)buf[i] == (i % 200 < 100 ? byte_of(i, 9) : 0),
			       "byte %d", i);
		MPI_Recv(buf, 1, t, 0, 1, W, &s);
		int count;

		MPI_Get_elements(&s, t, &count);
		EXPECT(count == n / 2 + 50, "%d elements", count);
		MPI_Type_free(&t);
	}
	free(buf);
}

/* ---- more of MPI ------------------------------------------------------------------ */

static void test_intercomm(void)
{
	int n = MIB;
	char *buf = need(n);
	MPI_Comm own, inter;

	MPI_Comm_split(W, rank % 2, rank, &own);
	MPI_Intercomm_create(own, 0, W, !(rank % 2), 5, &inter);
	if (rank == 0) {
		fill(buf, n, 5);
		MPI_Send(buf, n, MPI_BYTE, 0, 0, inter);
	} else if (rank == 1) {
		MPI_Recv(buf, n, MPI_BYTE, 0, 0, inter, MPI_STATUS_IGNORE);
		check(buf, n, 5, "intercommunicator");
	}
	MPI_Comm_free(&inter);
	MPI_Comm_free(&own);
	free(buf);
}

static void test_collectives(void)
{
	int n = 300000;
	int *all = need((size_t)n * size * sizeof(int)),
	    *mine = need((size_t)n * size * sizeof(int));

	for (int i = 0; i < n; i++)
		mine[i] = rank + i;
	MPI_Allreduce(mine, all, n, MPI_INT, MPI_SUM, W);
	for (int i = 0; i < n; i++)
		EXPECT(all[i] == size * (size - 1) / 2 + size * i, "allreduce %d", i);
	MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, W);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i += 97)
			EXPECT(all[r * n + i] == r + i, "allgather %d %d", r, i);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			mine[r * n + i] = rank * 1000 + r + i;
	MPI_Alltoall(mine, n, MPI_INT, all, n, MPI_INT, W);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i += 97)
			EXPECT(all[r * n + i] == r * 1000 + rank + i, "alltoall %d %d", r, i);
	MPI_Request req;

	if (rank == 0)
		fill(all, (size_t)n * 4, 8);
	MPI_Ibcast(all, n, MPI_INT, 0, W, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	check(all, (size_t)n * 4, 8, "ibcast");
	free(all);
	free(mine);
}

static void *talk(void *arg)
{
	int me = (int)(long)arg, n = 200000 + me;
	char *out = need(n), *in = need(n);

	fill(out, n, me);
	for (int i = 0; i < 50; i++) {
		MPI_Request reqs[2];
		MPI_Status statuses[2];

		memset(in, 0, n);
		MPI_Irecv(in, n, MPI_BYTE, peer, me, W, &reqs[0]);
		MPI_Isend(out, n, MPI_BYTE, peer, me, W, &reqs[1]);
		MPI_Waitall(2, reqs, statuses);
		for (int k = 0; k < n; k += 61)
			if (((unsigned char *)in)[k] != byte_of(k, me))
				return "wrong byte";
	}
	free(out);
	free(in);
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];
	void *said;

	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, talk, (void *)i);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &said);
		EXPECT(!said, "thread %d: %s", i, (char *)said);
	}
}

/** What is between messages keeps its order. */
static void test_order(void)
{
	int n = MIB, small;
	char *buf = need(n);
	MPI_Request req;

	for (int i = 0; i < 20; i++) {
		if (rank == 0) {
			fill(buf, n, i);
			MPI_Isend(buf, n, MPI_BYTE, 1, 0, W, &req);
			MPI_Send(&i, 1, MPI_INT, 1, 0, W);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
		} else {
			MPI_Status s;
			int count;

			MPI_Recv(buf, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &s);
			MPI_Get_count(&s, MPI_BYTE, &count);
			EXPECT(count == n, "the small one came first");
			check(buf, n, i, "large");
			MPI_Recv(&small, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &s);
			EXPECT(small == i, "small");
		}
	}
	free(buf);
}

/** @len bytes of address space: the same 64 MiB again and again. */
static char *repeated(size_t len)
{
	const size_t piece = 64 * MIB;
	int fd = memfd_create("xnem-mpi-test", 0);
	char *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || p == MAP_FAILED || ftruncate(fd, piece))
		MPI_Abort(W, 2);
	for (size_t at = 0; at < len; at += piece)
		if (mmap(p + at, len - at < piece ? len - at : piece, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			MPI_Abort(W, 2);
	close(fd);
	return p;
}

/** Above 2^31 bytes, in guests that have not as much memory. */
static void test_huge(void)
{
	/* not a multiple of the 64 MiB: its end stands beside what the round before left */
	int blocks = 2200;
	size_t n = (size_t)blocks * MIB;
	char *buf = repeated(n);
	MPI_Count count;
	MPI_Datatype t;
	MPI_Status s;

	MPI_Type_contiguous(MIB, MPI_BYTE, &t);
	MPI_Type_commit(&t);
	if (rank == 0) {
		fill(buf, 64 * MIB, 3);
		MPI_Send(buf, blocks, t, 1, 0, W);
	} else {
		memset(buf, 0, 64 * MIB);
		MPI_Recv(buf, blocks, t, 0, 0, W, &s);
		MPI_Get_elements_x(&s, MPI_BYTE, &count);
		EXPECT(count == (MPI_Count)n, "%lld bytes arrived", (long long)count);
		check(buf, 64 * MIB, 3, "huge");
	}
	MPI_Type_free(&t);
	munmap(buf, n);
}

/** Two worlds of one process that meet at a port: connections that know no business card at first. */
static void test_connect(void)
{
	char port[MPI_MAX_PORT_NAME], *buf = need(MIB + 3);
	MPI_Comm other;

	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Send(port, sizeof(port), MPI_CHAR, 1, 0, W);
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
		MPI_Close_port(port);
	} else {
		MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 0, W, MPI_STATUS_IGNORE);
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
	}
	fill(buf, MIB + 3, rank);
	MPI_Sendrecv_replace(buf, MIB + 3, MPI_BYTE, 0, 0, 0, 0, other, MPI_STATUS_IGNORE);
	check(buf, MIB + 3, peer, "by the port");
	MPI_Comm_disconnect(&other);
	free(buf);
}

/** Rank 1 ends without a word; rank 0 has large messages to and from it. */
static void test_death(void)
{
	int n = 64 * MIB, err;
	char *buf = need(n), *in = need(n);
	MPI_Request reqs[3];
	MPI_Status s;

	memset(buf, 1, n);
	MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
	if (rank == 1) {
		MPI_Isend(buf, n, MPI_BYTE, 0, 0, W, &reqs[0]);
		MPI_Irecv(in, n, MPI_BYTE, 0, 1, W, &reqs[1]);
		for (int i = 0; i < 3; i++)
			MPI_Test(&reqs[1], &err, MPI_STATUS_IGNORE);
		kill(getpid(), SIGKILL);
	}
	MPI_Isend(buf, n, MPI_BYTE, 1, 1, W, &reqs[0]);
	MPI_Isend(buf, n, MPI_BYTE, 1, 2, W, &reqs[1]);
	MPI_Irecv(in, n, MPI_BYTE, 1, 0, W, &reqs[2]);
	err = MPI_Wait(&reqs[1], &s);
	EXPECT(err, "no error of a send that nobody receives");
	MPI_Wait(&reqs[0], &s);
	MPI_Wait(&reqs[2], &s);
	printf("%s 1 - death%s%s\n", bad ? "not ok" : "ok", bad ? " # " : "", bad ? bad_text : "");
	fflush(stdout);
	/* MPI_Finalize would wait for the dead in MPICH's own parts */
	_exit(bad);
}

/** Without the device, what the network alone sends at once does not wait for its receiver. */
static void test_gone(void)
{
	static const char path[] = "/sys/bus/xen/drivers/xnem-frontend/unbind";
	/* above XNEM's threshold, below that of the network */
	int n = 100 << 10, done = 0;
	char *buf = need(n);
	MPI_Request req;

	fill(buf, n, rank);
	MPI_Sendrecv_replace(buf, n, MPI_BYTE, peer, 0, peer, 0, W, MPI_STATUS_IGNORE);
	check(buf, n, peer, "before");
	fill(buf, n, 5);
	if (rank == 0) {
		FILE *f = fopen(path, "w");

		if (!f || fputs("xnem-0", f) < 0 || fclose(f))
			MPI_Abort(W, 2);
		/* this one finds out */
		MPI_Send(buf, n, MPI_BYTE, 1, 1, W);
		MPI_Isend(buf, n, MPI_BYTE, 1, 3, W, &req);
		for (double end = MPI_Wtime() + 20; !done && MPI_Wtime() < end;)
			MPI_Test(&req, &done, MPI_STATUS_IGNORE);
		EXPECT(done, "waits for its receiver");
		MPI_Send(NULL, 0, MPI_BYTE, 1, 2, W);
		if (!done)
			MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else {
		memset(buf, 0, n);
		MPI_Recv(buf, n, MPI_BYTE, 0, 1, W, MPI_STATUS_IGNORE);
		check(buf, n, 5, "the first");
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, W, MPI_STATUS_IGNORE);
		memset(buf, 0, n);
		MPI_Recv(buf, n, MPI_BYTE, 0, 3, W, MPI_STATUS_IGNORE);
		check(buf, n, 5, "the second");
	}
	free(buf);
}

/* ---- all of them --------------------------------------------------------------------- */

static const struct {
	const char *name;
	/* what of it went wrong for others: MPICH's reports, and traps of its LMT */
	const char *reports;
	void (*run)(void);
	int named_only;
	int all_ranks;
} tests[] = {
	{ "sizes", "mpich#1080, #895, #7172", test_sizes, 0, 0 },
	{ "modes", "mpich#1534, ready sends are eager", test_modes, 0, 0 },
	{ "both-ways", "mpich#2860", test_both_ways, 0, 0 },
	{ "probe", "mpich#2484", test_probe, 0, 0 },
	{ "truncate", "mpich#2484, the sender's count", test_truncate, 0, 0 },
	{ "cancel", "mpich#2129, #5775", test_cancel, 0, 0 },
	{ "order", "a request to send among small messages", test_order, 0, 0 },
	{ "outstanding", "mpich#1638, cookies that are split", test_outstanding, 0, 0 },
	{ "request-free", "mpich#7002", test_request_free, 0, 0 },
	{ "remap", "mpich#3515", test_remap, 0, 0 },
	{ "datatypes", "mpich#3755", test_datatypes, 0, 0 },
	{ "datatype-life", "mpich#3755", test_datatype_life, 0, 0 },
	{ "threads", "mpich#5624", test_threads, 0, 0 },
	{ "intercomm", NULL, test_intercomm, 0, 1 },
	{ "collectives", "mpich#623", test_collectives, 0, 1 },
	{ "connect", "a connection without a process group", test_connect, 0, 0 },
	{ "huge", "mpich#1611", test_huge, 1, 0 },
	{ "death", "mpich#1421", test_death, 1, 0 },
	{ "gone", NULL, test_gone, 1, 0 },
};

static int chosen(int t, int argc, char **argv)
{
	if (optind == argc)
		return !tests[t].named_only;
	for (int i = optind; i < argc; i++)
		if (!strcmp(argv[i], tests[t].name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int given, c, failed = 0, n = 0, number = 0;

	while ((c = getopt(argc, argv, "ln:")) >= 0) {
		switch (c) {
		case 'l':
			for (int t = 0; t < LENGTH(tests); t++)
				printf("%s\n", tests[t].name);
			return 0;
		case 'n':
			many = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_size(W, &size);
	if (size < 2) {
		fprintf(stderr, "xnem-mpi-test wants 2 ranks or more\n");
		MPI_Abort(W, 2);
	}
	peer = !rank;
	for (int t = 0; t < LENGTH(tests); t++)
		n += chosen(t, argc, argv);
	if (rank == 0)
		printf("1..%d\n", n);
	for (int t = 0; t < LENGTH(tests); t++) {
		char texts[2][200];
		double start = MPI_Wtime();

		if (!chosen(t, argc, argv))
			continue;
		bad = 0;
		bad_text[0] = 0;
		if (rank < 2 || tests[t].all_ranks)
			tests[t].run();
		if (rank == 1) {
			MPI_Send(bad_text, sizeof(bad_text), MPI_CHAR, 0, 999, W);
		} else if (rank == 0) {
			memcpy(texts[0], bad_text, sizeof(bad_text));
			MPI_Recv(texts[1], sizeof(texts[1]), MPI_CHAR, 1, 999, W,
				 MPI_STATUS_IGNORE);
			int wrong = texts[0][0] || texts[1][0];

			failed += wrong;
			printf("%sok %d - %s%s%s%s%s%s%s%s\n", wrong ? "not " : "", ++number,
			       tests[t].name, tests[t].reports ? " (" : "",
			       tests[t].reports ? tests[t].reports : "",
			       tests[t].reports ? ")" : "", texts[0][0] ? "; rank 0: " : "",
			       texts[0], texts[1][0] ? "; rank 1: " : "", texts[1]);
			printf("# %.2f s\n", MPI_Wtime() - start);
			fflush(stdout);
		}
		MPI_Barrier(W);
	}
	MPI_Bcast(&failed, 1, MPI_INT, 0, W);
	MPI_Finalize();
	return failed ? 1 : 0;
}
