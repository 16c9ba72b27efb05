# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: copies from g1 to g2: Xen alone, XNEM, libxenvchan and Xen's network, in turn
# needs: guests=2 modules=yes
# shellcheck disable=SC2016,SC2153 # expanded over there; OUT and others are set by lib.sh
#
# --set REPEATS=3   how often each measurement is made, in turn with the floor's
#
# Leaves for bench/copy/run, in $OUT: NAME.xnem (a JSON record a line), NAME.N.before and
# .after (counters, DOMAIN.KEY VALUE a line), NAME.N.floor, and *.json of xnem-perf.

: "${REPEATS:=3}"
address=$(address_of g1)
[ -n "$address" ] || die network "g1 has no address"

look() { counters "$1" g1 g2 "$BACKEND"; }

# next: the next line that the client in g2 says. Its output is a pipe, so nothing polls
# while it measures.
next() { on -t 600 g2 'read -r line </run/rows; echo "$line"' </dev/null; }

# measure NAME BYTES OFFSETS ITERATIONS: XNEM and the floor in turn, on the same pages
measure() {
	step "$1: $2 bytes, XNEM and the floor in turn, $REPEATS times $4"
	on g2 'rm -f /run/rows; mkfifo /run/rows' </dev/null
	# 3: the pipe never ends, whoever reads it
	on_bg client -t 1800 g2 "exec 3<>/run/rows; exec xnem-perf client $address --step --json \
		--size $2 --offset $3 --iterations $4 >/run/rows 2>&1"
	[ "$(next)" = "[" ] && line=$(next) || line=
	case $line in
	ready*) ;;
	*) fail "$1" "client: $line"; kill_bg client; return ;;
	esac
	: >"$OUT/$1.xnem"
	r=0
	while [ $r -lt "$REPEATS" ]; do
		r=$((r + 1))
		look "$1.$r.before"
		row=$(on -t 600 g2 'kill -USR1 $(pidof xnem-perf); read -r line </run/rows; echo "$line"' </dev/null)
		look "$1.$r.after"
		echo "$row" >>"$OUT/$1.xnem"
		on -t 600 "$BACKEND" "f=/sys/kernel/debug/xnem-backend/floor
			echo ${line#ready } $4 >\$f && cat \$f" </dev/null >"$OUT/$1.$r.floor" ||
			fail "$1-floor" "round $r"
	done
	on g2 'kill $(pidof xnem-perf)' </dev/null
	if wait_bg client; then pass "$1"; else fail "$1" "client: exit status $?"; fi
}

# client NAME ARGS...: one run of the client, with counters
client() {
	name=$1
	shift
	step "$name: xnem-perf client $*"
	look "$name.1.before"
	if on -t 900 g2 "xnem-perf client $address --json $*" </dev/null >"$OUT/$name.json" 2>"$OUT/$name.err"; then
		pass "$name"
	else
		fail "$name" "exit status $?: $(tail -n 1 "$OUT/$name.err")"
	fi
	look "$name.1.after"
}

{
	echo "linux $(uname -r)"
	xl info | sed -n 's/^xen_version *: /xen /p'
} >"$OUT/versions"

on_bg server -t 3000 g1 "exec xnem-perf server"
wait_for 20 grep -q listening "$OUT/server.out" || die server "does not listen"

# The quick and the surest first.
client ping --test ping --iterations 300
client ping_calls --test ping --iterations 10 --syscalls
client message8 --test message --size 8 --iterations 200 --verify
client tcp8 --test tcp --size 8 --iterations 200 --verify
client checked --sizes 4K:16M --iterations 2 --verify --syscalls
client checked_odd --size 1M --offset 33:4033 --iterations 2 --verify --syscalls

measure copy-4096 4096 0 200
measure copy-16384 16384 0 100
measure copy-65536 65536 0 50
measure copy-262144 262144 0 20
measure copy-1048576 1048576 0 10
measure odd-1048576 1048576 33:4033 10
measure copy-4194304 4194304 0 5
measure copy-16777216 16777216 0 3

client deep4k --test bw --size 4K --depth 16 --iterations 320 --verify
client deep1m --test bw --size 1M --depth 8 --iterations 16 --verify
client tcp1m --test tcp --size 1M --iterations 5 --verify

if on g1 'command -v vchan-pair >/dev/null' </dev/null; then
	step "libxenvchan, ring of 256 KiB"
	on_bg vserver -t 600 g1 "exec vchan-pair server $(guest_domid g2) data/bench 262144"
	if on -t 600 g2 "vchan-pair client $(guest_domid g1) /local/domain/$(guest_domid g1)/data/bench \
			8:200 1048576:5" </dev/null >"$OUT/vchan.json" 2>"$OUT/vchan.log"; then
		pass vchan
	else
		fail vchan "exit status $?: $(tail -n 1 "$OUT/vchan.log") $(tail -n 1 "$OUT/vserver.err")"
	fi
	kill_bg vserver
fi
kill_bg server
