// SPDX-License-Identifier: MIT
/*
 * xnem-hostile - does a hostile frontend harm anybody but itself?
 *
 * Runs in a guest that has a device and no XNEM module loaded.  It connects as a
 * frontend should (the frozen one does that, tests/frozen), and then breaks the rules.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

static const char usage_text[] =
	"usage: xnem-hostile COMMAND\n"
	"\n"
	"  served               all attacks that the backend bears\n"
	"  cut NAME             an attack for which the device is cut off; without NAME: which\n"
	"  nodes NODE           garbage in that node of xenstore, several times; cut off after\n"
	"  fuzz SEED COUNT      mutated requests\n"
	"\n"
	"Prints in the Test Anything Protocol.  Exit status: 0 ok, 1 not ok, 2 cannot tell,\n"
	"64 wrong arguments.\n";

static void begin(struct frontend *fe)
{
	begin_test(fe);
	if (ping(fe))
		die("it does not work before it is attacked");
}

static int served(struct frontend *fe)
{
	const struct test *test;
	unsigned int bad = 0;
	int failed;

	for (test = served_tests; test->name; test++) {
		begin(fe);
		failed = end_test(fe, test, test->run(fe));
		bad += failed;
		tap_result(failed, test->name);
	}
	tap_plan();
	return bad != 0;
}

static int was_cut_off(struct frontend *fe)
{
	return cut_off(fe, STATE_CLOSED);
}

static int cut(struct frontend *fe, const char *name)
{
	const struct test *test;
	int failed;

	for (test = cut_tests; strcmp(test->name, name); test++)
		;
	begin(fe);
	failed = test->run(fe) || was_cut_off(fe);
	tap_result(failed, name);
	tap_plan();
	return failed;
}

static int one(struct frontend *fe, const char *name, int failed, int (*then)(struct frontend *fe))
{
	if (!failed)
		failed = then(fe);
	tap_result(failed, name);
	tap_plan();
	return failed;
}

static int close_well(struct frontend *fe)
{
	EXPECT(true, disconnect_device(fe));
	EXPECT(false, revoked_in_use(fe));
	return 0;
}

static int list(void)
{
	const struct test *test;

	for (test = cut_tests; test->name; test++)
		printf("%s\n", test->name);
	return 0;
}

static bool is_cut(const char *name)
{
	const struct test *test;

	for (test = cut_tests; test->name; test++)
		if (!strcmp(test->name, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct frontend fe;

	if (argc == 2 && !strcmp(argv[1], "cut"))
		return list();
	if (argc == 2 && !strcmp(argv[1], "served")) {
		frontend_open(&fe);
		return served(&fe);
	}
	if (argc == 3 && !strcmp(argv[1], "cut") && is_cut(argv[2])) {
		frontend_open(&fe);
		return cut(&fe, argv[2]);
	}
	if (argc == 3 && !strcmp(argv[1], "nodes")) {
		frontend_open(&fe);
		begin(&fe);
		return one(&fe, argv[2], nodes(&fe, argv[2]), was_cut_off);
	}
	if (argc == 4 && !strcmp(argv[1], "fuzz")) {
		frontend_open(&fe);
		begin(&fe);
		return one(&fe, "mutated requests",
			   fuzz(&fe, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0)),
			   close_well);
	}
	fputs(usage_text, stderr);
	return 64;
}
