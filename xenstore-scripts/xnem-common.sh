# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What xnem-attach, xnem-detach and xnem-list have in common. Read by them, not run.
# POSIX sh with busybox's tools, xenstore-* and xl; nothing else.
#
# Three rules for everything in here:
#
# - A guest owns its directory device/xnem/N, a driver domain owns its backend/xnem/G/N:
#   either may write there what it likes. So no path is ever taken from a value in
#   there (a guest could have dom0 remove other people's nodes); the two ends of a
#   device are found by listing directories that dom0 owns.
# - What is printed from there loses its control characters first.
# - What is compared as a number is checked to be one first.

LC_ALL=C
export LC_ALL
# What functions set for their callers.
domains='' names='' domid='' name='' backends='' f=0 b=0 now=0
# Nobody needs to read our lock file.
umask 077

me=${0##*/}

# Exit codes, the same in all three; the man pages list them.
# shellcheck disable=SC2034 # used by the programs that read this file
{
	E_FAIL=1
	E_USAGE=2
	E_DOMAIN=3
	E_DEVICE=4
	E_BACKEND=5
	E_MODULE=6
	E_XSM=7
	E_TIME=8
	E_REFUSED=9
}

say() { printf '%s: %s\n' "$me" "$*"; }
warn() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
	_code=$1
	shift
	warn "$@"
	exit "$_code"
}
usage_error() {
	warn "$@"
	printf "Try '%s --help'.\n" "$me" >&2
	exit "$E_USAGE"
}

# number TEXT LARGEST: is it a decimal number without sign or leading zeros?
number() {
	case $1 in
	'' | *[!0-9]* | 0?* | ???????*) return 1 ;;
	esac
	[ "$1" -le "$2" ]
}
is_domid() { number "$1" 32751; }
# As large as fits the directory's name and a minor number.
is_device_id() { number "$1" 65535; }

# Sets $now to seconds of a clock that nobody sets.
get_now() {
	if ! read -r now _ 2>/dev/null </proc/uptime; then
		now=$(date +%s)
	fi
	now=${now%%.*}
}

# pause N: waits before the Nth look. Short at first, as ends connect within some tenths
# of a second; then a second, because each look costs a few processes.
pause() {
	if [ "$1" -gt 10 ] || ! sleep 0.2 2>/dev/null; then
		sleep 1
	fi
}

xs_read() { xenstore-read "$1" 2>/dev/null; }
xs_list() { xenstore-list "$1" 2>/dev/null; }
xs_exists() { xenstore-exists "$1" 2>/dev/null; }
# A range, because busybox's tr may know no classes.
printable() { tr -cd ' -~'; }

need_xenstore() {
	for _tool in xenstore-read xenstore-write xenstore-list xenstore-exists xenstore-chmod xenstore-rm; do
		command -v "$_tool" >/dev/null ||
			die $E_FAIL "$_tool is not installed (Debian: xenstore-utils); this program runs in dom0"
	done
	load_domains ||
		die $E_FAIL "xenstore does not answer: this program runs in dom0, as root, with xenstored up"
}

# Sets $domains to all domids, and $names to lines "DOMID NAME". Names are dom0's to write.
# In few processes: each one counts in a dom0 that is busy or emulated, and xl is not a
# small one.
load_domains() {
	_list=$(xs_list /local/domain) || return
	domains='' names=''
	set --
	for _d in $_list; do
		is_domid "$_d" || continue
		domains="$domains $_d"
		set -- "$@" "/local/domain/$_d/name"
	done
	# All names in one call; it fails when one of them is missing.
	if _read=$(xenstore-read "$@" 2>/dev/null); then
		for _d in $domains; do
			names="$names$_d ${_read%%"$newline"*}$newline"
			_read=${_read#*"$newline"}
		done
	else
		for _d in $domains; do
			names="$names$_d $(xs_read "/local/domain/$_d/name")$newline"
		done
	fi
}
newline='
'

# One attach or detach changes xenstore at a time. Without flock(1) there is no lock, and
# two that change the same device at once may get in each other's way.
lock() {
	command -v flock >/dev/null || return 0
	for _dir in /run/lock /run /var/lock /tmp; do
		[ -d "$_dir" ] && [ -w "$_dir" ] || continue
		# Not opened for writing where anybody may have put a link.
		[ "$_dir" != /tmp ] || return 0
		exec 8>"$_dir/xnem.lock"
		flock 8
		return 0
	done
}
unlock() { exec 8>&-; }

# find_domid NAME|DOMID: sets $domid. A domid need not exist.
find_domid() {
	domid=
	case $1 in
	'') ;;
	dom0 | Domain-0) domid=0 ;;
	*[!0-9]*)
		_rest=$names
		while [ -n "$_rest" ]; do
			_line=${_rest%%"$newline"*}
			_rest=${_rest#*"$newline"}
			[ "${_line#* }" != "$1" ] || domid=${_line%% *}
		done
		;;
	*) ! is_domid "$1" || domid=$1 ;;
	esac
	[ -n "$domid" ]
}
# domain_known DOMID: was it there when this program started?
domain_known() {
	case " $domains " in *" $1 "*) return 0 ;; esac
	return 1
}
domain_exists() { xs_exists "/local/domain/$1"; }
# find_name DOMID: sets $name, for people to read.
find_name() {
	name=dom0
	[ "$1" != 0 ] || return 0
	name=${newline}$names
	name=${name#*"$newline$1 "}
	name=${name%%"$newline"*}
	domain_known "$1" && [ -n "$name" ] || name="($1)"
}

# The two directories of a device, and where the ends' kernels put error messages.
front_dir() { echo "/local/domain/$1/device/xnem/$2"; }
back_dir() { echo "/local/domain/$3/backend/xnem/$1/$2"; }
front_error() { echo "/local/domain/$1/error/device/xnem/$2"; }
back_error() { echo "/local/domain/$3/error/backend/xnem/$1/$2"; }

# read_states FRONT_DIR BACK_DIR: sets $f and $b to the ends' states, as a digit; 0 where
# there is none or what is there is no state. One process while both ends are there.
read_states() {
	_states=$(xenstore-read "$1/state" "$2/state" 2>/dev/null) ||
		_states="$(xs_read "$1/state")
$(xs_read "$2/state")"
	f=${_states%%"$newline"*}
	b=${_states#*"$newline"}
	case $f in [1-8]) ;; *) f=0 ;; esac
	case $b in [1-8]) ;; *) b=0 ;; esac
}
state_word() {
	case $1 in
	1) echo Initialising ;;
	2) echo InitWait ;;
	3) echo Initialised ;;
	4) echo Connected ;;
	5) echo Closing ;;
	6) echo Closed ;;
	7) echo Reconfiguring ;;
	8) echo Reconfigured ;;
	*) echo gone ;;
	esac
}

# find_backends GUEST ID: sets $backends to the domains that have a directory for that
# device, normally one.
find_backends() {
	backends=
	for _b in $domains; do
		[ "$_b" != "$1" ] || continue
		! xs_exists "/local/domain/$_b/backend/xnem/$1/$2" || backends="$backends $_b"
	done
}

# All devices, a line each: GUEST ID BACKEND. BACKEND is - where there is a guest's
# directory alone.
all_devices() {
	for _b in $domains; do
		xs_list "/local/domain/$_b/backend/xnem" | while read -r _g; do
			is_domid "$_g" || continue
			xs_list "/local/domain/$_b/backend/xnem/$_g" | while read -r _i; do
				if is_device_id "$_i"; then echo "$_g $_i $_b"; fi
			done
		done
	done
	for _g in $domains; do
		xs_list "/local/domain/$_g/device/xnem" | while read -r _i; do
			is_device_id "$_i" || continue
			find_backends "$_g" "$_i"
			[ -n "$backends" ] || echo "$_g $_i -"
		done
	done
}

# remove_empty DIR: the caller holds the lock.
remove_empty() {
	_children=$(xs_list "$1") && [ -z "$_children" ] || return 0
	xenstore-rm "$1" 2>/dev/null
}

# remove_device GUEST ID [BACKEND]...: both directories in one transaction, so that
# neither kernel sees one without the other, then what would be left empty.
# /local/domain/G/device is the toolstack's, it stays. The caller holds the lock.
remove_device() {
	_g=$1 _i=$2
	shift 2
	_backs=$*
	set --
	_path=$(front_dir "$_g" "$_i")
	if xs_exists "$_path"; then set -- "$_path"; fi
	for _b in $_backs; do
		_path=$(back_dir "$_g" "$_i" "$_b")
		if xs_exists "$_path"; then set -- "$@" "$_path"; fi
	done
	if [ $# -gt 0 ]; then
		xenstore-rm "$@" || return
	fi

	remove_empty "/local/domain/$_g/device/xnem"
	for _b in $_backs; do
		remove_empty "/local/domain/$_b/backend/xnem/$_g"
		remove_empty "/local/domain/$_b/backend/xnem"
		remove_empty "/local/domain/$_b/backend"
	done
	# shellcheck disable=SC2086 # numbers
	remove_errors "$_g" "$_i" $_backs
}

# remove_errors GUEST ID [BACKEND]...: the ends' error messages. The caller holds the lock.
remove_errors() {
	_g=$1 _i=$2
	shift 2
	_path=$(front_error "$_g" "$_i")
	if xs_exists "$_path"; then
		xenstore-rm "$_path"
		remove_empty "/local/domain/$_g/error/device/xnem"
		remove_empty "/local/domain/$_g/error/device"
	fi
	for _b; do
		_path=$(back_error "$_g" "$_i" "$_b")
		xs_exists "$_path" || continue
		xenstore-rm "$_path"
		for _path in "xnem/$_g" xnem ''; do
			remove_empty "/local/domain/$_b/error/backend${_path:+/$_path}"
		done
	done
	return 0
}

# After a removal, before the same device may be made again: a kernel that looks at its
# watch event only when the directory is there again keeps its old device, and the new one
# is never probed. Nothing in xenstore tells when it has looked.
settle() { sleep 1; }

# What the ends' kernels say is wrong, a line each; nothing if they are content.
errors_of() {
	_error=$(xs_read "$(front_error "$1" "$2")/error" | printable)
	[ -z "$_error" ] || echo "guest: $_error"
	[ -n "$3" ] || return 0
	_error=$(xs_read "$(back_error "$1" "$2" "$3")/error" | printable)
	[ -z "$_error" ] || echo "backend: $_error"
}
