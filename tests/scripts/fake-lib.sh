# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What fake-xenstore and the tests that use it share.

# node_write NODE VALUE: parents are made, permissions are the parent's.
node_write() {
	[ -e "$FAKE/store${1%/*}/=value" ] || [ -z "${1%/*}" ] || node_write "${1%/*}" ''
	if [ ! -d "$FAKE/store$1" ]; then
		mkdir "$FAKE/store$1"
		cat "$FAKE/store${1%/*}/=perms" >"$FAKE/store$1/=perms"
	fi
	printf %s "$2" >"$FAKE/store$1/=value"
}
node_value() { cat "$FAKE/store$1/=value" 2>/dev/null; }
node_perms() { cat "$FAKE/store$1/=perms" 2>/dev/null; }
node_exists() { [ -e "$FAKE/store$1/=value" ]; }

# may_read NODE DOMID
may_read() {
	[ "$2" != 0 ] || return 0
	_others='' _own=''
	for _p in $(node_perms "$1"); do
		[ -n "$_others" ] || { _others=$_p; [ "${_p#?}" != "$2" ] || return 0; }
		[ "${_p#?}" != "$2" ] || _own=$_p
	done
	case ${_own:-$_others} in [rb]*) return 0 ;; esac
	return 1
}
