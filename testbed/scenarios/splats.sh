# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: makes a debug kernel complain on purpose, to see that the runner notices (testbed/selftest-debug)
# needs: guests=2 modules=no type=g1:pv
#
# --set SPLATS="kind ..."  of testbed/debug/splat; --set ANNOUNCED=yes: the run goes on after each

[ "$ANNOUNCED" != yes ] || expect_lost g1
for how in $SPLATS; do
	step "$how"
	on -t 20 g1 "rmmod splat 2>/dev/null; insmod /lib/modules/splat.ko how=$how" </dev/null
	pass "$how"
done
# The last one stays, so that what it leaked is found with its name.
sleep 2
