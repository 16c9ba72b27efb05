# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: guests are saved and restored, idle and in the middle of copies; checkpoints, which change nothing
# needs: guests=2 modules=yes backend=drv type=drv:pv,g1:pv,g2:pvh memory=dom0:1100
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2086 # read in dom0; expanded over there; set by export_start; words
. /usr/lib/xnem-tests/copies.sh

bytes=1000000
file=/dev/shm/saved

# away NAME DOM ARGUMENTS: xnem-test in the background there (that sleeps when it waits, to leave the
# emulated CPUs to others), with its output there: nothing of it
# depends on a connection to dom0. An exit status is its last line.
away() {
	_n=$1 _d=$2
	shift 2
	on "$_d" "rm -f /dev/shm/$_n; setsid sh -c 'XNEM_SPIN_US=0 xnem-test $*; echo rc=\$?' >/dev/shm/$_n 2>&1 </dev/null &" </dev/null
}
says() { on "$2" "cat /dev/shm/$1" </dev/null; }
away_moves() {
	_was=$(says "$1" "$2" | sed -n 's/^t=.* bytes=//p' | tail -n 1)
	wait_for 30 _away_moved "$1" "$2" "${_was:-0}"
}
_away_moved() { [ "$(says "$1" "$2" | sed -n 's/^t=.* bytes=//p' | tail -n 1)" -gt "$3" ] 2>/dev/null; }
away_ended() { says "$1" "$2" | grep -q '^rc='; }
# away_told TEST NAME DOM STATUS...: it ends within 5 s with one of these.
away_told() {
	_t=$1 _n=$2 _d=$3
	shift 3
	if ! wait_for 5 away_ended "$_n" "$_d"; then
		fail "$_t" "goes on: $(says "$_n" "$_d" | tail -n 1)"
		return
	fi
	_rc=$(says "$_n" "$_d" | sed -n 's/^rc=//p')
	_error=$(says "$_n" "$_d" | sed -n 's/^error=//p')
	case " $* " in
	*" $_rc "*) pass "$_t" "$_error" ;;
	*) fail "$_t" "exit status $_rc, ${_error:-$(says "$_n" "$_d" | tail -n 2 | xargs)}" ;;
	esac
}
away_cookie() { on "$1" "cat /dev/shm/region.cookie" </dev/null; }
away_exports() { on "$1" '[ -s /dev/shm/region.cookie ]' </dev/null; }

has_device() { on "$1" '[ -c /dev/xnem0 ]' </dev/null; }
has_none() { ! has_device "$1"; }
whole() { on "$1" 'xnem-leakcheck -n && ! dmesg | grep -q "BUG:\|Oops"' </dev/null; }

# busy G OTHER: each copies with the other's region.
busy() {
	for _x in $1 $2; do
		on "$_x" 'rm -f /dev/shm/region.cookie' </dev/null
		away region "$_x" export --cookie-file /dev/shm/region.cookie --hold $((500 * SLOW)) --bytes $bytes --access rw --pattern 5
		wait_for 30 away_exports "$_x" || fail "$t-export" "$(says region "$_x" | tail -n 1)"
	done
	away copies "$1" stream "$(away_cookie "$2")" --bytes $bytes --seconds $((400 * SLOW)) --chunk 300000 --depth 4
	away copies "$2" stream "$(away_cookie "$1")" --bytes $bytes --seconds $((400 * SLOW)) --chunk 20000 --depth 8 --put
	check $t-busy-$1 away_moves copies "$1"
	check $t-busy-$2 away_moves copies "$2"
}
quiet() {
	for _x in "$@"; do
		on "$_x" 'killall -9 xnem-test 2>/dev/null; rm -f /dev/shm/region.cookie' </dev/null
	done
}
# new_works TEST G OTHER
new_works() {
	export_start fresh "$2" root --bytes $bytes --access r --pattern 7 || return
	try "$1" "$3" root pull "$cookie_fresh" --bytes $bytes --verify 7
	export_stop fresh
}

for g in g1 g2; do
	if [ $g = g1 ]; then o=g2; else o=g1; fi
	eval "type=\$TYPE_$g"

	t=$type-checkpoint
	step "a checkpoint of $g ($type) in the middle of copies"
	busy $g $o
	domid=$(guest_domid $g)
	check $t guest_checkpoint $g $file
	rm -f $file
	check $t-same-domain [ "$(guest_domid $g)" = "$domid" ]
	check $t-goes-on-$g away_moves copies $g
	check $t-goes-on-$o away_moves copies $o
	try $t-region-lives $o root pull "$(away_cookie $g)" --bytes 1000
	quiet $g $o
	settled $t-settled

	t=$type-idle
	step "$g ($type) is saved and restored, its device idle"
	on $g 'rm -f /dev/shm/region.cookie' </dev/null
	away region $g export --cookie-file /dev/shm/region.cookie --hold $((500 * SLOW)) --bytes $bytes --access rw --pattern 5
	wait_for 30 away_exports $g
	old=$(away_cookie $g)
	try $t-before $o root pull "$old" --bytes $bytes --verify 5
	check $t-save guest_save $g $file
	check $t-stale xnem-detach --stale
	check $t-restore guest_restore $g $file
	rm -f $file
	check $t-no-device wait_for 10 has_none $g
	check $t-whole whole $g
	try $t-region-gone $o root pull "$old" --bytes 10 --expect ENOENT
	check $t-attach xnem-attach $g backend=drv --wait --timeout 60
	check $t-connected wait_for 20 device_ready $g
	new_works $t-new-works $g $o
	quiet $g
	settled $t-settled

	t=$type-busy
	step "$g ($type) is saved and restored in the middle of copies"
	busy $g $o
	old=$(away_cookie $g) others=$(away_cookie $o)
	check $t-save guest_save $g $file
	away_told $t-told-$o copies $o 20 21
	check $t-stale xnem-detach --stale
	check $t-restore guest_restore $g $file
	rm -f $file
	away_told $t-told-$g copies $g 22 23 25
	check $t-no-device wait_for 10 has_none $g
	check $t-attach xnem-attach $g backend=drv --wait --timeout 60
	check $t-connected wait_for 20 device_ready $g
	try $t-region-gone $o root pull "$old" --bytes 10 --expect ENOENT
	try $t-other-region-lives $g root pull "$others" --bytes 1000
	new_works $t-new-works $g $o
	quiet $g $o
	settled $t-settled

	# What a service does that attaches as soon as the domain is there.
	t=$type-early
	step "$g ($type) is restored with a device that is there before it runs"
	busy $g $o
	old=$(away_cookie $g)
	check $t-save guest_save $g $file
	away_told $t-told-$o copies $o 20 21
	check $t-restore guest_restore $g $file -p
	rm -f $file
	check $t-attach xnem-attach $g backend=drv --timeout 0
	xl unpause $g
	check $t-answers guest_answers $g
	check $t-connected wait_for 20 device_ready $g
	away_told $t-told-$g copies $g 22 24 25
	try $t-region-gone $o root pull "$old" --bytes 10 --expect ENOENT
	new_works $t-new-works $g $o
	quiet $g $o
	check $t-stale xnem-detach --stale
	settled $t-settled
	: >/run/testbed/attached/$g
done
