# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: memory of every kind as source and destination, and memory that is refused
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

# A disk in memory: what is written to it is written back as with any other.
disk() { on "$1" 'modprobe brd rd_nr=1 rd_size=4096 && chmod 666 /dev/ram0' </dev/null; }
serve g1 root
serve g2 root
for pair in "g1 g2" "g2 g1"; do
	own=${pair% *} other=${pair#* }
	step "buffers of $own"
	check "disk-$own" disk "$own"
	suite "$own-$other" "$own" root buffers --peer "$other:7100" --domid "$(guest_domid "$own")" --peer-domid "$(guest_domid "$other")" \
		--disk /dev/ram0 --except hugetlb
done
step "huge pages: a PVH guest has them"
on g2 'echo 8 >/proc/sys/vm/nr_hugepages' </dev/null
check huge-pages [ "$(on g2 cat /proc/sys/vm/nr_hugepages </dev/null)" -ge 2 ]
suite hugetlb g2 root buffers --peer g1:7100 --only hugetlb
on g2 'echo 0 >/proc/sys/vm/nr_hugepages' </dev/null
step "an unprivileged user, within one guest"
suite within-g2 g2 user buffers --disk /dev/ram0 --except hugetlb
kill_bg serve_g1_root
kill_bg serve_g2_root
settled buffers-settled
