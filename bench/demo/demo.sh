# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a file from g1 to g2 over XNEM and over Xen's network, in turn
# needs: guests=2 modules=yes disk=yes
#
# --set WAYS="xnem tcp xnem tcp"   what to do, in this order
#
# Leaves for bench/demo/run: N-WAY.recv and .send (what xnem-sendfile said), and N-WAY.before
# and .after (counters, DOMAIN.KEY VALUE a line).

: "${WAYS:=xnem tcp xnem tcp}"
address=$(on g1 "ip -4 addr show dev eth0" </dev/null | sed -n 's/.*inet \([0-9.]*\).*/\1/p')
[ -n "$address" ] || die network "g1 has no address"
# On a busy machine TCP between emulated guests does half a MiB a second.
limit=$((300 + DISK_BYTES / 200000))

# Interrupts of the network's event channels, then XNEM's own counters.
# shellcheck disable=SC2016 # expanded over there
look='awk "/eth0|vif[0-9]/ {for (i = 2; \$i ~ /^[0-9]+\$/; i++) n += \$i} END {print \"net_events\", n + 0}" /proc/interrupts
	for f in /sys/kernel/debug/xnem/xnem0/counters /sys/kernel/debug/xnem-backend/total/counters; do
		[ ! -e $f ] || cat $f
	done'
counters() {
	for d in g1 g2 dom0 ${BACKEND#dom0}; do
		on "$d" "$look" </dev/null | sed "s/^/$d./"
	done >"$OUT/$1"
}

n=0
for way in $WAYS; do
	n=$((n + 1))
	step "run $n of $(echo "$WAYS" | wc -w): $DISK_BYTES bytes from g1 to g2 over $way"
	counters "$n-$way".before
	on_bg send -t $limit g1 "xnem-sendfile send --listen 7001 --via $way --bytes $DISK_BYTES /dev/xvda"
	on -t $limit g2 "xnem-sendfile recv $address 7001" </dev/null >"$OUT/$n-$way.recv" 2>"$OUT/$n-$way.err"
	rc=$?
	wait_bg send
	src=$?
	counters "$n-$way".after
	mv "$OUT/send.out" "$OUT/$n-$way.send"
	cat "$OUT/send.err" >>"$OUT/$n-$way.err"
	if [ $rc -eq 0 ] && [ $src -eq 0 ]; then
		pass "$n-$way"
	else
		fail "$n-$way" "receiver $rc, sender $src: $(tail -n 1 "$OUT/$n-$way.err")"
	fi
done
