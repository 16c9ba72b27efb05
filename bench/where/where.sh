# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: single copies from g1 to g2 under the modules' trace points, in both domains
# needs: guests=2 modules=yes
# shellcheck disable=SC2016,SC2153 # expanded over there; OUT and others are set by lib.sh
#
# --set COPIES=40   copies of each kind
#
# Leaves for bench/where/run, in $OUT, of each WAY-BYTES: .marks.g2, the trace with the process's
# marks alone, and .all.g2 and .all.backend, with the trace points of both modules.

: "${COPIES:=40}"
address=$(address_of g1)
[ -n "$address" ] || die network "g1 has no address"

trace() { on -t 120 "$1" "cd /sys/kernel/debug/tracing && $2" </dev/null; }

# All domains' clocks are the CPUs' own counter: tsc_mode="native" in testbed/xl.
for d in g2 "$BACKEND"; do
	trace "$d" 'echo 0 >tracing_on; echo nop >current_tracer; echo x86-tsc >trace_clock; echo 4096 >buffer_size_kb' ||
		die trace "$d: no tracefs, or it has no x86-tsc"
done

next() { on -t 600 g2 'read -r line </run/rows; echo "$line"' </dev/null; }
round() {
	for d in g2 "$BACKEND"; do
		trace "$d" "echo $2 >events/xnem/enable; echo >trace; echo 1 >tracing_on"
	done
	on -t 600 g2 'kill -USR1 $(pidof xnem-perf); read -r line </run/rows; echo "$line"' </dev/null >>"$OUT/$1.rows"
	for d in g2 "$BACKEND"; do
		trace "$d" "echo 0 >tracing_on; echo 0 >events/xnem/enable"
	done
}

# measure WAY BYTES GAP SPIN: without the trace points, then with them
measure() {
	name=$1-$2
	step "$name: $COPIES copies, with $3 us before each; the process looks for $4 us before it sleeps"
	on g2 'rm -f /run/rows; mkfifo /run/rows' </dev/null
	on_bg client -t 1800 g2 "exec 3<>/run/rows; XNEM_SPIN_US=$4 exec xnem-perf client $address --step --json \
		--marks --gap $3 --size $2 --iterations $COPIES >/run/rows 2>&1"
	[ "$(next)" = "[" ] && line=$(next) || line=
	case $line in
	ready*) ;;
	*) fail "$name" "client: $line"; kill_bg client; return ;;
	esac
	round "$name" 0
	trace g2 'cat trace' >"$OUT/$name.marks.g2"
	round "$name" 1
	trace g2 'cat trace' >"$OUT/$name.all.g2"
	trace "$BACKEND" 'cat trace' >"$OUT/$name.all.backend"
	on g2 'kill $(pidof xnem-perf)' </dev/null
	if wait_bg client; then pass "$name"; else fail "$name" "client: exit status $?"; fi
}

{
	echo "linux $(uname -r)"
	xl info | sed -n 's/^xen_version *: /xen /p'
} >"$OUT/versions"
on g2 dmesg </dev/null | sed -n 's/.*tsc: Detected \([0-9.]*\) MHz.*/mhz \1/p' >"$OUT/clock"

on_bg server -t 3000 g1 "exec xnem-perf server"
wait_for 20 grep -q listening "$OUT/server.out" || die server "does not listen"

for bytes in 4096 16384 65536; do
	measure awake $bytes 0 100000
	measure poll $bytes 2000 100000
	measure sleep $bytes 2000 0
done
kill_bg server
