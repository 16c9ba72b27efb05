# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: second devices beside first ones (qubes-issues#2796, #199, #10786), and one for which the driver domain has no watch left (#5343)
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
#
#   --set ROUNDS=N   how often a device comes and goes (default 20)
#   --set WIDTH=N    so many devices at a time (default 1): saves time that is waiting
. /usr/lib/xnem-tests/copies.sh

rounds=${ROUNDS:-20} width=${WIDTH:-1}
# What a device that is not taken away whole would leave: nodes in xenstore, event channels
# (as Xen counts them), and in the driver domain handlers and mapped rings.
left() {
	echo "$(xenstore-ls /local/domain | wc -l) nodes," \
		"$(lsevtchn "$(guest_domid drv)" | wc -l) and $(lsevtchn "$(guest_domid g1)" | wc -l) channels of drv and g1," \
		"$(on drv "grep -c xnem /proc/interrupts; grep -c xenbus_map_ring /proc/vmallocinfo" </dev/null | xargs) handlers and mappings"
}
# slab DOM: KiB, after what is only kept for later is given back.
slab() { on "$1" 'echo 3 >/proc/sys/vm/drop_caches; sleep 1; sed -n "s/^Slab: *\([0-9]*\) kB/\1/p" /proc/meminfo' </dev/null; }
fabric() { on g1 "xnem-info $1" </dev/null | sed -n 's/^fabric id: *//p'; }
# first_works NAME: the first device, and the region that was there from the start.
first_works() { try "$1" g2 root pull "$cookie_first" --bytes 300000 --verify 4; }

export_start first g1 root --bytes 300000 --pattern 4 --access r || exit
first_works before
start=$(left)
echo "at the start: $start"

step "a second device of g1, in another zone"
check attach xnem-attach g1 "backend=$BACKEND" id=1 zone=other --wait --timeout 60
check node wait_for 20 on g1 '[ -c /dev/xnem1 ]' </dev/null
first=$(fabric /dev/xnem0) second=$(fabric /dev/xnem1)
if [ -n "$first" ] && [ -n "$second" ] && [ "$first" != "$second" ]; then
	pass zones-differ
else
	fail zones-differ "fabric ids $first and $second"
fi
try other-zone g1 root pull "$cookie_first" --bytes 100 --expect EXDEV --device /dev/xnem1
# More than there was is what it takes; what is taken is given back below.
if [ "$(left)" != "$start" ]; then pass counts-move; else fail counts-move "$start"; fi

step "it goes while the first one works"
on_bg copier -t 300 g2 "exec xnem-test stream $cookie_first --bytes 300000 --seconds 20"
wait_for 60 grep -q . "$OUT/copier.out"
check detach xnem-detach g1 id=1
check node-gone wait_for 20 on g1 '[ ! -e /dev/xnem1 ]' </dev/null
if wait_bg copier; then pass first-untouched; else fail first-untouched "$(tail -n 2 "$OUT/copier.err")"; fi
first_works after

step "$rounds times, $width at a time"
# one I: in the background. What goes wrong is in $OUT/why.I.
one() {
	_why=$OUT/why.$1
	xnem-attach g1 "backend=$BACKEND" "id=$1" zone=other --wait --timeout 60 >/dev/null 2>"$_why" || { echo attach >>"$_why"; return; }
	xnem-detach g1 "id=$1" --timeout 60 >/dev/null 2>"$_why" || { echo detach >>"$_why"; return; }
	rm "$_why"
}
several() {
	_pids=
	for i in $(seq 1 "$1"); do
		one "$i" &
		_pids="$_pids $!"
	done
	# shellcheck disable=SC2086 # numbers
	wait $_pids
	! cat "$OUT"/why.* 2>/dev/null | grep -q .
}
# What the first ones of a kind make for good, in caches, is made before memory is measured.
bad=
several "$width" || bad=first
slab_drv=$(slab drv) slab_g1=$(slab g1)
n=0
begin=$(uptime_ms)
while [ $n -lt "$rounds" ] && [ -z "$bad" ]; do
	several "$width" || bad=$n
	n=$((n + width))
	[ $((n % 10)) -ne 0 ] || step "$n times"
done
if [ -z "$bad" ]; then
	pass rounds "$n times, $(($(uptime_ms) - begin)) ms"
else
	fail rounds "after $bad: $(cat "$OUT"/why.* | tail -n 3 | xargs)"
fi
more_drv=$(($(slab drv) - slab_drv)) more_g1=$(($(slab g1) - slab_g1))
# A device's structure alone has several KiB at either end.
if [ $more_drv -lt 1500 ] && [ $more_g1 -lt 1500 ]; then
	pass memory "slab: drv $slab_drv KiB and $more_drv more, g1 $slab_g1 KiB and $more_g1 more"
else
	fail memory "slab: drv $slab_drv KiB and $more_drv more, g1 $slab_g1 KiB and $more_g1 more"
fi
first_works after-rounds
as_before() { [ "$(left)" = "$start" ]; }
if wait_for 10 as_before; then pass nothing-left "$start"; else fail nothing-left "$(left), and at the start $start"; fi

step "qubes-issues#5343: the driver domain may watch no more of xenstore"
# Twenty watches a process, then single ones, until it is refused one.
watchers() {
	on -t 60 "$BACKEND" "n=0; while [ \$n -lt 200 ]; do
		n=\$((n + 1)); paths=; for i in \$(seq $1); do paths=\"\$paths data/$1-\$n-\$i\"; done
		xenstore-watch \$paths >/dev/null 2>&1 & sleep 0.2; kill -0 \$! 2>/dev/null || break
	done; echo \$n" </dev/null
}
check watches [ "$(watchers 20)" -lt 200 ]
check watch [ "$(watchers 1)" -lt 200 ]
check refused sh -c '! xnem-attach "$@"' - g1 "backend=$BACKEND" id=1 zone=other --wait --timeout 30 2>"$OUT/quota.err"
cat "$OUT/quota.err"
check says-watch grep -q "may watch no more of xenstore" "$OUT/quota.err"
first_works without-watches
on "$BACKEND" 'killall xenstore-watch' </dev/null
check with-watches xnem-attach g1 "backend=$BACKEND" id=1 zone=other --wait --timeout 60
check detach-again xnem-detach g1 id=1
if wait_for 10 as_before; then pass nothing-left-of-watches; else fail nothing-left-of-watches "$(left), and at the start $start"; fi
export_stop first
settled devices-settled
