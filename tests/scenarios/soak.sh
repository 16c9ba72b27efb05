# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: faults at random moments in the middle of traffic, from a seed
# needs: guests=2 modules=yes backend=drv type=drv:pv,g1:pv,g2:pv
# shellcheck disable=SC1091,SC2016,SC2034,SC2086,SC2154 # read in dom0; expanded over there; set and used by eval; words
#
# `make soak` runs 200 rounds, `make check` a dozen. Both guests copy from each other; then
# something happens, and whoever survives must be told within 5 s what it is: the other
# process is gone, or this way is (go another one). A pause only delays.
#
#   --set SEED=N     another course of things (default 1)
#   --set ROUNDS=N   how many rounds (default 12)
#   --set ROUND=N    where to begin (default 1): each round follows from SEED and its number
#   --set PAUSE=N    longest pause, seconds (default 6; make soak: 60)
#   --set ONLY=KIND  this kind alone
#
# Each dozen of rounds has each kind once, in an order that the seed gives.
. /usr/lib/xnem-tests/copies.sh

seed=${SEED:-1} rounds=${ROUNDS:-12} first=${ROUND:-1} longest=${PAUSE:-6}
kinds='kill_owner kill_copier kill_guest pause_guest pause_backend slow_xenstore detach
	reload destroy crash new_backend crash_backend'
nr_kinds=12
bytes=4000000

# ---- numbers that follow from a seed

# random BELOW: sets $r. Xorshift, in the 63 bits that are never negative.
random() {
	state=$(((state ^ (state << 13)) & 0x7fffffffffffffff))
	state=$((state ^ (state >> 7)))
	state=$(((state ^ (state << 17)) & 0x7fffffffffffffff))
	r=$((state % $1))
}
seed_with() { # NUMBER NUMBER
	state=$((($1 * 6364136223846793005 + $2 * 2862933555777941757 + 1442695040888963407) & 0x7fffffffffffffff))
	for _ in 1 2 3 4 5 6 7 8; do
		random 2
	done
}
# kind_of ROUND: sets $kind.
kind_of() {
	_block=$((($1 - 1) / nr_kinds)) _at=$((($1 - 1) % nr_kinds))
	seed_with "$seed" "$((-1 - _block))"
	set -- $kinds
	while :; do
		random $#
		[ $_at -gt 0 ] || break
		_at=$((_at - 1)) _rest=
		_n=0
		for kind; do
			[ $_n -eq "$r" ] || _rest="$_rest $kind"
			_n=$((_n + 1))
		done
		set -- $_rest
	done
	shift "$r"
	kind=$1
}

# ---- traffic

# Guest N holds a region (rN), and a process there copies with the other's (cN). All at once,
# as each command takes its time on an emulated host.
traffic_start() {
	for _g in 1 2; do
		on_bg "r$_g" -t 600 "g$_g" "exec xnem-test export --hold 590 --bytes $bytes --access rw --pattern $_g"
	done
	for _g in 1 2; do
		wait_for 20 grep -q cookie "$OUT/r$_g.out" || return
		eval "cookie_$_g=\$(sed -n 's/^cookie=//p' '$OUT/r$_g.out')"
	done
	for _g in 1 2; do
		random 4
		case $r in
		0) how="--chunk 64 --depth 16" ;;
		1) how="--chunk 5000 --depth 8" ;;
		2) how="--chunk 400000 --depth 3" ;;
		3) how="--chunk $bytes --depth 2" ;;
		esac
		random 2
		[ "$r" = 0 ] || how="$how --put"
		eval "cookie=\$cookie_$((3 - _g))"
		# They sleep when there is nothing, to leave the emulated CPUs to others.
		on_bg "c$_g" -t 400 "g$_g" "XNEM_SPIN_US=0 exec xnem-test stream $cookie --bytes $bytes --seconds 300 $how"
	done
	wait_for 30 moved 1 0 && wait_for 30 moved 2 0
}
traffic_stop() {
	for _b in c1 c2 r1 r2; do
		kill_bg $_b 2>/dev/null
	done
}
copied() { sed -n 's/^t=.* bytes=//p' "$OUT/c$1.out" 2>/dev/null | tail -n 1; }
moved() { [ "$(copied "$1")" -gt "$2" ] 2>/dev/null; }
# moves N: it copies (again), and has not ended.
moves() {
	_was=$(copied "$1")
	wait_for 30 moved "$1" "${_was:-0}" && ! grep -q '^error=' "$OUT/c$1.out"
}
# pid_of NAME: of r1, r2, c1, c2, over there.
pid_of() { sed -n 's/^\(streaming=yes \)\?pid=//p' "$OUT/$1.out"; }

# told N WHAT: the process that copies in gN has ended by now or does so within 5 s of $event, with an
# error of that class: gone, elsewhere, or own (its own device was taken away).
told() {
	_t=$round-$kind-told-$1
	wait_bg "c$1"
	_rc=$?
	_ms=$(($(uptime_ms) - event))
	_error=$(sed -n 's/^error=//p' "$OUT/c$1.out")
	case $2:$_rc in
	gone:20 | gone:21) ;;
	elsewhere:22 | elsewhere:24 | elsewhere:25) ;;
	own:22 | own:23 | own:25) ;;
	*) fail "$_t" "not an error of '$2': exit status $_rc, ${_error:-$(tail -n 1 "$OUT/c$1.err")}"; return ;;
	esac
	if [ $_ms -gt $((5000 * SLOW)) ]; then
		fail "$_t" "$_ms ms, $_error"
	else
		pass "$_t" "$_ms ms, $_error"
	fi
}
goes_on() { # N...
	for _n; do
		if moves "$_n"; then
			pass "$round-$kind-goes-on-$_n"
		else
			fail "$round-$kind-goes-on-$_n" "$(tail -n 1 "$OUT/c$_n.out" "$OUT/c$_n.err" | xargs)"
		fi
	done
}
# ---- making whole again

all_ready() {
	for _d; do
		check "$round-$kind-connected-$_d" wait_for 60 device_ready "$_d"
	done
}
listed() { xl list | grep -q "^$1 "; }
gone() { ! xl list | grep -q "(null)"; }
again() { # gN
	check "$round-$kind-no-zombie" wait_for 20 gone
	check "$round-$kind-stale" xnem-detach --stale
	guest_create "$1" && guest_attach "$1" || die "$round-$kind-again" "$1 cannot be made again"
}
new_backend_domain() {
	check "$round-$kind-no-zombie" wait_for 20 gone
	guest_create drv || die "$round-$kind-again" "drv cannot be made again"
	on drv 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null || die "$round-$kind-again" "the backend does not load"
	for _d in g1 g2; do
		check "$round-$kind-attach-$_d" xnem-attach "$_d" backend=drv --wait --timeout 60
	done
	all_ready g1 g2
}
panic() { # DOM
	expect_lost "$1"
	on_bg panic -t 20 "$1" 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger'
	wait_for 20 crashed "$1" || fail "$round-$kind-crashed" "$1 does not crash"
	kill_bg panic
}
crashed() { case $(guest_state "$1") in *s* | *c*) return 0 ;; esac; return 1; }

# ---- what happens. $v is the guest it happens to, $o the other

kill_owner() {
	on "g$v" "kill -9 $(pid_of r$v)" </dev/null
	event=$(uptime_ms)
	told $o gone
	goes_on $v
}
kill_copier() {
	on "g$v" "kill -9 $(pid_of c$v)" </dev/null
	wait_bg "c$v"
	check $round-$kind-killed [ $? = 137 ]
	goes_on $o
}
kill_guest() {
	on "g$v" 'kill -9 $(pidof xnem-test)' </dev/null
	event=$(uptime_ms)
	told $o gone
	check $round-$kind-killed on "g$v" '! pidof xnem-test' </dev/null
}
pause_for() { # DOM
	random $longest
	step "round $round: $1 is paused for $((r + 1)) s"
	xl pause "$1"
	case $(guest_state "$1") in *p*) pass $round-$kind-paused ;; *) fail $round-$kind-paused "$(guest_state "$1")" ;; esac
	sleep $((r + 1))
	xl unpause "$1"
	goes_on 1 2
}
pause_guest() { pause_for "g$v"; }
pause_backend() { pause_for drv; }
# The daemon says nothing for a while, and a process dies in the meantime: those that copy
# need no xenstore to hear of it.
slow_xenstore() {
	_victim=$(pid_of r$v)
	kill -STOP "$(pidof xenstored)"
	random 1000
	usleep $((r * 1000))
	on "g$v" "kill -9 $_victim" </dev/null
	event=$(uptime_ms)
	told $o gone
	random 3
	sleep $((r + 1))
	kill -CONT "$(pidof xenstored)"
	goes_on $v
}
detach() {
	random 2
	if [ "$r" = 0 ]; then _force=''; else _force=--force; fi
	check $round-$kind-done xnem-detach "g$v" $_force
	event=$(uptime_ms)
	told $o gone
	told $v own
	traffic_stop
	check $round-$kind-attach xnem-attach "g$v" backend=drv --wait --timeout 60
	all_ready "g$v"
}
reload() {
	check $round-$kind-unload backend_unload drv
	event=$(uptime_ms)
	told 1 elsewhere
	told 2 elsewhere
	random 3
	sleep "$r"
	check $round-$kind-load on drv 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null
	all_ready g1 g2
}
destroy() {
	guest_destroy "g$v"
	event=$(uptime_ms)
	told $o gone
	traffic_stop
	again "g$v"
}
crash() {
	panic "g$v"
	random 3
	sleep "$r"
	destroy
}
new_backend() {
	guest_destroy drv
	event=$(uptime_ms)
	told 1 elsewhere
	told 2 elsewhere
	traffic_stop
	new_backend_domain
}
crash_backend() {
	panic drv
	random 3
	sleep "$r"
	new_backend
}

# ---- the rounds

one_round() {
	round=$1
	kind_of "$round"
	kind=${ONLY:-$kind}
	seed_with "$seed" "$round"
	random 2
	v=$((r + 1)) o=$((2 - r))
	begin=$(uptime_ms)
	if ! traffic_start; then
		fail "$round-$kind-traffic" "$(tail -n 1 "$OUT"/[cr][12].err | xargs)"
		traffic_stop
		return 1
	fi
	random 1500
	step "round $round of $last: $kind, g$v, after $r ms; again: SEED=$seed ROUND=$round ROUNDS=1"
	usleep $((r * 1000))
	$kind
	traffic_stop
	settled "$round-$kind-settled"
	echo "round $round: $kind, $(($(uptime_ms) - begin)) ms; next: SEED=$seed ROUND=$((round + 1))"
	# Output of the next round has the same names.
	[ -e /run/testbed/failed ] || rm -f "$OUT"/[cr][12].out "$OUT"/[cr][12].err
}

last=$((first + rounds - 1))
next=$first
while [ "$next" -le $last ]; do
	one_round "$next"
	next=$((next + 1))
done
step "next: SEED=$seed ROUND=$next"
