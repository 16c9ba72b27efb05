# SPDX-License-Identifier: GPL-2.0
"""Finds signs of a kernel or hypervisor gone wrong in console output."""
import collections
import fnmatch
import re

# After one of these lockdep turns itself off.
LOCKDEP = r"WARNING: (?:possible|suspicious|inconsistent|bad unlock|held lock|lock held|nested lock|chain cache)"
# What the first line of such a message looks like. Only clear signs: a scenario may
# well print "error".
PATTERNS = [
    r"\bBUG: ", r"kernel BUG at ", r"\bOops: ", r"general protection fault",
    r"unable to handle (?:kernel|page)", r"Kernel panic - not syncing",
    r"WARNING: CPU: \d+ PID", LOCKDEP,
    r"INFO: (?:possible|suspicious|inconsistent|trying to register)",
    r"INFO: task .* blocked for more than",
    r"rcu: .*(?:detected stalls|self-detected stall|detected expedited stalls)", r"soft lockup", r"hard LOCKUP",
    r"KASAN: ", r"UBSAN: ", r"KCSAN: ", r"KFENCE: ", r"\bBUG \S+ \((?:Not tainted|Tainted)",
    r"list_(?:add|del) corruption", r"list_add double add", r"refcount_t: ", r"ODEBUG: ", r"workqueue lockup",
    r"Out of memory: Killed", r"invoked oom-killer", r"page allocation failure", r"scheduling while atomic",
    r"segfault at [0-9a-f]+ ip", r"traps: .* (?:general protection|trap)", r"Call Trace:",
    r"\(XEN\).*(?:Panic on CPU|Assertion .* failed|Xen BUG at|Xen WARN at|FATAL )",
    r"\(XEN\).*Domain \d+ .*(?:crashed|reported crash)", r"\(XEN\).*(?:Triple fault|triple fault|domain_crash)",
    r"\(XEN\).*Hardware Dom0 crashed",
]
SIGN = re.compile("|".join(f"(?:{p})" for p in PATTERNS))
END = re.compile(r"---\[ end |</TASK>|Reboot in|\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*\*")
DOMAIN_OF_XEN_LINE = re.compile(r"\(XEN\).*?(?:Domain (\d+)\b|\bd(\d+)(?:v\d+)?\b)")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")
BLOCK_LINES = 100       # as much of a message is looked at for the allow list
BLOCK_SECONDS = 2.0     # a message whose next line takes longer has ended

# A guest that runs where Xen's own code is: behind VMRUN the emulator went on in the guest
# with the registers of the host. No guest can bring that about; see README.md.
EMULATORS_FAULT = re.compile(r"Triple fault - invoking HVM shutdown(?:.*\n){1,5}.*RIP: +e008:")

Finding = collections.namedtuple("Finding", "domain line block tail")


def load_allow_list(path):
    """Lines `domain-pattern | regular expression | reason`: harmless messages."""
    allowed = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            fields = [part.strip() for part in line.split(" | ")]
            if len(fields) != 3 or not all(fields):
                raise ValueError(f"{path}:{number}: wants `domain | expression | reason`")
            allowed.append((fields[0], re.compile(fields[1], re.S), fields[2]))
    return allowed


class Detector:
    """Watches one console. feed() text as it comes and call poll() now and then."""

    def __init__(self, domain, allowed=(), tail_lines=40):
        self.domain = domain
        self.allowed = allowed
        self.tail = collections.deque(maxlen=tail_lines)
        self.findings = []
        self.excused = []
        self._partial = ""
        self._block = None
        self._block_time = 0.0

    def feed(self, text, now):
        """Returns the complete lines in what came."""
        self._partial += text
        *lines, self._partial = self._partial.split("\n")
        lines = [ESCAPES.sub("", line) for line in lines]
        for line in lines:
            self._line(line, now)
        return lines

    def poll(self, now, force=False):
        if self._block is not None and (force or now - self._block_time > BLOCK_SECONDS):
            self._close()

    def _line(self, line, now):
        self.tail.append(line)
        self.poll(now)
        if self._block is not None:
            self._block.append(line)
            self._block_time = now
            if END.search(line) or len(self._block) >= BLOCK_LINES:
                self._close()
        elif SIGN.search(line):
            self._block = [line]
            self._block_time = now

    def _close(self):
        block, self._block = self._block, None
        text = "\n".join(block)
        for domain, expression, reason in self.allowed:
            if fnmatch.fnmatch(self.domain, domain) and expression.search(text):
                self.excused.append((block[0], reason))
                return
        self.findings.append(Finding(self.domain, block[0], block, list(self.tail)))


# What a domain's testbed-debug prints: lines of its own, and kmemleak's list of objects.
LEAK = re.compile(r"^unreferenced object ", re.M)


def debug_findings(domain, text, release, allowed=()):
    """What testbed-debug printed in a domain, as ([(kind, note)], [(first line, reason)])."""
    own, *leaks = LEAK.split(text)
    said = dict(line.split(" ", 1) for line in own.splitlines() if " " in line)
    wrong, excused = [], []
    if said.get("release") != release:
        wrong.append(("kernel", f"runs {said.get('release')}, not {release}"))
    # After its first message lockdep looks at nothing any more.
    if said.get("lockdep", "1") != "1":
        wrong.append(("lockdep", "has turned itself off"))
    if said.get("end") != "0":
        wrong.append(("look", f"did not end well: {own.strip()[-200:]}"))
    for object_ in leaks:
        for pattern, expression, reason in allowed:
            if fnmatch.fnmatch(domain, pattern) and expression.search("unreferenced object " + object_):
                excused.append(("unreferenced object", reason))
                break
        else:
            calls = re.findall(r"\[<[0-9a-f]+>\] (.*)", object_)
            wrong.append(("kmemleak", "unreferenced object " + object_.splitlines()[0] + " " + ", ".join(calls)))
    return wrong, excused


def xen_line_domid(line):
    """The domid that a line of Xen's speaks of, or None."""
    found = DOMAIN_OF_XEN_LINE.search(line)
    return int(found.group(1) or found.group(2)) if found else None
