# SPDX-License-Identifier: GPL-2.0
"""What measurements share. Read after sys.dont_write_bytecode was set: no __pycache__ here."""
import json
import os
import re
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(TOP, "bench/results")
VCHAN_LIBS = "-lxenvchan -lxenstore -lxenevtchn -lxengnttab -lxencall -lxentoollog -lxentoolcore -lpthread"


def read_pairs(path):
    out = {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            key, found, value = line.strip().partition(" ")
            if found:
                out[key] = value
    return out


def read_records(path):
    """Records of a program in a guest, one a line, whether an array is around them or not."""
    out = []
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                line = line.strip().lstrip(", ")
                if line.startswith("{"):
                    out.append(json.loads(line))
    except (OSError, ValueError) as e:
        print(f"bench: {path}: {e}")
    return out


def said(argv):
    try:
        return subprocess.run(argv, cwd=TOP, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def add_versions(folder):
    """Of this tree and of QEMU, to what a scenario wrote of those inside."""
    qemu = re.search(r"version (\S+)", said(["qemu-system-x86_64", "--version"]))
    with open(folder + "/versions", "a", encoding="utf-8") as f:
        print("xnem", said(["git", "describe", "--always", "--dirty"]) or "unknown", file=f)
        print("qemu", qemu.group(1) if qemu else "unknown", file=f)


def build_vchan(folder):
    """An overlay with vchan-pair in it, or None where libxen-dev is missing."""
    os.makedirs(folder + "/usr/bin", exist_ok=True)
    have = subprocess.run(["cc", "-E", "-x", "c", "-"], input="#include <libxenvchan.h>\n", text=True,
                          capture_output=True, check=False)
    if have.returncode:
        print("bench: libxenvchan is left out: libxen-dev is not installed (testbed/prepare bench/copy/packages)")
        return None
    subprocess.check_call(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s",
                           "-o", folder + "/usr/bin/vchan-pair", TOP + "/bench/copy/vchan-pair.c",
                           *VCHAN_LIBS.split()])
    return folder


def gnuplot(script):
    """None, or why there is no plot."""
    if not shutil.which("gnuplot"):
        return "no plot: gnuplot is not installed (testbed/prepare bench/netpipe/packages)"
    try:
        done = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"no plot: {e}"
    return f"no plot: {done.stderr.strip()}" if done.returncode else None
