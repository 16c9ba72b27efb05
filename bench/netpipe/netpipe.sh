# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: NetPIPE between g1 and g2, over Xen's network and over XNEM in turn
# needs: guests=2 modules=yes
# shellcheck disable=SC1091,SC2016,SC2153 # read in dom0; expanded over there; set by lib.sh
#
# --set WAYS="xennet xnem"   what is measured, in turn
# --set ROUNDS=2             how often
# --set MORE=yes             also integrity, counts, halo exchange, libxenvchan
# --set UPPER=8388608        the largest message
#
# Leaves for bench/netpipe/run, in $OUT: ROUND-WAY-PART.np (NetPIPE's: bytes, throughput,
# seconds), count-WAY.N (N messages each way) with .before and .after, WAY.halo, vchan.json.
. /usr/lib/testbed/mpi.sh

: "${WAYS:=xennet xnem}" "${ROUNDS:=2}" "${MORE:=yes}" "${UPPER:=8388608}"
mpi_there || die mpich "is not in the guests"

look() { counters "$1" g1 g2 "$BACKEND"; }

# run TEST WAY ARGS...: a test: a job with or without XNEM
run() {
	t=$1 x=off
	[ "$2" = xennet ] || x=on
	shift 2
	if mpi -t 1200 -x $x "$@" >"$OUT/$t.out" 2>&1; then
		pass "$t"
	else
		fail "$t" "exit status $?: $(tail -n 1 "$OUT/$t.out")"
	fi
}

{
	echo "linux $(uname -r)"
	xl info | sed -n 's/^xen_version *: /xen /p'
	on g1 "sed -n 's/^mpich //p' $MPICH/version 2>/dev/null" </dev/null | sed 's/^/mpich /'
} >"$OUT/versions"

r=0
while [ $r -lt "$ROUNDS" ]; do
	r=$((r + 1))
	for way in $WAYS; do
		step "round $r of $ROUNDS, $way: NetPIPE"
		look "$r-$way.before"
		# Small messages take little time: more of them.
		run "$r-$way-small" "$way" -n 2 NPmpich2 -p 0 -u 49152 -n 30 -o /dev/shm/small.np
		run "$r-$way-large" "$way" -n 2 NPmpich2 -p 0 -l 65536 -u "$UPPER" -n 3 -o /dev/shm/large.np
		look "$r-$way.after"
		for part in small large; do
			get "g1:/dev/shm/$part.np" "$OUT/$r-$way-$part.np"
		done
	done
done
[ "$MORE" = yes ] || exit 0

for way in $WAYS; do
	# What the second has more of is of warm messages alone.
	for n in 2 32; do
		step "$way: counts of 1 MiB, $n"
		look "count-$way.$n.before"
		run "count-$way-$n" "$way" -n 2 NPmpich2 -p 0 -l 1048576 -u 1048576 -n $n -o /dev/shm/count.np
		look "count-$way.$n.after"
	done
	step "$way: halo exchange, 4 ranks"
	run "$way-halo" "$way" -ppn 2 -n 4 halo
	step "$way: integrity, as an unprivileged user"
	run "$way-integrity" "$way" -u user -n 2 NPmpich2 -i -p 0 -u "$UPPER" -n 1 -o /dev/shm/integrity.np
	check "$way-integrity-passed" grep -q "Integrity check passed" "$OUT/$way-integrity.out"
	check "$way-integrity-only" [ "$(grep -c 'times -->' "$OUT/$way-integrity.out")" = "$(grep -c 'check passed' "$OUT/$way-integrity.out")" ]
done

if on g1 'command -v vchan-pair >/dev/null' </dev/null; then
	step "libxenvchan, ring of 256 KiB"
	on_bg vserver -t 600 g1 "exec vchan-pair server $(guest_domid g2) data/bench 262144"
	if on -t 600 g2 "vchan-pair client $(guest_domid g1) /local/domain/$(guest_domid g1)/data/bench \
			1:200 1024:200 16384:50 65536:20 262144:10 1048576:5 8388608:2" </dev/null >"$OUT/vchan.json" 2>"$OUT/vchan.log"; then
		pass vchan
	else
		fail vchan "exit status $?: $(tail -n 1 "$OUT/vchan.log") $(tail -n 1 "$OUT/vserver.err")"
	fi
	kill_bg vserver
fi
