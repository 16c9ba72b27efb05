# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: xnem-attach, xnem-detach and xnem-list against a real xenstore and real drivers
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC2016 # commands in single quotes are expanded over there

g1=$(guest_domid g1) g2=$(guest_domid g2)
if [ "$BACKEND" = dom0 ]; then be=0; else be=$(guest_domid drv); fi
front=/local/domain/$g1/device/xnem/0
back=/local/domain/$be/backend/xnem/$g1/0

# exits NAME STATUS CMD...: output stays in $OUT/NAME
exits() {
	_name=$1 _want=$2
	shift 2
	"$@" >"$OUT/$_name" 2>&1
	_got=$?
	if [ $_got -eq "$_want" ]; then
		pass "$_name"
	else
		fail "$_name" "exit status $_got, not $_want: $(tail -n 1 "$OUT/$_name")"
	fi
}
says() { check "$1-says" grep -q "$2" "$OUT/$1"; }
# Nothing of guest $1's devices in xenstore, messages included.
clean() { ! xenstore-ls -f / | grep -q "/local/domain/$1/\(error/\)\?device/xnem\|backend/xnem/$1[/ ]"; }
has_device() { on "$1" '[ -e /dev/xnem0 ]' </dev/null; }
has_no_device() { ! has_device "$1"; }
hidden_from() { ! on "$1" "xenstore-read $back/zone 2>/dev/null" </dev/null; }
connected() { [ "$(xenstore-read "$front/state")$(xenstore-read "$back/state")" = 44 ]; }

step "what is attached at the start"
exits list 0 xnem-list
says list "^g1  *$g1  *0  .*Connected  *Connected"
exits list-json 0 xnem-list --json g2
says list-json '"guest_state": "Connected", "backend_state": "Connected"'

step "refusals"
exits unknown-guest 3 xnem-attach nobody "backend=$BACKEND"
exits unknown-backend 5 xnem-attach g1 backend=nobody id=7
exits attached-already 4 xnem-attach g1 "backend=$BACKEND"
exits bad-zone 2 xnem-attach g1 "backend=$BACKEND" zone=a/b id=7
exits no-such-device 4 xnem-detach g1 id=7

step "permissions"
check front-perms [ "$(xenstore-ls -fp "$front" | sed -n 's/.*\/state = .*(\(.*\))/\1/p')" = "n$g1,r$be" ]
check back-perms [ "$(xenstore-ls -fp "$back" | sed -n 's/.*\/state = .*(\(.*\))/\1/p')" = "n$be,r$g1" ]
check guest-reads-backend on g1 "xenstore-read $back/fabric-id" </dev/null
check zone-hidden-from-guest hidden_from g1
check zone-hidden-from-other hidden_from g2
[ "$be" = 0 ] || check zone-read-by-backend on drv "xenstore-read $back/zone" </dev/null

step "detach, with the zone's name watched by the guest at the next attach"
exits detach 0 xnem-detach g1
check detach-clean clean "$g1"
check detach-device-gone wait_for 10 has_no_device g1
on_bg spy g1 "n=0; while [ \$n -lt 400 ]; do xenstore-read $back/zone 2>/dev/null && break; n=\$((n + 1)); done"
exits attach-zone 0 xnem-attach g1 "backend=$BACKEND" zone=Some.zone_2 --wait --timeout 60
says attach-zone "connected: .*zone Some.zone_2"
check attach-device wait_for 10 has_device g1
kill_bg spy
check zone-never-seen [ ! -s "$OUT/spy.out" ]
other=$(xenstore-read "/local/domain/$be/backend/xnem/$g2/0/fabric-id")
check another-zone-another-fabric [ "$(xenstore-read "$back/fabric-id")" != "$other" ]
exits detach-again 0 xnem-detach "$g1"
exits attach-default 0 xnem-attach g1 "backend=$BACKEND" --wait --timeout 60
check same-zone-same-fabric [ "$(xenstore-read "$back/fabric-id")" = "$other" ]

step "a guest without the module"
exits detach-for-rmmod 0 xnem-detach g1
check rmmod on g1 rmmod xnem-frontend </dev/null
exits attach-no-frontend 0 xnem-attach g1 "backend=$BACKEND"
says attach-no-frontend "as soon as xnem-frontend is loaded"
check load-later guest_load g1
check connects-later wait_for 20 connected
exits detach-for-wait 0 xnem-detach g1
on g1 rmmod xnem-frontend </dev/null
exits attach-no-frontend-wait 8 xnem-attach g1 "backend=$BACKEND" --wait --timeout 3
check wait-clean clean "$g1"

step "a backend without the module"
if [ "$BACKEND" = drv ]; then
	exits attach-no-backend 6 xnem-attach g1 backend=dom0 --timeout 3
	says attach-no-backend "is xnem-backend loaded there"
	check no-backend-clean clean "$g1"
else
	exits attach-no-backend 6 xnem-attach g1 backend=g2 --timeout 3
fi
check frontend-again on g1 insmod /lib/modules/xnem/xnem-frontend.ko </dev/null
exits attach-at-the-end 0 xnem-attach g1 "backend=$BACKEND" --wait --timeout 60
check device-at-the-end wait_for 10 has_device g1
on g1 'chgrp xnem /dev/xnem*; chmod 660 /dev/xnem*' </dev/null

step "what a destroyed guest leaves"
guest_destroy g2
exits list-leftover 0 xnem-list
exits stale 0 xnem-detach --stale
check stale-clean clean "$g2"
check stale-keeps-others connected
