# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: the backend in dom0, and the other kinds of guests: g1 PVH, g2 PV
# needs: guests=2 modules=yes backend=dom0 type=g1:pvh,g2:pv
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

for pair in "g1 g2" "g2 g1"; do
	from=${pair% *} to=${pair#* }
	step "$from to $to"
	export_start src "$from" root --bytes 1500000 --offset 4033 --access r --pattern 9 &&
		export_start dst "$from" root --bytes 1500000 --offset 33 --access rw || exit
	try "matrix-$from-$to" "$to" root matrix "$cookie_src" "$cookie_dst" --bytes 1500000 --seed 9
	export_stop src dst
done
try args-pvh g1 root args
settled dom0-settled
check backend-settled on dom0 xnem-leakcheck </dev/null

step "the owner is killed"
export_start victim g1 root --bytes 3000000 --access r || exit
on_bg copier -t 120 g2 "exec xnem-test stream $cookie_victim --bytes 3000000 --seconds 100"
wait_for 30 grep -q . "$OUT/copier.out" || fail stream "does not copy"
on g1 'kill -9 $(pidof xnem-test)' </dev/null
wait_bg copier
check copier-told [ $? -ge 20 ]
kill_bg victim
settled killed-settled
