# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The language of scenarios. A scenario is a POSIX shell file (busybox sh) that is read
# in dom0 after this one. Its head says what it is and what it needs:
#
#   # about: one line
#   # needs: guests=2 mode=any backend=any
#
#   needs: guests=N        at least N guests (default 2)
#          mode=M          timed, counted or any (default)
#          backend=B       drv, dom0 or any (default)
#          type=g1:pv,...  types of domains, where it matters
#          vcpus=g1:2,...  virtual CPUs, where it matters
#          memory=g1:512   MiB, at least
#          disk=yes        g1 has the --disk file as /dev/xvda
#          modules=yes     XNEM's modules loaded and devices attached
#
# DOM is dom0, drv, g1 ... g9. Variables: $OUT is a folder whose files come back to the
# host, as results/<scenario>/, also after a failure or a crash (write there sparingly
# while a counted measurement runs). $GUESTS, $BACKEND (drv or dom0), $MODE, $MODULES
# (yes or no), $DISK_BYTES, and any NAME given by `host run --set NAME=VALUE`.
#
#   on [-t SECONDS] [-u USER] DOM CMD...   run a shell command there, as root or USER
#          (user: uid 1000, group xnem; other: uid 1001). Standard input, output, error
#          and exit status are the command's own: so in `while read` loops give it
#          </dev/null. 124: not done within the limit (default $LIMIT, 60); it was
#          killed, with its process group. 125: the domain was not reached or was lost.
#   on_user [-t SECONDS] DOM CMD...        the same as `user`
#   on_bg NAME [-t SECONDS] [-u USER] DOM CMD...
#          the same, not waited for; output goes to $OUT/NAME.out and $OUT/NAME.err
#          (NAME is a shell word: letters, digits, _)
#   wait_bg NAME                           wait for it, return its exit status
#   kill_bg NAME                           end it (kills its process group over there)
#   put FILE DOM:FILE / get DOM:FILE FILE  copy a file; its mode comes along with put
#   wait_for SECONDS CMD...                run CMD twice a second until it succeeds
#          (all limits are multiplied by $SLOW: 1, or as `host run --slow N` has it)
#   step TEXT                              say what comes now (shown live; counts as progress)
#   pass NAME [NOTE] / fail NAME WHY / skip NAME WHY    a test's result; none of them ends
#   die WHY                                fail the scenario here and now
#   check NAME CMD...                      pass or fail by CMD's exit status
#   expect_lost DOM                        from here on DOM may crash or go away
#   guest_create DOM                       xl create and wait until it answers
#   guest_destroy DOM                      expect_lost and xl destroy
#   guest_save DOM FILE                    expect_lost and xl save
#   guest_restore DOM FILE [OPTION...]     xl restore; it has a new domid, and no XNEM device
#   guest_checkpoint DOM FILE              xl save -c: it goes on as it was
#   guest_answers DOM                      wait until it answers (after a restore with -p, an unpause)
#   guest_domid DOM                        print its domid
#   address_of DOM                         print the address of its eth0
#   counters FILE DOM...                   write their counters to $OUT/FILE, DOM.KEY VALUE a line:
#          XNEM's of frontend and backend; net_events, interrupts of the network's event
#          channels; packets, sent by eth0
#   guest_attach DOM                       attach its XNEM device, load its frontend
#
# A scenario that reports nothing is one test, with its exit status as the result.
# Guests that are gone at the end of a scenario are made again before the next one, with
# their devices; /usr/bin/xnem-leakcheck is run in each guest that has its device still
# attached, and fails the scenario if it fails.

: "${LIMIT:=60}" "${SLOW:=1}"
RUN=/run/testbed

# One write, so that lines of several processes do not mix. File 9 is the host.
event() { printf '%s\n' "$*" >&9; }

step() { event "step $*"; echo "== $*"; }
pass() { echo "PASS $*"; _result PASS "$1" "$2"; }
fail() { echo "FAIL $*"; _result FAIL "$1" "$2"; }
skip() { echo "SKIP $*"; _result SKIP "$1" "$2"; }
die() { fail "$@"; exit 1; }
_result() {
	: >"$RUN/reported"
	[ "$1" != FAIL ] || : >"$RUN/failed"
	event "result $1	$2	$(printf %s "$3" | tr '\n\t' '  ')"
}
check() {
	_name=$1
	shift
	if "$@"; then pass "$_name"; else fail "$_name" "exit status $? of: $*"; fi
}

_user_ids() {
	case $1 in
	root) echo 0:0 ;;
	user) echo 1000:1000:970 ;;
	other) echo 1001:1001 ;;
	*) echo "on: no user $1" >&2; return 1 ;;
	esac
}

on() {
	_limit=$LIMIT _user=root
	while :; do
		case $1 in
		-t) _limit=$2; shift 2 ;;
		-u) _user=$2; shift 2 ;;
		*) break ;;
		esac
	done
	_ids=$(_user_ids "$_user") || return 125
	_dom=$1
	shift
	_limit=$((_limit * SLOW))
	# Which process this is, also in a subshell, where $$ is still the parent's.
	read -r _pid _ </proc/self/stat
	event "busy $_pid $_limit $_dom $(printf %s "$*" | head -n 1 | cut -c1-120)"
	if [ -n "$_client_file" ]; then
		testbed-agent exec -t "$_limit" -u "$_ids" "$_dom" "$*" &
		echo $! >"$_client_file"
		wait $!
	else
		testbed-agent exec -t "$_limit" -u "$_ids" "$_dom" "$*"
	fi
	_rc=$?
	event "done $_pid $_rc"
	[ $_rc -ne 124 ] || echo "on: $_dom: not done within $_limit s: $*" >&2
	return $_rc
}
on_user() { on -u user "$@"; }

on_bg() {
	_name=$1
	shift
	mkdir -p $RUN/bg
	rm -f "$RUN/bg/$_name"
	_client_file=$RUN/bg/$_name on "$@" >"$OUT/$_name.out" 2>"$OUT/$_name.err" &
	eval "_bg_$_name=$!"
}
wait_bg() { eval "wait \"\$_bg_$1\""; }
kill_bg() {
	# Killing the client is enough: the agent over there sees it go.
	kill -9 "$(cat "$RUN/bg/$1")" 2>/dev/null
	! eval "[ -n \"\$_bg_$1\" ]" || wait_bg "$1"
	return 0
}

put() {
	_mode=$(stat -c %a "$1") || return
	on "${2%%:*}" "cat >'${2#*:}' && chmod $_mode '${2#*:}'" <"$1"
}
address_of() { on "$1" "ip -4 addr show dev eth0" </dev/null | sed -n 's/.*inet \([0-9.]*\).*/\1/p'; }

# shellcheck disable=SC2016 # expanded over there
_look='awk "/eth0|vif[0-9]/ {for (i = 2; \$i ~ /^[0-9]+\$/; i++) n += \$i} END {print \"net_events\", n + 0}" /proc/interrupts
	for f in /sys/kernel/debug/xnem/xnem0/counters /sys/kernel/debug/xnem-backend/total/counters; do
		[ ! -e $f ] || cat $f
	done
	f=/sys/class/net/eth0/statistics/tx_packets
	[ ! -e $f ] || echo packets $(cat $f)'
counters() {
	_file=$1
	shift
	for _d; do
		on "$_d" "$_look" </dev/null | sed "s/^/$_d./"
	done >"$OUT/$_file"
}

get() { on "${1%%:*}" "cat '${1#*:}'" </dev/null >"$2"; }

wait_for() {
	_end=$(($(cut -d. -f1 /proc/uptime) + $1 * SLOW))
	shift
	until "$@"; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $_end ] || return 1
		usleep 500000
	done
}

# Connections over its network outlive this: it has the same address.
guest_save() {
	expect_lost "$1"
	rm -f "$RUN/alive/$1" "$RUN/attached/$1"
	xl save "$1" "$2"
}
guest_restore() {
	_dom=$1 _file=$2
	shift 2
	event "creating $_dom"
	xl restore -e "$@" "$_file" || return
	event "domid $_dom $(guest_domid "$_dom")"
	rm -f "$RUN/may_be_lost/$_dom"
	: >"$RUN/alive/$_dom"
	case " $* " in *' -p '*) return ;; esac
	guest_answers "$_dom"
}
guest_checkpoint() {
	# While it is saved it looks as if it had shut down.
	expect_lost "$1"
	rm -f "$RUN/alive/$1"
	xl save -c "$1" "$2" || return
	event "domid $1 $(guest_domid "$1")"
	rm -f "$RUN/may_be_lost/$1"
	: >"$RUN/alive/$1"
	guest_answers "$1"
}
guest_answers() { wait_for $((BOOT_LIMIT / SLOW)) testbed-agent exec -n -t 5 "$1" true; }

guest_domid() { xl domid "$1" 2>/dev/null; }

# State as xl list shows it (r-----, ---s--, ...), or nothing when there is no such domain.
guest_state() { xl list 2>/dev/null | awk -v n="$1" '$1 == n {print $5}'; }

expect_lost() {
	: >"$RUN/may_be_lost/$1"
	event "expect_lost $1"
}

guest_destroy() {
	expect_lost "$1"
	rm -f "$RUN/alive/$1" "$RUN/attached/$1"
	xl destroy "$1"
}

_var() { eval "printf %s \"\$$1_$2\""; }

# _create DOM: xl create with this run's settings.
_create() {
	set -- "$1" "/etc/xen/$1.cfg" "type=\"$(_var TYPE "$1")\"" \
		"memory=$(_var MEMORY "$1")" "vcpus=$(_var VCPUS "$1")"
	_cpus=$(_var CPUS "$1")
	[ -z "$_cpus" ] || set -- "$@" "cpus=\"$_cpus\""
	[ "$1" != g1 ] || [ -z "$DISK_BYTES" ] || set -- "$@" "disk=['phy:/dev/vda,xvda,r']"
	_dom=$1
	shift
	# -e: xl itself need not stay to act on the guest's end, the guest is to be preserved.
	xl create -q -e "$@" >"$RUN/create.$_dom" 2>&1
}

# _answers DOM: waits until the domain's agent can be reached; 1: died, 2: time is up.
_answers() {
	_end=$(($(cut -d. -f1 /proc/uptime) + BOOT_LIMIT))
	_domid=$(guest_domid "$1") || return 1
	until [ "$(xenstore-read "/local/domain/$_domid/data/testbed" 2>/dev/null)" = up ]; do
		case $(guest_state "$1") in '' | *s* | *c*) return 1 ;; esac
		[ "$(cut -d. -f1 /proc/uptime)" -lt $_end ] || return 2
		sleep 1
	done
	until testbed-agent exec -n -t 5 "$1" true; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $_end ] || return 2
		usleep 200000
	done
}

# In two parts, so that a run's guests can be created one after the other (xl does not
# do it any faster at once) while those before already boot.
_begin() {
	rm -f "$RUN/alive/$1" "$RUN/attached/$1"
	event "creating $1"
	if ! _create "$1"; then
		event "trouble $1 xl create: $(tail -n 1 "$RUN/create.$1")"
		cat "$RUN/create.$1"
		return 1
	fi
	event "domid $1 $(guest_domid "$1")"
	rm -f "$RUN/may_be_lost/$1"
}
_finish() {
	_answers "$1"
	case $? in
	0) ;;
	1) event "trouble $1 died while it booted"; return 1 ;;
	2) event "trouble $1 does not answer after $BOOT_LIMIT s"; return 1 ;;
	esac
	: >"$RUN/alive/$1"
	event "up $1 $(_var TYPE "$1")"
}
guest_create() { _begin "$1" && _finish "$1"; }

# What follows needs the modules and tools of an overlay.
guest_attach() {
	# Not waited for there: it connects when the frontend is loaded.
	xnem-attach --timeout 0 "$1" "backend=$BACKEND" || return
	guest_load "$1"
}
guest_load() {
	# shellcheck disable=SC2016 # expanded over there
	on "$1" 'insmod /lib/modules/xnem/xnem-frontend.ko && n=0 &&
		until [ -e /dev/xnem0 ] || [ $n -ge 300 ]; do usleep 100000; n=$((n + 1)); done
		ln -sf xnem0 /dev/xnem && chgrp xnem /dev/xnem* && chmod 660 /dev/xnem*' </dev/null || return
	: >"$RUN/attached/$1"
}
