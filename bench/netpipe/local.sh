# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: NetPIPE between two processes of one guest: MPICH's shared memory and XNEM
# needs: guests=1 modules=yes vcpus=g1:2
# shellcheck disable=SC1091,SC2034 # read in dom0; MPI_HOSTS is for mpi
#
# By hand: make stage stage-mpi; testbed/host run --dom0-overlay build/stage/dom0
# --domU-overlay build/stage/domU --domU-overlay build/stage-mpi bench/netpipe/local.sh
# What docs/mpi.md says of XNEM_MPI_LOCAL comes from here.
. /usr/lib/testbed/mpi.sh

mpi_there || die mpich "is not in the guest"
MPI_HOSTS="-hosts g1"
for way in shm xnem; do
	step "$way"
	if mpi -t 1200 -x on -ppn 2 -n 2 -genv XNEM_MPI_LOCAL $way -genv XNEM_MPI_VERBOSE 1 \
		NPmpich2 -p 0 -l 1024 -u 8388608 -n 5 -o /dev/shm/local.np >"$OUT/$way.out" 2>&1; then
		pass "$way"
	else
		fail "$way" "exit status $?: $(tail -n 1 "$OUT/$way.out")"
	fi
	get g1:/dev/shm/local.np "$OUT/$way.np"
done
# Both as NetPIPE has them: bytes, Mbit/s, seconds.
check by-xnem grep -q "sent by XNEM [1-9]" "$OUT/xnem.out"
check by-shm grep -q "sent by XNEM 0 " "$OUT/shm.out"
awk 'FNR == NR {t[$1] = $3; next} $1 in t {printf "%10d bytes: %9.1f usec by shared memory, %9.1f by XNEM, ratio %.2f\n", $1, t[$1] * 1e6, $3 * 1e6, t[$1] / $3}' \
	"$OUT/shm.np" "$OUT/xnem.np"
