# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: guests with four frames of grant table move 64 MiB while their network and disk work
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh disk=yes
# shellcheck disable=SC1091,SC2016 # read in dom0; expanded over there
. /usr/lib/xnem-tests/copies.sh

# 4 frames: 2048 references, of which network and disk have some hundred.
small() {
	for g in g1 g2; do
		guest_destroy $g
		cp /etc/xen/$g.cfg /etc/xen/$g.cfg.as-ever
		echo 'max_grant_frames = 4' >>/etc/xen/$g.cfg
		guest_create $g && guest_attach $g || return
	done
}
# The testbed makes them again, with what is in there then.
as_ever() {
	for g in g1 g2; do
		guest_destroy $g
		mv /etc/xen/$g.cfg.as-ever /etc/xen/$g.cfg
	done
}
step "guests with small grant tables"
if ! small; then
	as_ever
	die small-guests
fi
serve g1 root
serve g2 root
blocks=$((DISK_BYTES / 4096))
sum=$(on g1 "dd if=/dev/xvda bs=4096 count=$blocks 2>/dev/null | md5sum" </dev/null)

step "qubes-issues#5519, #7456, qubes-vmm-xen#72: 64 MiB while network and disk are used"
on_bg net -t 300 g1 "n=0; while [ ! -e /dev/shm/stop ]; do ping -c 1 -W 10 -s 1400 dom0 >/dev/null || exit 1; n=\$((n + 1)); done; echo \$n"
on_bg vbd -t 300 g1 "n=0; while [ ! -e /dev/shm/stop ]; do echo 3 >/proc/sys/vm/drop_caches
	[ \"\$(dd if=/dev/xvda bs=4096 count=$blocks 2>/dev/null | md5sum)\" = '$sum' ] || exit 1; n=\$((n + 1)); done; echo \$n"
suite small-g1 g1 root windows --peer g2:7100 --small --only whether
suite small-g2 g2 root windows --peer g1:7100 --small --only whether
step "eight windowed copies each way at once"
suite opposite-g1 g1 root windows --peer g2:7100 --only opposite
on g1 'touch /dev/shm/stop' </dev/null
check network-works wait_bg net
check disk-works wait_bg vbd
check network-was-used [ "$(cat "$OUT/net.out")" -ge 1 ]
check disk-was-used [ "$(cat "$OUT/vbd.out")" -ge 1 ]
suite stopped-g1 g1 root windows --peer g2:7100 --only stopped
kill_bg serve_g1_root
kill_bg serve_g2_root
settled windows-small-settled
as_ever
