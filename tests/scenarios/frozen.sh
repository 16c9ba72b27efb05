# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a frontend of version 1 that never changes, in user space, against this backend
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

be=$([ "$BACKEND" = dom0 ] && echo dom0 || echo drv)
# frozen NAME ARGS...: a test: xnem-frozen ARGS in g1 must succeed.
frozen() {
	_t=$1
	shift
	if on -t 120 g1 "xnem-frozen $*" </dev/null >"$OUT/$_t.out" 2>&1; then
		pass "$_t"
	else
		fail "$_t" "exit status $?: $(tail -n 1 "$OUT/$_t.out")"
	fi
}
not() { ! "$@"; }
# What the backend has written to its error node of g1's device.
backend_error() {
	xenstore-read "/local/domain/$(guest_domid "$be")/error/backend/xnem/$(guest_domid g1)/0/error" 2>/dev/null
}
says_broken() { backend_error | grep -q 'broke the protocol'; }

step "g1 without XNEM's module, its device attached"
check unload frontend_unload g1
check no-module on g1 '[ ! -e /dev/xnem0 ] && [ ! -d /sys/module/xnem_frontend ]' </dev/null

step "every operation and status of version 1"
tap v1 g1 root xnem-frozen suite
settled suite-settled drv g2

step "from and to ordinary programs in g2"
export_start theirs g2 root --bytes 300000 --pattern 21 --access rw --any || exit
frozen pull-from-ordinary pull "$cookie_theirs" 300000 21
frozen push-to-ordinary push "$cookie_theirs" 300000 22
try pushed-is-right g2 root pull "$cookie_theirs" --bytes 300000 --verify 22
export_stop theirs

on g1 'rm -f /dev/shm/frozen.cookie' </dev/null
on_bg ours -t 200 g1 "exec xnem-frozen export /dev/shm/frozen.cookie 300000 31"
if wait_for 30 _has_cookie /dev/shm/frozen.cookie g1; then
	cookie=$(on g1 'cat /dev/shm/frozen.cookie' </dev/null)
	try pull-from-frozen g2 user pull "$cookie" --bytes 300000 --verify 31
	try push-to-frozen g2 user push "$cookie" --bytes 300000 --pattern 32
	on g1 'kill $(pidof xnem-frozen)' </dev/null
	if wait_bg ours; then pass frozen-has-it; else fail frozen-has-it "$(cat "$OUT/ours.out" "$OUT/ours.err")"; fi
	try frozen-has-gone g2 user pull "$cookie" --bytes 10 --expect ENOENT
else
	fail frozen-export "no cookie: $(cat "$OUT/ours.err")"
	kill_bg ours
fi

step "a job for an ordinary server"
on_bg serve -t 200 -u user g2 "exec xnem-serve 7803 2"
check serve-listens wait_for 20 grep -q listening "$OUT/serve.out"
frozen job-for-ordinary client "$(address_of g2)" 7803 50000
frozen job-of-odd-size client "$(address_of g2)" 7803 4097
check serve-ends wait_bg serve
check serve-says grep -q 'jobs=2 failed=0' "$OUT/serve.out"
settled between-guests-settled drv g2

step "a frontend that dies without a word, and one that begins anew"
export_start own g2 root --bytes 300000 --pattern 3 --access r --any || exit
on g1 'rm -f /dev/shm/frozen.cookie' </dev/null
on_bg doomed -t 200 g1 "exec xnem-frozen export /dev/shm/frozen.cookie 300000 41"
if wait_for 30 _has_cookie /dev/shm/frozen.cookie g1; then
	cookie=$(on g1 'cat /dev/shm/frozen.cookie' </dev/null)
	on g1 'kill -9 $(pidof xnem-frozen)' </dev/null
	wait_bg doomed
	# The backend knows of nothing yet, but the kernel has taken the pages back.
	try pages-are-gone g2 user pull "$cookie" --bytes 10 --expect EFAULT
	frozen begins-anew pull "$cookie_own" 300000 3
	try region-is-gone g2 user pull "$cookie" --bytes 10 --expect ENOENT
	# Of g1's device alone: g2 holds a region.
	check begins-anew-settled [ "$(counter "$be" "xnem-backend/$(guest_domid g1)-0" regions)" = 0 ]
else
	fail doomed-export "no cookie: $(cat "$OUT/doomed.err")"
	kill_bg doomed
fi

# Each needs a device that was not cut off before; g2 copies all the while (qubes-issues#10833).
for how in submission completion inflight; do
	step "a frontend that breaks the protocol: $how"
	check "no-error-before-$how" not says_broken
	on_bg "other_$how" -t 60 g2 "exec xnem-test stream $cookie_own --bytes 300000 --seconds 5"
	tap "qubes-issues-10833-$how" g1 root xnem-frozen corrupt "$how"
	check "device-says-so-$how" says_broken
	check "closed-$how" [ "$(on g1 'xenstore-read device/xnem/0/state' </dev/null)" = 6 ]
	check "other-guest-goes-on-$how" wait_bg "other_$how"
	try "other-guest-$how" g2 root pull "$cookie_own" --bytes 300000 --verify 3
	check "detach-$how" xnem-detach g1
	check "attach-$how" xnem-attach --timeout 0 g1 "backend=$BACKEND"
done
frozen served-again pull "$cookie_own" 300000 3
export_stop own

step "a device of two queues, by a backend with two workers"
backend() { backend_unload "$be" && on "$be" "insmod /lib/modules/xnem/xnem-backend.ko $1" </dev/null; }
check two-workers backend workers=2
tap queues g1 root xnem-frozen queues
check one-worker backend ""
check g2-again wait_for 30 connected g2

step "the ordinary frontend again"
ordinary_again
settled frozen-settled
