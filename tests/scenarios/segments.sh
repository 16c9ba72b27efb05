# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: regions of many pieces of memory
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

serve g1 user
serve g2 user
step "an unprivileged user of g1 and one of g2"
suite g1-g2 g1 user segments --peer g2:7101
suite g2-g1 g2 user segments --peer g1:7101
step "within g2"
suite within-g2 g2 user segments
kill_bg serve_g1_user
kill_bg serve_g2_user
settled segments-settled
