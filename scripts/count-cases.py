#!/usr/bin/env python3
"""Count the test cases in a testlog.json of `meson test`: the lines of TAP its programs wrote.

The last line printed is "N passed, N failed". A program that died, ran out of time, wrote no case
or broke off before its plan was fulfilled counts as a failed case of its own, so that nothing
which did not run can pass for good. A skipped case is one that did not run: failed.
"""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b(?:.*#\s*(skip|todo))?", re.IGNORECASE)
STDERR_LINES = 60
PLAN = re.compile(r"^1\.\.(\d+)")


def count(entry):
    """(passed, failed, remark) of one program."""
    passed = failed = 0
    planned = None
    for line in entry.get("stdout", "").splitlines():
        plan = PLAN.match(line)
        if plan:
            planned = (planned or 0) + int(plan.group(1))
        case = CASE.match(line)
        if case and (case.group(1) or case.group(2)):
            failed += 1
        elif case:
            passed += 1
    if failed:
        return passed, failed, "%d of %d failed" % (failed, passed + failed)
    if entry["result"] != "OK":
        return passed, 1, "%s (exit status %s)" % (entry["result"], entry.get("returncode"))
    if passed == 0:
        return 0, 1, "wrote no test case"
    if planned is not None and planned != passed:
        return passed, 1, "planned %d cases, ran %d" % (planned, passed)
    return passed, 0, None


def explain(entry, remark):
    """Print what a failed program said about its failures."""
    print("FAILED %s: %s" % (entry["name"], remark))
    shown = False
    for line in entry.get("stdout", "").splitlines():
        case = CASE.match(line)
        if case:
            shown = bool(case.group(1) or case.group(2))
        if shown:
            print("    " + line)
    for line in entry.get("stderr", "").splitlines()[-STDERR_LINES:]:
        print("    " + line)


def main():
    passed = failed = 0
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            entries = [json.loads(line) for line in log if line.strip()]
    except OSError:
        entries = []
    for entry in entries:
        ok, bad, remark = count(entry)
        passed += ok
        failed += bad
        if remark:
            explain(entry, remark)
    if passed + failed == 0:
        print("FAILED: no test ran")
        failed = 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
