# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: every byte right: sizes, offsets, directions, kinds of memory, users
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

# matrix FROM TO USER BYTES: FROM owns, TO gets and puts. A test of 160 copies in each
# direction, of 0, 1, 4095, 4096, 4097, 65535 bytes, 1 MiB and 16 MiB (as far as BYTES
# reach) at odd offsets on both sides.
matrix() {
	_matrix=matrix-$1-$2-$3
	export_start "src$1" "$1" "$3" --bytes "$4" --offset 4033 --access r --pattern 9 &&
		export_start "dst$1" "$1" "$3" --bytes "$4" --offset 33 --access rw || return
	eval "_src=\$cookie_src$1 _dst=\$cookie_dst$1"
	TRY_LIMIT=300 try "$_matrix" "$2" "$3" matrix "$_src" "$_dst" --bytes "$4" --seed 9
	export_stop "src$1" "dst$1"
}

step "wrong arguments"
try args-pv g1 root args
try args-pvh g2 user args
settled args-settled

step "16 MiB, as root, one direction after the other"
matrix g1 g2 root 17000000
matrix g2 g1 root 17000000
settled matrix-root-settled

step "an unprivileged user with the default RLIMIT_MEMLOCK"
matrix g1 g2 user 3500000
matrix g2 g1 user 3500000
settled matrix-user-settled

step "both directions at once"
bytes=1500000
export_start a g1 root --bytes $bytes --offset 1 --pattern 3 --access r &&
	export_start b g1 root --bytes $bytes --offset 4095 --access rw &&
	export_start c g2 root --bytes $bytes --offset 77 --pattern 3 --access r &&
	export_start d g2 root --bytes $bytes --offset 2049 --access rw || exit
on_bg both1 -t 300 g1 "xnem-test matrix $cookie_c $cookie_d --bytes $bytes --seed 3"
on_bg both2 -t 300 g2 "xnem-test matrix $cookie_a $cookie_b --bytes $bytes --seed 3"
check both-g1 wait_bg both1
check both-g2 wait_bg both2

step "a push arrives where it should and nowhere else"
export_start e g2 root --bytes 100000 --offset 123 --access rw --pattern 1 \
	--verify-pattern 8 --verify-offset 5001 --verify-bytes 70001 || exit
try push g1 root push "$cookie_e" --bytes 70001 --src-offset 17 --dst-offset 5001 --pattern 8
on g2 'kill -USR1 $(pidof xnem-test)' </dev/null
try push-again g1 root pull "$cookie_e" --bytes 5001 --verify 1
export_stop a b c d e

step "memory that was not touched before it was registered"
for kind in heap mmap shm memfd; do
	export_start "untouched_$kind" g1 root --bytes 300000 --untouched-calloc --memory $kind \
		--pattern 21 --access r || continue
	try "untouched-$kind" g2 root pull "$cookie" --bytes 300000 --verify 21
	export_stop "untouched_$kind"
done
settled memory-settled

step "two processes of one guest"
export_start f g1 root --bytes 200000 --offset 9 --pattern 4 --access r || exit
try within-guest g1 root pull "$cookie_f" --bytes 150000 --src-offset 4097 --dst-offset 3 --verify 4

step "who may and who may not"
try read-only-write g2 root push "$cookie_f" --bytes 10 --expect EACCES
try other-user g2 user pull "$cookie_f" --bytes 10 --expect EPERM
try out-of-range g2 root pull "$cookie_f" --bytes 10 --src-offset 199991 --expect ERANGE
id=$(echo "$cookie_f" | cut -c1-16) key=$(echo "$cookie_f" | cut -c17-32)
fabric=$(echo "$cookie_f" | cut -c33-48)
try wrong-key g2 root pull "$id$(echo "$key" | tr 0123456789abcdef 123456789abcdef0)$fabric" \
	--bytes 10 --expect ENOENT
try wrong-id g2 root pull "ffffffffffffffff$key$fabric" --bytes 10 --expect ENOENT
export_start any g1 root --bytes 5000 --any --pattern 6 --access r || exit
try any-user g2 user pull "$cookie_any" --bytes 5000 --verify 6
export_stop f any

step "RLIMIT_MEMLOCK"
try memlock g1 user export --bytes 9000000 --expect ENOMEM --hold 0

step "signals at any moment of a call"
try signals g1 root signals --bytes 300000 --count 300
settled signals-settled

step "many threads, and open to close again and again"
export_start g g2 root --bytes 400000 --pattern 2 --access r || exit
try threads g1 root threads "$cookie_g" --bytes 400000 --seed 2 --threads 8 --count 40
try churn g1 root churn "$cookie_g" --bytes 400000 --seed 2 --count 200
export_stop g
settled end-settled
