# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: the library's examples, between a PV and a PVH guest, as a user
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

address=$(address_of g1)

# client NAME DOM ARGS...: a test, its output kept
client() {
	_t=$1 _d=$2
	shift 2
	if on -t 60 -u user "$_d" "$* 2>&1" </dev/null >"$OUT/$_t.out"; then
		pass "$_t"
	else
		fail "$_t" "exit status $?: $(tail -n 1 "$OUT/$_t.out")"
	fi
}
says() { check "$1-says" grep -q "$2" "$OUT/$1.out"; }

step "a pair that exchanges a buffer"
on_bg pair_owner -t 60 -u user g1 "exec xnem-pair 7801"
client pair g2 xnem-pair "$address" 7801
says pair "the other side has: a question"
check pair-owner wait_bg pair_owner
says pair_owner "has written: an answer"

step "a vectored gather"
on_bg gather_owner -t 60 -u user g1 "exec xnem-gather 7802"
client gather g2 xnem-gather "$address" 7802
says gather "bytes=120056 all right"
check gather-owner wait_bg gather_owner

step "a server in an event loop, its clients at once and in both guests"
on_bg serve -t 200 -u user g1 "exec xnem-serve 7803 9"
check serve-listens wait_for 20 grep -q listening "$OUT/serve.out"
client serve-one g2 xnem-serve "$address" 7803 1
client serve-odd g2 xnem-serve "$address" 7803 4097
clients=
for n in 1 2 3 4 5; do
	on_bg "serve_g2_$n" -t 100 -u user g2 "exec xnem-serve $address 7803 $((n * 200001))"
	clients="$clients serve_g2_$n"
done
on_bg serve_g1 -t 100 -u user g1 "exec xnem-serve $address 7803 500000"
for n in $clients serve_g1; do
	check "$n" wait_bg "$n"
	says "$n" "all right"
done
# root's buffer is not the server's to read: it goes on, and that client is not told
on -t 20 g2 "timeout 3 xnem-serve $address 7803 100" </dev/null >"$OUT/serve_root.out" 2>&1
check serve-root [ $? -ne 0 ]
check serve-server wait_bg serve
says serve "jobs=8 failed=1"
settled examples-settled
