# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: the registration cache under everything that can happen to a mapping
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

serve g1 user
serve g2 user
step "an unprivileged user of g1, with the default RLIMIT_MEMLOCK"
suite g1-g2 g1 user cache --peer g2:7101
settled cache-g1-settled
step "an unprivileged user of g2"
suite g2-g1 g2 user cache --peer g1:7101
step "within g1, as root"
suite within-g1 g1 root cache
kill_bg serve_g1_user
kill_bg serve_g2_user
settled cache-settled

# What the kernel counts: a hit pins nothing, grants nothing and asks for nothing.
step "counters of hits"
before=$(on g2 cat /sys/kernel/debug/xnem/xnem0/counters </dev/null)
on g2 "xnem-test suite cache --only 'hit makes no'" </dev/null >"$OUT/hits.tap"
after=$(on g2 cat /sys/kernel/debug/xnem/xnem0/counters </dev/null)
printf '%s\n' "$before" >"$OUT/counters.before"
printf '%s\n' "$after" >"$OUT/counters.after"
for key in pinned granted; do
	a=$(printf '%s\n' "$before" | sed -n "s/^$key //p") b=$(printf '%s\n' "$after" | sed -n "s/^$key //p")
	# One buffer of 49 pages here, one region of 257 there, and a context's pages: once each.
	if [ $((b - a)) -lt 400 ]; then pass "hits-$key" $((b - a)); else fail "hits-$key" $((b - a)); fi
done
