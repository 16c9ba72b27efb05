# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: MPI programs over two guests, started by ssh: users, NetPIPE, without XNEM, a rank that dies
# needs: guests=2 modules=yes backend=drv
# shellcheck disable=SC1091,SC2016 # read in dom0; expanded over there
. /usr/lib/xnem-tests/copies.sh
. /usr/lib/testbed/mpi.sh

if [ "$MPI" = 0 ]; then
	skip mpi "MPI=0: MPICH is left out"
	exit 0
fi
mpi_there || die mpich "is not in the guests: make check-host SCENARIOS=mpi builds it and puts it there"

# job WANT NAME ARGS...: a test: a job that ends with status WANT (0, or "bad" for any other)
job() {
	want=$1 t=$2
	shift 2
	mpi -t 150 "$@" >"$OUT/$t.out" 2>&1
	rc=$?
	[ $rc -eq 0 ] || [ "$want" = 0 ] || [ $rc -ge 124 ] || rc=bad
	if [ "$rc" = "$want" ]; then
		pass "$t"
	else
		fail "$t" "exit status $rc: $(grep -v '^ok\|^#' "$OUT/$t.out" | tail -n 3)"
	fi
}
says() { # NAME PATTERN
	if grep -q "$2" "$OUT/$1.out"; then
		pass "$1-says"
	else
		fail "$1-says" "nothing like \"$2\": $(tail -n 3 "$OUT/$1.out")"
	fi
}
moved() { counter "$BACKEND" xnem-backend/total bytes; }
# by_xnem NAME BYTES: a test: the backend has moved at least that since $before
by_xnem() {
	check "$1" [ "$(moved)" -ge $((before + $2)) ]
}
verbose="-genv XNEM_MPI_VERBOSE 1"

step "ssh, as root and as a user with the default RLIMIT_MEMLOCK"
for who in root user; do
	job 0 hosts-$who -u $who -n 2 sh -c '"hostname; ulimit -l"'
	check hosts-$who-both [ "$(sort "$OUT/hosts-$who.out" | tr '\n' ' ')" = "8192 8192 g1 g2 " ]
done

step "a program of one page, by XNEM and by the network"
before=$(moved)
# shellcheck disable=SC2086 # words
{
	job 0 page-xnem -x required -u user $verbose -n 2 mpi-page
	says page-xnem "1 by XNEM"
	by_xnem page-xnem-moved 4194304
	job 0 page-xnem-root -x required -n 2 mpi-page
	before=$(moved)
	job 0 page-network -x off -u user -n 2 mpi-page
	check page-network-moved [ "$(moved)" -eq "$before" ]
	job 0 page-other -u user -ppn 2 -n 4 mpi-page
}

step "messages of every kind"
job 0 kinds-root -x required -n 2 xnem-mpi-test -n 20
# With 8 MiB to pin: what finds no room goes by the network, and arrives all the same.
before=$(moved)
job 0 kinds-user -x on -u user -n 2 xnem-mpi-test -n 60
by_xnem kinds-user-moved 1000000
step "5000 outstanding messages of 1 MiB; one of 2.2 GiB"
before=$(moved)
job 0 outstanding -t 400 -n 2 xnem-mpi-test -n 5000 outstanding
by_xnem outstanding-moved 10000000000
before=$(moved)
job 0 huge -t 300 -x required -n 2 xnem-mpi-test huge
by_xnem huge-moved 2306867200

step "programs of MPICH's own suite"
on g1 'cut -d "|" -f 1 /opt/mpich-tests/list' </dev/null >"$OUT/programs"
check programs-25 [ "$(wc -l <"$OUT/programs")" -ge 25 ]
# Four ranks on two CPUs: those that wait let others go on.
while read -r id; do
	said=$(on -t 90 g1 "/opt/mpich-tests/run $id required 60 $MPI_HOSTS -genv XNEM_MPI_THRESHOLD 1 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 10" </dev/null 2>&1)
	case $said in
	"ok "*" 0") fail "suite $id" "no message went by XNEM" ;;
	"ok "*) pass "suite $id" "${said##* } messages by XNEM" ;;
	*) fail "suite $id" "$said" ;;
	esac
done <"$OUT/programs"

step "NetPIPE, its integrity check"
before=$(moved)
job 0 netpipe -x required -u user -n 2 NPmpich2 -i -p 0 -u 1048576 -n 1 -o /dev/shm/np.out
check netpipe-passed [ "$(grep -c 'check passed' "$OUT/netpipe.out")" -ge 35 ]
by_xnem netpipe-moved 1000000

step "halo exchange, 4 ranks"
job 0 halo -u user -ppn 2 -n 4 halo 32:8:2
settled settled-jobs

step "ompi#239, ompi#9802, ucx#3038: without XNEM it goes by the network and says so"
# shellcheck disable=SC2086 # words
{
	job 0 no-library $verbose -genv XNEM_MPI_LIBRARY libnone.so -n 2 mpi-page
	says no-library "no XNEM"
	job bad no-library-required -x required -genv XNEM_MPI_LIBRARY libnone.so -n 2 mpi-page
	frontend_unload g2 >"$OUT/unload" 2>&1
	job 0 no-module $verbose -n 2 mpi-page
	says no-module "no XNEM"
	guest_load g2
	job 0 module-again -x required -n 2 mpi-page
	on g2 'chmod 600 /dev/xnem0' </dev/null
	job 0 no-permission -u user $verbose -n 2 mpi-page
	says no-permission "no XNEM: .*no permission"
	job bad no-permission-required -x required -u user -n 2 mpi-page
	says no-permission-required "no permission"
	on g2 'chmod 660 /dev/xnem0' </dev/null
	job 0 permission-again -x required -u user -n 2 mpi-page
}

step "the device goes while messages do"
mpi_bg detached -t 200 -n 2 NPmpich2 -p 0 -l 1048576 -u 1048576 -n 150 -o /dev/shm/np.out
before=$(moved)
busy() { [ "$(moved)" -gt $((before + 50000000)) ]; }
if wait_for 90 busy; then
	check detach xnem-detach g2
	if wait_bg detached; then
		pass detached "the job went on by the network"
	elif [ $? -lt 124 ]; then
		pass detached "the job ended with an error: $(tail -n 1 "$OUT/detached.err")"
	else
		fail detached "neither went on nor ended"
	fi
	kill_bg detached
	check attach xnem-attach g2 "backend=$BACKEND" --wait --timeout 60
	check attached wait_for 20 on g2 '[ -e /dev/xnem0 ]' </dev/null
	on g2 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
	job 0 attached-again -x required -n 2 mpi-page
else
	fail detached "did not begin: $(tail -n 3 "$OUT/detached.err")"
fi
settled settled-detached
# In g1, where rank 0 is.
job 0 gone -t 100 -n 2 xnem-mpi-test gone
check gone-again on g1 'echo xnem-0 >/sys/bus/xen/drivers/xnem-frontend/bind' </dev/null
check gone-back wait_for 20 on g1 'xnem-info | grep -q "^state: *connected"' </dev/null
on g1 'chgrp xnem /dev/xnem0; chmod 660 /dev/xnem0' </dev/null
settled settled-gone

step "a rank is killed in the middle of 64 MiB"
for way in send recv; do
	mpi_bg die_$way -t 170 -disable-auto-cleanup -n 2 mpi-die $way
	if wait_for 90 grep -q "first is done" "$OUT/die_$way.out"; then
		sleep 1
		on g2 'kill -9 $(pidof mpi-die)' </dev/null
		check die-$way-ends wait_for 60 grep -q "error after" "$OUT/die_$way.out"
	else
		fail die-$way "did not begin: $(tail -n 3 "$OUT/die_$way.err")"
	fi
	kill_bg die_$way
	on g1 'kill -9 $(pidof mpi-die)' </dev/null 2>/dev/null
	settled settled-die-$way
done
