# SPDX-License-Identifier: GPL-2.0
"""What measurements share. Read after sys.dont_write_bytecode was set: no __pycache__ here."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

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


class Host:
    """The emulated host for the measurement NAME, as the environment wants it."""

    def __init__(self, name):
        env = os.environ.get
        self.name = name
        self.mode, self.types = env("MODE") or "counted", env("TYPE") or "g1=pv,g2=pv"
        if self.mode not in ("counted", "timed"):
            sys.exit("bench: MODE is counted or timed")
        # What testbed/xl has, and what is wanted.
        kinds = dict(x.split("=", 1) for x in ("g1=pv,g2=pvh," + self.types).split(","))
        self.guests = kinds["g1"] + "+" + kinds["g2"]
        self.build = os.path.abspath(env("BUILD") or os.path.join(TOP, "build"))
        # What the scenario leaves.
        self.folder = f"{self.build}/results/{name}/{name}"

    def stage(self):
        subprocess.check_call(["make", "--no-print-directory", "-C", TOP, "stage", "BUILD=" + self.build])

    def run(self, settings, options, overlays=(), defaults=()):
        """
        Boots, with further overlays for guests; returns testbed/host's exit status. Its options: what
        DEFAULTS say HOSTARGS may change, and OPTIONS both.
        """
        env = os.environ.get
        argv = [TOP + "/testbed/host", "run", "--mode", self.mode, "--type", self.types,
                "--results", os.path.dirname(self.folder),
                "--dom0-overlay", self.build + "/stage/dom0", "--domU-overlay", self.build + "/stage/domU", *defaults]
        for overlay in overlays:
            argv += ["--domU-overlay", overlay]
        for key, value in settings.items():
            argv += ["--set", f"{key}={value}"]
        if env("BACKEND"):
            argv += ["--backend", env("BACKEND")]
        shutil.rmtree(self.folder, ignore_errors=True)
        status = subprocess.call(argv + shlex.split(env("HOSTARGS") or "") + options +
                                 [f"{TOP}/bench/{self.name}/{self.name}.sh"])
        if os.path.isdir(self.folder):
            add_versions(self.folder)
        return status


def write_results(base, records, text):
    """BASE.json and BASE.txt."""
    os.makedirs(os.path.dirname(base), exist_ok=True)
    with open(base + ".json", "w", encoding="utf-8") as f:
        json.dump(records, f, indent=1)
        f.write("\n")
    with open(base + ".txt", "w", encoding="utf-8") as f:
        f.write(text + "\n")


def run_main(main):
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)


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
