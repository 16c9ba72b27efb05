# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: xnem-perf and xnem-stat: users, limits, all ways, a peer that vanishes
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC1091,SC2016 # read in dom0; expanded over there
. /usr/lib/xnem-tests/copies.sh

address=$(address_of g1)
listens() { grep -q listening "$OUT/$1.out"; }
# perf STATUS NAME USER ARGS...: a client in g2
perf() {
	_want=$1 _t=$2 _u=$3
	shift 3
	on -t 200 -u "$_u" g2 "xnem-perf client $address $*" </dev/null >"$OUT/$_t.out" 2>"$OUT/$_t.err"
	_rc=$?
	if [ $_rc -eq "$_want" ]; then
		pass "$_t"
	else
		fail "$_t" "exit status $_rc: $(tail -n 2 "$OUT/$_t.err")"
	fi
}
says() { check "$1-says" grep -q "$2" "$OUT/$1.$3"; }

step "a user with the default RLIMIT_MEMLOCK"
on_bg server -t 900 -u user g1 "exec xnem-perf server"
check listens wait_for 20 listens server
perf 0 user-lat user --sizes 1:1M --iterations 3 --verify
perf 0 user-put user --sizes 4095:40000 --op put --offset 1:4095 --iterations 3 --verify
perf 0 user-bw user --test bw --size 256K --iterations 20 --verify --json
perf 0 user-both user --test bw --size 64K --both --iterations 20 --verify
perf 0 user-ping user --test ping --iterations 20
perf 0 user-message user --test message --iterations 20 --verify
perf 0 user-message-both user --test message --size 8 --both --iterations 20 --verify
perf 0 user-notify user --test notify --sizes 1:64K --iterations 10 --verify
perf 0 user-notify-both user --test notify --size 4097 --offset 3 --both --iterations 20 --verify
perf 0 user-tcp user --test tcp --sizes 8:64 --iterations 5 --verify
perf 0 user-limit user --sizes 4M:16M --iterations 1 --verify
says user-limit "RLIMIT_MEMLOCK" err
says user-limit "left out" err
perf 2 user-too-large user --size 16M
says user-too-large "RLIMIT_MEMLOCK" err
perf 2 other-user other --size 4K
settled user-settled g2

step "the server vanishes in the middle"
on_bg client -t 100 -u user g2 "exec xnem-perf client $address --size 1M --iterations 100000"
sleep 3
on g1 'kill -9 $(pidof xnem-perf)' </dev/null
wait_bg client
check vanished [ $? -eq 2 ]
check vanished-says grep -q "^xnem-perf: " "$OUT/client.err"
kill_bg server
settled vanished-settled

step "counters"
check stat-guest on g2 "xnem-stat xnem0 >/dev/shm/o && grep -q '^xnem0 (frontend)' /dev/shm/o" </dev/null
check stat-json on g2 "xnem-stat --json 0.2 2 >/dev/shm/o && grep -q requests_per_second /dev/shm/o" </dev/null
check stat-backend on "$BACKEND" "[ ! -x /usr/bin/xnem-stat ] || { xnem-stat total >/dev/shm/o && grep -q 'grant operations a hypercall' /dev/shm/o; }" </dev/null
on -u user g2 "xnem-stat" </dev/null 2>"$OUT/stat-user.err"
check stat-user [ $? -eq 2 ]
check stat-user-says grep -q "as root" "$OUT/stat-user.err"

step "qubes-issues#4446: tools that run before there is a device"
# tells NAME WHAT USER PERF-SAYS: both tools end, in time and with an error; xnem-info says what is missing.
tells() {
	on -t 20 -u "$3" g2 "xnem-info" </dev/null >"$OUT/$1.info" 2>&1
	check "$1-info" [ $? -eq 1 ]
	check "$1-info-says" grep -q "^missing: .*$2" "$OUT/$1.info"
	on -t 20 -u "$3" g2 "xnem-perf client $address --test ping" </dev/null >"$OUT/$1.perf" 2>&1
	check "$1-perf" [ $? -eq 2 ]
	check "$1-perf-says" grep -q "^xnem-perf: .*$4" "$OUT/$1.perf"
}
on g2 'chmod 600 /dev/xnem0' </dev/null
tells permission "group xnem" user "group xnem"
check detach xnem-detach g2
tells no-device "xnem-attach" root "no device here: xnem-info"
check unload frontend_unload g2
tells no-module "xnem-frontend" root "no device here: xnem-info"
check attach xnem-attach g2 "backend=$BACKEND"
check load guest_load g2
check works-again wait_for 20 on g2 'xnem-info | grep -q "^state: *connected"' </dev/null
on g2 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
settled tools-settled
