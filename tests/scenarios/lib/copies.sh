# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What the scenarios that copy share; read after the testbed's lib.sh, in dom0.

# export_start NAME DOM USER OPTIONS...: a region held by `xnem-test export` in the
# background. Sets $cookie, and $cookie_NAME.
export_start() {
	_n=$1 _d=$2 _u=$3
	shift 3
	_f=/dev/shm/$_n.$_u.cookie
	on -u "$_u" "$_d" "rm -f $_f" </dev/null
	on_bg "$_n" -t 600 -u "$_u" "$_d" "exec xnem-test export --cookie-file $_f --hold $((590 * SLOW)) $*"
	if ! wait_for 30 _has_cookie "$_f" "$_d"; then
		fail "export-$_n" "no cookie: $(tail -n 1 "$OUT/$_n.err")"
		return 1
	fi
	# shellcheck disable=SC2034 # for the caller
	cookie=$(on "$_d" "cat $_f" </dev/null)
	eval "cookie_$_n=\$cookie"
}
_has_cookie() { on "$2" "[ -s $1 ]" </dev/null; }

# export_stop NAME...: as a process that ends by itself.
export_stop() {
	for _n in "$@"; do
		kill_bg "$_n"
	done
}

# try NAME DOM USER ARGS...: a test: xnem-test ARGS in DOM must succeed.
try() {
	_t=$1 _d=$2 _u=$3
	shift 3
	if on -t "${TRY_LIMIT:-120}" -u "$_u" "$_d" "xnem-test $*" </dev/null >"$OUT/$_t.out" 2>&1; then
		pass "$_t"
	else
		fail "$_t" "exit status $?: $(grep -v '=ok$\|^ok' "$OUT/$_t.out" | tail -n 3)"
	fi
}

# counter DOM FILE KEY: a counter's value, FILE below /sys/kernel/debug.
counter() { on "$1" "sed -n 's/^$3 //p' /sys/kernel/debug/$2/counters" </dev/null; }

# settled NAME [DOM...]: a test: nothing is held any more, in every domain that lives
# (within 5 s).
settled() {
	_t=$1
	shift
	_bad=
	# shellcheck disable=SC2046 # a list
	[ $# -gt 0 ] || set -- $(_domains)
	for _d in "$@"; do
		_said=$(on "$_d" xnem-leakcheck -t $((5 * SLOW)) 2>&1 </dev/null) || _bad="$_bad $_d: $_said"
	done
	if [ -z "$_bad" ]; then pass "$_t"; else fail "$_t" "$_bad"; fi
}
_domains() {
	[ "$BACKEND" = dom0 ] || echo drv
	for _g in $GUESTS; do
		[ -z "$(guest_domid "$_g")" ] || echo "$_g"
	done
}

# connected DOM: its first device is.
connected() { on "$1" xnem-info </dev/null | grep -q '^state: *connected'; }
# device_ready DOM: its first device is there and connected, and for the group's users (no udev
# does that here).
device_ready() { on "$1" '[ -c /dev/xnem0 ] && xnem-info | grep -q "^state: *connected" && chgrp xnem /dev/xnem0 && chmod 660 /dev/xnem0' </dev/null; }

# log_forget DOM: what its kernel has said. log_lines DOM NAME MAX [MIN]: a test: how many lines
# of XNEM's it has said since, who connects left out: that is no news. All is kept in $OUT/DOM.log.
log_forget() { on "$1" 'dmesg -c >/dev/null' </dev/null; }
log_lines() {
	on "$1" 'dmesg -c' </dev/null | tee -a "$OUT/$1.log" | grep xnem | grep -v 'connected: ' >"$OUT/said"
	_n=$(wc -l <"$OUT/said")
	if [ "$_n" -le "$3" ] && [ "$_n" -ge "${4:-0}" ]; then pass "$2" "$_n lines"; else fail "$2" "$_n lines: $(tail -n 3 "$OUT/said")"; fi
}

# ordinary_again: tests: g1's module after a frontend in user space, with a region of g2's.
ordinary_again() {
	# The kernel saw the device when it was new, and does not know who has closed it since.
	on g1 'xenstore-write device/xnem/0/state 1' </dev/null
	check load guest_load g1
	export_start again g2 root --bytes 5000 --pattern 4 --access r --any || exit
	# shellcheck disable=SC2154 # export_start sets it
	try ordinary-again g1 root pull "$cookie_again" --bytes 5000 --verify 4
	export_stop again
}

# frontend_unload DOM [OPTION...]: with its devices still attached.
frontend_unload() {
	_d=$1
	shift
	on "$_d" xnem-unload "$@" frontend </dev/null
}
backend_unload() { on "$1" xnem-unload backend </dev/null; }
# fabric_of DOM: its fabric id, in the byte order of a cookie.
fabric_of() {
	on "$1" xnem-info </dev/null |
		sed -n 's/^fabric id: *\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)$/\8\7\6\5\4\3\2\1/p'
}

# uptime_ms: dom0's clock, for how long something took.
uptime_ms() { awk '{printf "%d\n", $1 * 1000}' /proc/uptime; }

# suite NAME DOM USER THEME [OPTION...]: `xnem-test suite THEME`.
suite() {
	_t=$1 _d=$2 _u=$3
	shift 3
	tap "$_t" "$_d" "$_u" xnem-test suite "$@"
}

# tap NAME DOM USER CMD...: each line of TAP that CMD prints is a test, NAME before its own
# name.
tap() {
	_t=$1 _d=$2 _u=$3
	shift 3
	_o=$OUT/$_t.tap
	on -t "${TRY_LIMIT:-400}" -u "$_u" "$_d" "$*" </dev/null >"$_o" 2>&1
	_rc=$?
	_why=
	while read -r _line; do
		_n=${_line#*- }
		case $_line in
		'ok '*'# SKIP '*) skip "$_t: ${_n%% # SKIP *}" "${_line#*# SKIP }" ;;
		'ok '*) pass "$_t: $_n" ;;
		'not ok '*) fail "$_t: $_n" "$_why" ;;
		'# '*ms) ;;
		'# '*) _why=${_line#\# } ;;
		esac
	done <"$_o"
	if ! grep -q '^1\.\.[1-9]' "$_o"; then
		fail "$_t" "not all of it ran, exit status $_rc: $(tail -n 1 "$_o")"
	fi
}

# serve DOM USER: a process there that does as a suite of another guest says, at port 7100
# (root) or 7101.
serve() {
	_p=7100
	[ "$2" = root ] || _p=7101
	on_bg "serve_$1_$2" -t 1500 -u "$2" "$1" "exec xnem-test serve --port $_p"
	wait_for 20 grep -q serving "$OUT/serve_$1_$2.out" || fail "serve-$1-$2" "$(cat "$OUT/serve_$1_$2.err")"
}
