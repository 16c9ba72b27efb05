# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: memory runs out inside the modules, in one place after the other: calls fail, nothing is lost, all works again
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

# Of the objects that marked threads ask for PERCENT are refused; 0: none. Others get theirs.
short() { # DOM PERCENT
	on "$1" "cd /sys/kernel/debug/failslab && echo 0 >probability && echo -1 >times && echo 0 >verbose &&
		echo N >ignore-gfp-wait && echo Y >task-filter && echo $2 >probability" </dev/null
}
# mark DOM NAME...: threads of the kernel whose name begins so; none is a failure.
mark() {
	_d=$1
	shift
	on "$_d" "n=0; for p in /proc/[0-9]*; do
			read -r name <\$p/comm || continue
			for want in $*; do
				case \$name in \$want*) echo 1 >\$p/make-it-fail && n=\$((n + 1)) ;; esac
			done
		done; [ \$n -gt 0 ]" </dev/null
}
# each NAME ARGS...: xnem-test in g1 loses one object more with every run, until it needs no more.
each() {
	_t=$1
	shift
	if on -t 300 g1 "n=1; bad=0; while [ \$n -lt 1000 ]; do
			said=\$(XNEM_TEST_FAIL_NTH=\$n timeout 60 xnem-test $* 2>&1)
			rc=\$?
			case \$rc in
			0) ;;
			2) bad=\$((bad + 1)) ;;
			*) echo \"object \$n: status \$rc: \$said\"; exit 1 ;;
			esac
			case \$said in
			*fail_nth=0*) ;;
			*fail_nth=*) echo \"\$((n - 1)) objects, \$bad failures\"; [ \$bad -gt 0 ]; exit ;;
			esac
			n=\$((n + 1))
		done; echo \"no end after \$n\"; exit 1" </dev/null >"$OUT/$_t.out" 2>&1; then
		pass "$_t" "$(cat "$OUT/$_t.out")"
	else
		fail "$_t" "$(tail -n 1 "$OUT/$_t.out")"
	fi
	settled "$_t-settled" g1
	try "$_t-again" g1 root pull "$cookie_own" --bytes 300000
}

export_start own g2 root --bytes 300000 --pattern 3 --access rw --any || exit
step "the frontend, called by a process"
check injection short g1 0
each pull pull "$cookie_own" --bytes 70000 --verify 3
each push push "$cookie_own" --bytes 300 --pattern 3
each churn churn "$cookie_own" --bytes 9000 --seed 3 --count 1
each ping ping --count 1
each export export --bytes 100000 --hold 0

step "the backend's workers"
check workers mark drv xnem-worker
for percent in 2 10 40; do
	check "workers-$percent" short drv $percent
	if on -t 300 g1 "bad=0; n=0; while [ \$n -lt 20 ]; do
			for what in 'pull $cookie_own --bytes 70000' 'push $cookie_own --bytes 300 --pattern 3' 'export --bytes 30000 --hold 0' 'ping --count 3'; do
				timeout 60 xnem-test \$what >/dev/null 2>&1
				rc=\$?
				case \$rc in 0) ;; 2) bad=\$((bad + 1)) ;; *) echo \"\$what: \$rc\"; exit 1 ;; esac
			done
			n=\$((n + 1))
		done; echo \$bad" </dev/null >"$OUT/workers.out"; then
		pass "workers-$percent-work" "$(cat "$OUT/workers.out") of 80 failed"
	else
		fail "workers-$percent-work" "$(cat "$OUT/workers.out")"
	fi
	check "workers-$percent-off" short drv 0
	settled "workers-$percent-settled" g1
	try "workers-$percent-again" g1 root pull "$cookie_own" --bytes 300000 --verify 3
done
check workers-failed [ "$(cat "$OUT/workers.out")" -gt 0 ]

# Not while devices come: where Linux's own xenbus_dev_probe() has no memory for its watch behind a
# probe() that went well, it forgets the driver's device without remove().
export_stop own
settled shortage-settled
