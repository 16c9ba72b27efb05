# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a hostile frontend in g1 harms nobody but itself (XSA-155, -39, -216, -300, -391, -392; qubes-issues#10833)
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

# Who copies meanwhile: g2 from g3 where there is one, else two processes of g2.
owner=g2
[ -z "$(guest_domid g3)" ] || owner=g3
: "${FUZZ_SEED:=1}"
: "${FUZZ_COUNT:=34000}"

watch_start() { # NAME
	on_bg "$1" -t 500 g2 "exec xnem-test watch $cookie_own --bytes 65536 --seconds $((480 * SLOW)) --verify 3"
	wait_for 30 grep -q pid= "$OUT/$1.out" || fail "$1" "does not copy: $(cat "$OUT/$1.err")"
}
# watch_end NAME: every copy was right; how long they took.
watch_end() {
	on g2 "kill $(sed -n 's/^pid=//p' "$OUT/$1.out")" </dev/null
	if wait_bg "$1"; then
		pass "$1" "$(grep -v pid= "$OUT/$1.out" | tr '\n' ' ')"
	else
		fail "$1" "$(tail -n 2 "$OUT/$1.out" "$OUT/$1.err")"
	fi
}
# g1's device holds nothing; the others' do.
_of_g1() { counter drv "xnem-backend/$(guest_domid g1)-0" "$1"; }
_nothing_of_g1() { [ "$(_of_g1 regions) $(_of_g1 region_pages) $(_of_g1 inflight)" = "0 0 0" ]; }
holds_nothing() { check "$1" wait_for 10 _nothing_of_g1; }
# Memory of the driver domain that is not given back, in KiB.
memory() {
	on drv 'echo 3 >/proc/sys/vm/drop_caches; sleep 1
		awk "/^(SUnreclaim|KernelStack|PageTables|VmallocUsed|Percpu):/ {n += \$2} END {print n}" /proc/meminfo' </dev/null
}
attach_again() { # NAME
	check "detach-$1" xnem-detach g1
	check "attach-$1" xnem-attach --timeout 0 g1 "backend=$BACKEND"
}

step "the others alone"
export_start own $owner root --bytes 65536 --pattern 3 --access r --any || exit
watch_start quiet
sleep 5
watch_end quiet

step "g1 without XNEM's module, its device attached"
check unload frontend_unload g1
check no-module on g1 '[ ! -e /dev/xnem0 ] && [ ! -d /sys/module/xnem_frontend ]' </dev/null
watch_start under_attack
log_forget drv

step "attacks that the backend bears"
tap served g1 root xnem-hostile served
# A context's pages that cannot be mapped end the device, with a line.
log_lines drv served-log 1 1
holds_nothing served-settled

step "mutated requests"
for i in 1 2 3; do
	seed=$((FUZZ_SEED + i))
	tap "fuzz-$seed" g1 root xnem-hostile fuzz $seed "$FUZZ_COUNT"
	grep '^# ' "$OUT/fuzz-$seed.tap"
	holds_nothing "fuzz-$seed-settled"
	# The first time something is loaded and cached.
	[ $i -gt 1 ] || before=$(memory)
done
log_lines drv fuzz-log 6

step "attacks for which it is cut off"
for how in $(on g1 'xnem-hostile cut' </dev/null); do
	log_forget drv
	tap cut g1 root xnem-hostile cut "$how"
	case $how in
	never-mapped) log_lines drv "cut-log-$how" 5 1 ;;
	*) log_lines drv "cut-log-$how" 1 1 ;;
	esac
	holds_nothing "cut-settled-$how"
	attach_again "$how"
done

step "garbage in xenstore"
for node in version features windows num-queues queue-0/header-ref queue-0/sq-refs queue-0/cq-refs queue-0/event-channel; do
	log_forget drv
	tap nodes g1 root xnem-hostile nodes "$node"
	# One a refusal.
	log_lines drv "nodes-log-$node" 5 5
	attach_again "$node"
done
after=$(memory)
echo "the driver domain's memory: $before KiB, then $after KiB"
check memory [ $((after - before)) -lt 2048 ]

step "the others again"
watch_end under_attack
export_stop own

step "the ordinary frontend again"
ordinary_again
settled hostile-settled
