# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: large copies with one worker and with two, in turn
# needs: guests=2 modules=yes backend=drv mode=timed vcpus=drv:2
#
# By hand, on a machine with two idle CPUs or more: make stage; testbed/host run
# --dom0-overlay build/stage/dom0 --domU-overlay build/stage/domU bench/copy/workers.sh
# The guests sleep while the backend copies, so that there is a CPU for each worker.
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

for n in 1 2 1 2 1 2; do
	backend_unload drv && on drv "insmod /lib/modules/xnem/xnem-backend.ko workers=$n" </dev/null ||
		die reload "the backend with $n workers"
	for g in g1 g2; do
		wait_for 30 connected $g || die connect "$g"
	done
	on_bg server -t 300 g1 "exec xnem-perf server"
	wait_for 20 grep -q listening "$OUT/server.out" || die server "does not listen"
	step "$n workers"
	for how in "--size 16M --depth 1 --iterations 24" "--size 16M --depth 8 --iterations 48" "--size 256K --depth 8 --iterations 400"; do
		if out=$(on -t 200 g2 "xnem-perf client $(address_of g1) --test bw $how --json" </dev/null 2>&1); then
			pass "$n $how" "$(echo "$out" | tr ',' '\n' | grep -e mib_per -e sleeps | xargs)"
		else
			fail "$n $how" "$(echo "$out" | tail -n 1)"
		fi
	done
	kill_bg server
done
