# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: killed processes and destroyed guests in the middle of copies (hpc/xpmem#4, linux-2.6.18-xen ef9e715c)
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

bytes=8000000
gone() { ! xl list | grep -q "^$1 \|(null)"; }

# started NAME: the stream of that name copies.
started() { grep -q . "$OUT/$1.out" 2>/dev/null; }
stream_start() { # NAME DOM COOKIE OPTIONS
	_n=$1 _d=$2 _c=$3
	shift 3
	on_bg "$_n" -t 300 "$_d" "exec xnem-test stream $_c --bytes $bytes --seconds 250 $*"
	wait_for 60 started "$_n" || fail "stream-$_n" "does not copy: $(cat "$OUT/$_n.err")"
}
# ended NAME TEST MAX_MS START: the stream ended in time, with an error that says so.
ended() {
	wait_bg "$1"
	_rc=$?
	_ms=$(($(uptime_ms) - $4))
	case $_rc in
	20 | 21 | 22 | 2) ;;
	*) fail "$2" "exit status $_rc: $(tail -n 2 "$OUT/$1.out" "$OUT/$1.err")"; return ;;
	esac
	# 2: another error than those of a peer that went away.
	if [ $_rc = 2 ] && ! grep -q EFAULT "$OUT/$1.out" "$OUT/$1.err"; then
		fail "$2" "$(tail -n 2 "$OUT/$1.out" "$OUT/$1.err")"
	elif [ $_ms -gt $(($3 * SLOW)) ]; then
		fail "$2" "took $_ms ms"
	else
		pass "$2" "$_ms ms, $(sed -n 's/^error=//p' "$OUT/$1.out")"
	fi
}

for way in get put; do
	step "the owner of the region is killed, during a $way"
	export_start victim g1 root --bytes $bytes --access rw --pattern 1 || exit
	stream_start copier g2 "$cookie_victim" "$([ $way = get ] || echo --put)"
	on g1 'kill -9 $(pidof xnem-test)' </dev/null
	start=$(uptime_ms)
	ended copier owner-killed-$way 5000 "$start"
	check owner-gone-$way on g1 '! pidof xnem-test' </dev/null
	kill_bg victim
	settled owner-killed-$way-settled

	step "the copying process is killed, during a $way"
	export_start owner g1 root --bytes $bytes --access rw --pattern 1 || exit
	stream_start copier g2 "$cookie_owner" "$([ $way = get ] || echo --put)"
	on g2 'kill -9 $(pidof xnem-test)' </dev/null
	wait_bg copier
	check copier-gone-$way on g2 '! pidof xnem-test' </dev/null
	settled copier-killed-$way-settled g2
	try region-lives-on-$way g2 root pull "$cookie_owner" --bytes 1000 \
		"$([ $way = put ] || echo --verify 1)"
	export_stop owner
	settled copier-killed-$way-settled-all
done

# owner_destroyed G OTHER: the survivor gets an error in time, and nothing stays.
owner_destroyed() {
	step "guest g$1 is destroyed while g$2 copies from it"
	export_start victim "g$1" root --bytes $bytes --access r --pattern 1 || exit
	stream_start copier "g$2" "$cookie_victim"
	start=$(uptime_ms)
	guest_destroy "g$1"
	ended copier "destroyed-owner-g$1" 10000 "$start"
	kill_bg victim
	check "no-zombie-owner-g$1" wait_for 20 gone "g$1"
	settled "destroyed-owner-g$1-settled"
	check "stale-owner-g$1" xnem-detach --stale
}
copier_destroyed() {
	step "guest g$1 is destroyed while it copies from g$2"
	export_start owner "g$2" root --bytes $bytes --access rw --pattern 1 || exit
	stream_start copier "g$1" "$cookie_owner" --put
	guest_destroy "g$1"
	kill_bg copier
	check "no-zombie-copier-g$1" wait_for 20 gone "g$1"
	try "region-outlives-g$1" "g$2" root pull "$cookie_owner" --bytes 5000
	export_stop owner
	settled "destroyed-copier-g$1-settled"
	check "stale-copier-g$1" xnem-detach --stale
}

owner_destroyed 1 2
guest_create g1 && guest_attach g1 || die recreate g1
copier_destroyed 1 2
guest_create g1 && guest_attach g1 || die recreate-again g1
export_start again g1 root --bytes 5000 --access r --pattern 3 || exit
try new-guest-works g2 root pull "$cookie_again" --bytes 5000 --verify 3
export_stop again
# The other kind of guest; the testbed makes it again after the scenario.
owner_destroyed 2 1

alive=0
for g in $GUESTS; do
	[ -z "$(guest_domid "$g")" ] || alive=$((alive + 1))
done
check xenstore-clean [ "$(xenstore-ls -f / | grep -c '/backend/xnem/[0-9]*/[0-9]* = ')" = $alive ]
