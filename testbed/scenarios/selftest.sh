# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: the emulated host itself: domains answer, commands, files, users, network
# needs: guests=2
# shellcheck disable=SC2016 # commands in single quotes are expanded over there

domains="dom0 $GUESTS"
[ "$BACKEND" = dom0 ] || domains="$domains drv"

step "domains answer and know their names"
for d in $domains; do
	check "name-$d" [ "$(on "$d" hostname)" = "$d" ]
done
for g in $GUESTS; do
	id=$(guest_domid "$g")
	check "domid-$g" [ "$(on "$g" xenstore-read domid)" = "$id" ]
done

step "exit status and output"
on g1 'echo to-out; echo to-err >&2; exit 7' >"$OUT/o" 2>"$OUT/e"
check status [ $? -eq 7 ]
check stdout [ "$(cat "$OUT/o")" = to-out ]
check stderr [ "$(cat "$OUT/e")" = to-err ]
on g2 'kill -9 $$'
check status-of-a-signal [ $? -eq 137 ]
check stdin [ "$(printf 'a\nb\n' | on g1 'wc -l' | tr -d ' ')" = 2 ]
on g1 'no-such-program' 2>/dev/null
check status-of-no-program [ $? -eq 127 ]

step "time limit, with the process group"
on -t 2 g1 'sleep 1234 & sleep 1234' 2>/dev/null
check limit-status [ $? -eq 124 ]
nobody_sleeps() { ! on g1 'ps | grep -v grep | grep -q "sleep 1234"' </dev/null; }
check limit-kills wait_for 5 nobody_sleeps

step "several at once"
on_bg a g1 'sleep 1; echo from-a; exit 3'
on_bg b g1 'sleep 1; echo from-b; exit 4'
on_bg c g1 'sleep 1234'
wait_bg a
check bg-status-a [ $? -eq 3 ]
wait_bg b
check bg-status-b [ $? -eq 4 ]
check bg-output [ "$(cat "$OUT/a.out" "$OUT/b.out" | tr '\n' ' ')" = "from-a from-b " ]
kill_bg c
check bg-kill wait_for 5 nobody_sleeps

step "files both ways, binary"
dd if=/dev/urandom of=/dev/shm/f bs=64k count=32 2>/dev/null
chmod 750 /dev/shm/f
put /dev/shm/f g1:/dev/shm/f && get g1:/dev/shm/f /dev/shm/f.back
check put-get cmp /dev/shm/f /dev/shm/f.back
check put-mode [ "$(on g1 stat -c %a /dev/shm/f)" = 750 ]
rm -f /dev/shm/f /dev/shm/f.back

step "users"
check user-id [ "$(on_user g1 'id -u; id -G' | tr '\n' ' ')" = "1000 1000 970 " ]
check user-other [ "$(on -u other g1 'id -u; id -G' | tr '\n' ' ')" = "1001 1001 " ]
check user-home [ "$(on_user g1 'echo x >~/f && stat -c %U ~/f')" = user ]

step "network between guests"
on_bg listen g2 'nc -l -p 5000 -e sh -c "md5sum >/dev/shm/sum"'
sum=$(on g1 'head -c 1000000 /dev/urandom >/dev/shm/n; n=0
	until nc g2 5000 </dev/shm/n 2>/dev/null || [ $n -ge 20 ]; do n=$((n + 1)); usleep 200000; done
	md5sum </dev/shm/n')
wait_bg listen
check network [ "$(on g2 cat /dev/shm/sum)" = "$sum" ]

step "what guests are given"
check debugfs on g1 '[ -d /sys/kernel/debug/tracing ] || ls /sys/kernel/debug/ | grep -q .'
check devices on g1 '[ -c /dev/xen/evtchn ] && [ -c /dev/xen/gntdev ] && [ -c /dev/xen/gntalloc ]'
check no-privcmd on g1 '[ ! -e /dev/xen/privcmd ] || ! grep -q xen_privcmd /proc/modules'
check xenstore on g2 'xenstore-write data/x 1 && [ "$(xenstore-read data/x)" = 1 ] && xenstore-rm data/x'
check pause-library on g1 'LD_PRELOAD=/usr/lib/xnem/libpause.so xenstore-read domid'
if [ -n "$DISK_BYTES" ]; then
	here=$(head -c 1048576 /dev/vda | md5sum)
	check disk [ "$(on g1 'modprobe xen-blkfront; head -c 1048576 /dev/xvda | md5sum')" = "$here" ]
else
	skip disk "no --disk"
fi

step "a guest that goes and comes back"
old=$(guest_domid g2)
guest_destroy g2
check destroyed [ -z "$(guest_domid g2)" ]
on -t 5 g2 true 2>/dev/null
check unreachable [ $? -ge 124 ]
guest_create g2
check recreated [ "$(guest_domid g2)" -gt "$old" ]
check answers-again [ "$(on g2 hostname)" = g2 ]
