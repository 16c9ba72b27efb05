# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the scripts here that build something from Debian's packages have in common: sourced
# by `images`, `debug-kernel` and `stage-mpi`. All of it prints to standard error.
me=${0##*/}

say() { echo "$me: $*" >&2; }
fail() { say "$@"; exit 1; }

began=
step() {	# names what is being done, and how long the step before took
	[[ -n $began ]] && echo " $((SECONDS - began)) s" >&2
	began=
	(($#)) || return 0
	printf '%s: %s ...' "$me" "$*" >&2
	began=$SECONDS
}

# As root apt would change to a user that cannot write into our folder, and say so.
apt_get() { apt-get -q -o APT::Sandbox::User="$(id -un)" "$@"; }
