# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: messages and notifications: order, room, wrong addresses, ends of peers
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

serve g2 root
serve g1 user
step "g1 and g2, as root"
suite g1-g2 g1 root messages --peer g2:7100
step "g2 and g1, as unprivileged users"
suite g2-g1 g2 user messages --peer g1:7101
step "within g1"
suite within-g1 g1 user messages
kill_bg serve_g2_root
kill_bg serve_g1_user
settled messages-settled
