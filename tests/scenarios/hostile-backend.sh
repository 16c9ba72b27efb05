# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a hostile backend: the guest's processes get errors in time, its pages stay its own (XSA-376, -396, -405)
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

# Of a region that the hostile backend says it has: id, key, its fabric id.
cookie=010000000000000002000000000000001122334455667788

frontend() { counter g1 xnem/xnem0 "$1"; }
backend_start() { # ATTACK
	on_bg hb -t 200 drv "exec xnem-hostile-backend $1 $(guest_domid g1)"
	# Without a backend that connects this would take half a minute.
	check "$1-frontend" on g1 '[ -d /sys/module/xnem_frontend ] || insmod /lib/modules/xnem/xnem-frontend.ko' </dev/null
	wait_for 30 grep -q connected "$OUT/hb.out" || fail "$1-connects" "$(cat "$OUT/hb.out" "$OUT/hb.err")"
}
backend_signal() { on drv 'kill $(pidof xnem-hostile-backend)' </dev/null; }
backend_end() { # ATTACK: it found what must be so
	if wait_bg hb; then pass "$1"; else fail "$1" "exit status $?: $(tail -n 1 "$OUT/hb.out") $(tail -n 1 "$OUT/hb.err")"; fi
}
# As after the end of a backend that is honest at least in this.
backend_gone() { on drv "xenstore-write backend/xnem/$(guest_domid g1)/0/state 6" </dev/null; }
attacked() { grep -q attacked "$OUT/hb.out"; }
# A frontend that has seen a backend break the rules wants to be made anew, as detaching and
# attaching does; backend_start loads it again.
renew() {
	backend_gone
	frontend_unload g1
}
# told NAME START: the process that waited has an error, within 5 s of the attack.
told() {
	wait_bg client
	_rc=$?
	_ms=$(($(uptime_ms) - $2))
	if [ $_rc = 0 ] || [ $_rc = 124 ] || [ $_rc = 125 ] || [ $_rc -gt 128 ]; then
		fail "$1" "exit status $_rc: $(tail -n 1 "$OUT/client.out" "$OUT/client.err")"
	elif [ $_ms -gt $((5000 * SLOW)) ]; then
		fail "$1" "took $_ms ms"
	else
		pass "$1" "$_ms ms"
	fi
}

step "no xnem-backend in the driver domain"
check unload-backend backend_unload drv
check no-backend on drv '[ ! -d /sys/module/xnem_backend ]' </dev/null
log_forget g1

for how in $(on drv 'xnem-hostile-backend list' </dev/null | sed -n 's/ cut$//p'); do
	step "$how"
	backend_start "$how"
	on_bg client -t 60 g1 "exec xnem-test lat $cookie --bytes 5000 --count 1000"
	wait_for 30 attacked || fail "$how-attacked" "$(cat "$OUT/hb.err" "$OUT/client.err")"
	start=$(uptime_ms)
	case $how in
	# Its process had all its answers before.
	refuses-to-let-go) wait_bg client ;;
	*) told "told-$how" "$start" ;;
	esac
	backend_end "ended-$how"
	log_lines g1 "log-$how" 1 1
	settled "settled-$how" g1
	check "renew-$how" renew
done

step "events without end, and wants of nothing"
for how in storm wants; do
	backend_start $how
	try "copies-$how" g1 root lat $cookie --bytes 5000 --count 20
	check "attacked-$how" attacked
	backend_signal
	backend_end "ended-$how"
	backend_gone
	log_lines g1 "log-$how" 0
	settled "settled-$how" g1
done

step "never an answer: a process can be killed, and is told when the device goes"
backend_start never
on_bg client -t 100 g1 "exec xnem-test lat $cookie --bytes 5000 --count 10"
wait_for 30 attacked || fail never-attacked
sleep 1
on g1 'kill -9 $(pidof xnem-test)' </dev/null
wait_bg client
check never-killed wait_for 5 on g1 '! pidof xnem-test' </dev/null
on_bg client -t 100 g1 "exec xnem-test ping --count 1"
sleep 1
# The toolstack's word; the backend says nothing.
start=$(uptime_ms)
on drv "xenstore-write backend/xnem/$(guest_domid g1)/0/state 5" </dev/null
wait_bg client
ms=$(($(uptime_ms) - start))
# After 5 s (XNEM_FE_STUCK), not by its own time limit of 10 s.
if grep -qE 'ENOTCONN|ENODEV' "$OUT/client.out" "$OUT/client.err"; then pass never-told "$ms ms"; else fail never-told "$(cat "$OUT/client.out" "$OUT/client.err")"; fi
backend_signal
wait_bg hb
backend_gone
settled never-settled g1
check renew-never renew

step "a page that the backend keeps mapped"
backend_start keep
start=$(uptime_ms)
try keep-copies g1 root pull $cookie --bytes 4096
check keep-exit-does-not-wait [ $(($(uptime_ms) - start)) -lt $((5000 * SLOW)) ]
check keep-attacked attacked
wait_for 5 [ "$(frontend quarantined)" = 1 ]
check keep-quarantined [ "$(frontend quarantined)" -ge 1 ]
check keep-still-pinned [ "$(frontend pinned)" -gt "$(frontend unpinned)" ]
# A second process gets other pages.
try keep-others g1 root pull $cookie --bytes 4096
check keep-quarantined-alone [ "$(frontend quarantined)" = 1 ]
backend_signal
backend_end keep-ended
backend_gone
settled keep-settled g1

step "limits that make no sense"
backend_start limits
backend_end limits
log_lines g1 log-limits 12 12
backend_gone
settled limits-settled g1
check renew-limits renew

step "a backend that keeps the pages of each connection"
backend_start keep-rings
backend_end keep-rings
log_lines g1 log-keep-rings 1 1
backend_gone
settled keep-rings-settled g1
check renew-keep-rings renew

step "states that flap, while processes come and go"
backend_start flap
on_bg churn -t 100 g1 'n=0; while [ $n -lt 200 ]; do xnem-test ping --count 1 >/dev/null 2>&1; n=$((n + 1)); done'
backend_end flap
kill_bg churn
backend_gone
log_lines g1 log-flap 20
settled flap-settled g1
check renew-flap renew

step "the honest backend again"
check load-backend on drv 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null
check load-frontend on g1 'insmod /lib/modules/xnem/xnem-frontend.ko' </dev/null
for g in g1 g2; do
	check back-$g wait_for 30 device_ready $g
	on $g 'ln -sf xnem0 /dev/xnem' </dev/null
done
export_start again g2 root --bytes 5000 --pattern 4 --access r --any || exit
try ordinary-again g1 root pull "$cookie_again" --bytes 5000 --verify 4
export_stop again
settled hostile-backend-settled
