# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: MPICH's own tests over two loopback hosts in one guest, each with and without XNEM
# needs: guests=1 modules=yes backend=drv type=g1:pv vcpus=g1:2 memory=g1:1400
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

# Every message that two of these hosts exchange takes the way through the backend. The
# threshold is 1 byte, so that all but empty ones take XNEM. There are more ranks than CPUs:
# those that wait let others go on. $SUITE_ONLY (host run --set):
# those with this in their name.
launch="-launcher fork -hosts 127.0.0.2,127.0.0.3 -genv XNEM_MPI_THRESHOLD 1 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 10"
limit=${SUITE_LIMIT:-60}
run() { on -t $((limit + 60)) g1 "/opt/mpich-tests/run $1 $2 $limit $launch $3" </dev/null 2>&1 || echo "bad 0 0 no answer"; }
why() { echo "$1" | cut -d ' ' -f 4-; }
sent() { echo "$1" | cut -d ' ' -f 3; }

on g1 "ip link set lo up" </dev/null
exercised=0 silent=0 both=0
on g1 "cat /opt/mpich-tests/list" </dev/null | cut -d '|' -f 1 | grep -F -e "$SUITE_ONLY" >"$OUT/ids"
while read -r id; do
	off=$(run "$id" off)
	case $off in
	skip*) skip "$id" "${off#skip }"; continue ;;
	esac
	on=$(run "$id" on)
	case "${off%% *} ${on%% *}" in
	"ok ok" | "bad ok")
		if [ "$(sent "$on")" -eq 0 ]; then
			silent=$((silent + 1))
			pass "$id" "not exercised: no message by XNEM"
		else
			exercised=$((exercised + 1))
			pass "$id" "$(sent "$on") messages by XNEM"
		fi
		;;
	"bad bad")
		both=$((both + 1))
		pass "$id" "fails with and without XNEM: $(why "$off")"
		;;
	*)
		# A program that counts on messages being sent at once, whether received or not?
		slow=$(run "$id" off "-genv MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE 0")
		if [ "${slow%% *}" = bad ]; then
			both=$((both + 1))
			pass "$id" "fails with XNEM, and without it when nothing is sent eagerly: $(why "$slow")"
		else
			fail "$id" "$(why "$on")"
		fi
		;;
	esac
	echo "$id: off: $off; on: $on"
done <"$OUT/ids"
step "$exercised by XNEM, $silent without a message by XNEM, $both fail without XNEM, too"
settled suite-settled
