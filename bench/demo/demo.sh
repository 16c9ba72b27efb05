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
address=$(address_of g1)
[ -n "$address" ] || die network "g1 has no address"
# On a busy machine TCP between emulated guests does half a MiB a second.
limit=$((300 + DISK_BYTES / 200000))

# shellcheck disable=SC2086 # the backend's domain may be none of its own
look() { counters "$1" g1 g2 dom0 ${BACKEND#dom0}; }

n=0
for way in $WAYS; do
	n=$((n + 1))
	step "run $n of $(echo "$WAYS" | wc -w): $DISK_BYTES bytes from g1 to g2 over $way"
	look "$n-$way".before
	on_bg send -t $limit g1 "xnem-sendfile send --listen 7001 --via $way --bytes $DISK_BYTES /dev/xvda"
	on -t $limit g2 "xnem-sendfile recv $address 7001" </dev/null >"$OUT/$n-$way.recv" 2>"$OUT/$n-$way.err"
	rc=$?
	wait_bg send
	src=$?
	look "$n-$way".after
	mv "$OUT/send.out" "$OUT/$n-$way.send"
	cat "$OUT/send.err" >>"$OUT/$n-$way.err"
	if [ $rc -eq 0 ] && [ $src -eq 0 ]; then
		pass "$n-$way"
	else
		fail "$n-$way" "receiver $rc, sender $src: $(tail -n 1 "$OUT/$n-$way.err")"
	fi
done
