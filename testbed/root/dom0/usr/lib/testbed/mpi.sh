# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# MPI jobs in scenarios; read after lib.sh. Guests have what testbed/stage-mpi makes.
#
#   mpi_there                       is it there?
#   mpi [-t SECONDS] [-u USER] [-x off|on|required] ARGS...
#          mpiexec ARGS in g1; -x says whether large messages go by XNEM (default on).
#          In counted mode ranks give their turn away when they poll.
#   mpi_bg NAME ...                 the same, not waited for, as on_bg
#
# $MPI_ENV goes to each mpiexec: host run --set MPI_ENV="-genv XNEM_MPI_THRESHOLD 16K"
MPICH=/opt/mpich
MPI_HOSTS="-hosts g1,g2"

mpi_there() { on g1 "[ -x $MPICH/bin/mpiexec ]" </dev/null; }

_mpi() {	# HOW: on, or on_bg NAME
	_how=$1 _xnem=on _on=
	shift
	while :; do
		case $1 in
		-x) _xnem=$2 ;;
		-t | -u) _on="$_on $1 $2" ;;
		*) break ;;
		esac
		shift 2
	done
	_env="$MPI_ENV -genv XNEM_MPI $_xnem"
	[ "$MODE" != counted ] || _env="$_env -genv LD_PRELOAD /usr/lib/xnem/libpause.so"
	# shellcheck disable=SC2086 # words
	$_how $_on g1 "export LD_LIBRARY_PATH=$MPICH/lib; exec $MPICH/bin/mpiexec $MPI_HOSTS $_env $*"
}
mpi() { _mpi on "$@" </dev/null; }
mpi_bg() {
	_bg=$1
	shift
	_mpi "on_bg $_bg" "$@" </dev/null
}
