#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# walk_cost.sh PROGRAM: instructions of the walk and its loop, a page and an
# operation, as callgrind counts them.
set -eu

prog=$1
out=$(mktemp)
trap 'rm -f "$out"' EXIT

for offsets in "0 0" "100 100" "0 2048" "1 4095"; do
	# shellcheck disable=SC2086 # two words
	counts=$(valgrind -q --tool=callgrind --callgrind-out-file="$out" \
		--toggle-collect=measured "$prog" $offsets 2>/dev/null)
	pages=${counts% *}
	ops=${counts#* }
	insns=$(sed -n 's/^\(summary\|totals\): *//p' "$out" | head -n 1)
	echo "$offsets $pages $ops $insns" | awk '{
		printf "source +%-4d destination +%-4d  %5.1f instructions a page, %5.1f an operation\n",
			$1, $2, $5 / $3, $5 / $4 }'
done
