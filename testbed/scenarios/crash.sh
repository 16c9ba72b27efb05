# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: breaks a domain on purpose, to see that the runner notices (testbed/selftest-crash)
# needs: guests=2
#
# --set WHO=g1  --set HOW=panic|oom|vanish|hang|expected

: "${WHO:=g1}" "${HOW:=panic}"
echo kept >"$OUT/written-before"
case $HOW in
panic) on "$WHO" 'echo c >/proc/sysrq-trigger' ;;
oom) on "$WHO" 'mkdir /run/m && mount -t tmpfs -o size=2g big /run/m && dd if=/dev/zero of=/run/m/f bs=1M' ;;
vanish) xl destroy "$WHO"; sleep 30 ;;
hang) sleep 100000 ;;
expected)
	expect_lost "$WHO"
	on -t 10 "$WHO" 'echo c >/proc/sysrq-trigger'
	sleep 3
	pass announced
	;;
esac
