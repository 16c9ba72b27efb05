# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a region of another zone is not there
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

step "g2 goes to a zone of its own"
old=$(fabric_of g2)
check detach xnem-detach g2
check attach xnem-attach g2 "backend=$BACKEND" zone=red --wait --timeout 60
wait_for 20 on g2 '[ -e /dev/xnem0 ]' </dev/null
on g2 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
check fabric-differs [ "$(fabric_of g1)" != "$(fabric_of g2)" ]

step "a cookie of the other zone"
export_start a g1 root --bytes 5000 --pattern 1 --access rw --any || exit
try library-tells g2 root pull "$cookie_a" --bytes 10 --expect EXDEV
# As a library that does not look would send it: with the own fabric id in it.
forged=$(echo "$cookie_a" | cut -c1-32)$(fabric_of g2)
try backend-refuses-get g2 root pull "$forged" --bytes 10 --expect ENOENT
try backend-refuses-put g2 root push "$forged" --bytes 10 --expect ENOENT
try own-zone-still-works g1 root pull "$cookie_a" --bytes 5000 --verify 1

step "guessing keys is slow, and others do not pay"
before=$(counter g2 xnem/xnem0 error_status)
start=$(uptime_ms)
on -t 200 g2 "n=0; while [ \$n -lt 4 ]; do xnem-test pull $forged --bytes 1 --expect ENOENT >/dev/null; n=\$((n + 1)); done" </dev/null
echo "4 wrong cookies: $(($(uptime_ms) - start)) ms, $(($(counter g2 xnem/xnem0 error_status) - before)) refusals"
try others-served g1 root pull "$cookie_a" --bytes 5000 --verify 1
export_stop a

step "back in the common zone"
check detach-2 xnem-detach g2
check attach-2 xnem-attach g2 "backend=$BACKEND" --wait --timeout 60
wait_for 20 on g2 '[ -e /dev/xnem0 ]' </dev/null
on g2 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
check fabric-equal [ "$(fabric_of g1)" = "$(fabric_of g2)" ]
# The same zone in the same life of the backend has the same id again.
check fabric-stable [ "$(fabric_of g2)" = "$old" ]
export_start b g1 root --bytes 5000 --pattern 1 --access r || exit
try common-again g2 root pull "$cookie_b" --bytes 5000 --verify 1
export_stop b
settled zones-settled
