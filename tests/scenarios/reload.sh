# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: modules unloaded and loaded again; regions of before are gone and say so
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

be=$([ "$BACKEND" = dom0 ] && echo dom0 || echo drv)
disconnected() { ! connected "$1"; }
not() { ! "$@"; }
back() { check "$1" wait_for 30 connected "$2"; }

step "a device that is unbound while a process has it open"
export_start a g1 root --bytes 300000 --pattern 1 --access r || exit
check module-held not frontend_unload g1 --timeout 0
check device-gone on g1 '[ ! -e /dev/xnem0 ] && [ -d /sys/module/xnem_frontend ]' </dev/null
try region-gone g2 root pull "$cookie_a" --bytes 10 --expect ENOENT
export_stop a
wait_for 10 on g1 rmmod xnem_frontend </dev/null || fail unload-after-close
check load-after-close guest_load g1
back reconnect-after-close g1

step "frontends unloaded and loaded again"
for g in g1 g2; do
	check unload-$g frontend_unload $g
	check no-device-$g on $g '[ ! -e /dev/xnem0 ] && [ ! -d /sys/module/xnem_frontend ]' </dev/null
	check load-$g guest_load $g
	back reconnect-$g $g
done
export_start b g1 root --bytes 300000 --pattern 1 --access r || exit
try copy-after-frontend g2 root pull "$cookie_b" --bytes 300000 --verify 1

step "the backend unloaded while regions exist and a copy runs"
on_bg copier -t 120 g2 "exec xnem-test stream $cookie_b --bytes 300000 --seconds 100"
sleep 2
check unload-backend backend_unload "$be"
start=$(uptime_ms)
wait_bg copier
rc=$?
ms=$(($(uptime_ms) - start))
# Not that the region or its owner is gone: the backend is, another way may be tried.
case $rc in
22 | 24 | 25) check copier-told [ $ms -lt $((5000 * SLOW)) ] ;;
*) fail copier-told "exit status $rc: $(tail -n 2 "$OUT/copier.out" "$OUT/copier.err")" ;;
esac
check frontend-knows wait_for 10 disconnected g1
try no-backend g1 root export --bytes 5000 --hold 0 --expect ENOTCONN
settled unloaded-settled-g2 g2

step "the backend loaded again"
check load-backend on "$be" 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null
back backend-back-g1 g1
back backend-back-g2 g2
# Another life: the library sees another fabric id, the backend has no such region.
try old-region-gone g2 root pull "$cookie_b" --bytes 10 --expect EXDEV
try old-region-unknown g2 root pull "$(echo "$cookie_b" | cut -c1-32)$(fabric_of g2)" --bytes 10 --expect ENOENT
export_stop b
export_start c g1 root --bytes 300000 --pattern 7 --access r || exit
try copy-after-backend g2 root pull "$cookie_c" --bytes 300000 --verify 7
export_stop c
settled reload-settled

step "the backend is another one when a paused guest looks again"
export_start d g1 root --bytes 300000 --pattern 2 --access r || exit
try before-pause g2 root pull "$cookie_d" --bytes 300000 --verify 2
xl pause g2
check unload-while-paused backend_unload "$be"
check load-while-paused on "$be" 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null
sleep 3
xl unpause g2
back paused-back g2
back unpaused-back g1
export_stop d
export_start e g1 root --bytes 300000 --pattern 3 --access r || exit
try after-pause g2 root pull "$cookie_e" --bytes 300000 --verify 3

step "a device is detached in the middle of a copy into it"
export_start f g1 root --bytes 8000000 --access rw || exit
on_bg hangup g1 "exec xnem-test hangup --seconds 60"
on_bg copier -t 120 g2 "exec xnem-test stream $cookie_f --put --bytes 8000000 --seconds 100"
wait_for 30 grep -q . "$OUT/copier.out" || fail stream "does not copy"
faults=$(counter "$be" xnem-backend/total error_fault)
check detach xnem-detach g1
wait_bg copier
check copier-told-of-detach [ $? -ge 20 ]
check poll-told wait_bg hangup
# A fault would be a page that was revoked before the backend had let go of it.
check no-fault [ "$(counter "$be" xnem-backend/total error_fault)" = "$faults" ]
export_stop e f
check attach xnem-attach g1 "backend=$BACKEND" --wait --timeout 60
wait_for 20 on g1 '[ -e /dev/xnem0 ]' </dev/null
on g1 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
settled detach-settled

step "unloaded and loaded again, ten times over"
ok=yes
for i in 1 2 3 4 5 6 7 8 9 10; do
	frontend_unload g1 && on g1 'insmod /lib/modules/xnem/xnem-frontend.ko' </dev/null || ok="no: round $i"
done
check ten-times [ "$ok" = yes ]
back ten-times-back g1
on g1 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
settled ten-times-settled
