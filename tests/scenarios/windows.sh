# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: regions that are granted piece by piece
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

serve g1 root
serve g2 root
step "g1 and g2"
suite g1-g2 g1 root windows --peer g2:7100
step "g2 and g1"
suite g2-g1 g2 root windows --peer g1:7100 --except GiB
step "within g1"
suite within-g1 g1 root windows --except GiB
kill_bg serve_g1_root
kill_bg serve_g2_root
settled windows-settled
