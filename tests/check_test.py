#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of tests/check: what counts as passed, failed, skipped."""
import importlib.machinery
import importlib.util
import io
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("check", os.path.join(HERE, "check"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)
PASS, FAIL, SKIP = check.PASS, check.FAIL, check.SKIP


def verdicts(rows):
    return [r[-2] for r in rows]


class Tap(unittest.TestCase):
    def test_plain(self):
        rows = check.read_tap("1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no Xen\n", 1)
        self.assertEqual(rows, [("a", PASS, ""), ("b", FAIL, ""), ("c", SKIP, "no Xen")])

    def test_plan_may_be_last(self):
        self.assertEqual(verdicts(check.read_tap("ok 1 - a\nok 2 - b\n1..2\n", 0)), [PASS, PASS])

    def test_two_plans(self):
        self.assertEqual(verdicts(check.read_tap("1..1\nok 1 a\n1..1\nok 1 b\n", 0)), [PASS, PASS])

    def test_died_half_way(self):
        self.assertIn(FAIL, verdicts(check.read_tap("1..3\nok 1 - a\n", 0)))
        self.assertIn(FAIL, verdicts(check.read_tap("ok 1 - a\n", 0)))

    def test_nothing(self):
        self.assertEqual(verdicts(check.read_tap("", 1)), [FAIL])
        self.assertEqual(check.read_tap("Segmentation fault\n", 139)[0][1], FAIL)

    def test_status_without_failure(self):
        rows = check.read_tap("1..1\nok 1 - a\n==1==ERROR: AddressSanitizer\n", 1)
        self.assertEqual(verdicts(rows), [PASS, FAIL])

    def test_skip_without_reason(self):
        self.assertEqual(check.read_tap("1..1\nok 1 - a # skip\n", 0), [("a", SKIP, "no reason given")])

    def test_no_name(self):
        self.assertEqual(check.read_tap("1..1\nok 1\n", 0), [("test 1", PASS, "")])

    def test_okay_is_no_result(self):
        self.assertEqual(verdicts(check.read_tap("1..1\nokay then\nok 1 - a\n", 0)), [PASS])


class Host(unittest.TestCase):
    def test_plain(self):
        rows = check.read_host_results("s\ta\tPASS\t1.0\t\ns\tb\tFAIL\t2.0\twhy\ns\tc\tSKIP\t0.0\tno disk\n", ["s"])
        self.assertEqual(rows, [("s", "a", PASS, ""), ("s", "b", FAIL, "why"), ("s", "c", SKIP, "no disk")])

    def test_missing_scenario(self):
        rows = check.read_host_results("s\ta\tPASS\t1.0\t\n", ["s", "t"])
        self.assertEqual(rows[1], ("t", "t", FAIL, "no result"))

    def test_nothing(self):
        self.assertEqual(verdicts(check.read_host_results("", ["s"])), [FAIL])

    def test_unreadable(self):
        for line in ("s\ta", "s\ta\tMAYBE\t1.0\t", "garbage", ""):
            rows = check.read_host_results(f"s\ta\tPASS\t1.0\t\n{line}\n", ["s"])
            self.assertEqual(verdicts(rows), [PASS, FAIL], line)

    def test_skip_without_reason(self):
        self.assertEqual(check.read_host_results("s\ta\tSKIP\t1.0\t\n", ["s"])[0][3], "no reason given")


class Sum(unittest.TestCase):
    def results(self, *verdict):
        r = check.Results(stream=io.StringIO())
        for v in verdict:
            r.add("part", "test", v, "because")
        return r

    def test_line_and_status(self):
        for verdict, line, status in (
                ((PASS, PASS), "2 passed, 0 failed", 0),
                ((PASS, FAIL), "1 passed, 1 failed", 1),
                ((PASS, SKIP), "1 passed, 0 failed, 1 skipped", 0),
                ((), "0 passed, 0 failed", 1)):
            r = self.results(*verdict)
            self.assertEqual((r.summary(), r.status()), (line, status))

    def test_reasons_are_shown(self):
        r = self.results(SKIP, FAIL, PASS)
        self.assertEqual(r.stream.getvalue().count("because"), 2)


class Run(unittest.TestCase):
    def test_status_and_output(self):
        self.assertEqual(check.run(["sh", "-c", "echo a; echo b >&2; exit 3"]), (3, "a\nb\n"))

    def test_limit(self):
        status, text = check.run(["sh", "-c", "echo begun; sleep 60 & sleep 60"], limit=1)
        self.assertEqual(status, 124)
        self.assertIn("begun", text)

    def test_missing_program(self):
        r = check.Results(stream=io.StringIO())
        self.assertFalse(check.one(r, "p", "t", ["no-such-program-at-all"]))
        self.assertEqual(r.status(), 1)


class Reports(unittest.TestCase):
    def test_row(self):
        self.assertEqual(check.reports_of("| a#1, b/c#2 | text | `tests/x.c` (why), `make check` |\n"),
                         (["a#1", "b/c#2"], ["tests/x.c"]))
        self.assertEqual(check.reports_of("|---|---|---|\n"), ([], []))
        self.assertEqual(check.reports_of("| Report | Condition | Tests |\n"), ([], []))

    def test_named(self):
        self.assertTrue(check.named("a#12", "/* a#1, #12: why */"))
        self.assertFalse(check.named("a#12", "/* a#123 */"))
        self.assertTrue(check.named("XSA-318", "as XSA-318 has it"))


if __name__ == "__main__":
    unittest.main()
