# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: a guest's small copies beside 1 GiB of another's (qubes-issues#5073)
# needs: guests=2 modules=yes backend=drv type=g1:pv,g2:pvh
# shellcheck disable=SC1091 # read in dom0
. /usr/lib/xnem-tests/copies.sh

# of DEVICE'S-GUEST KEY: a counter of its device in the driver domain.
of() { counter drv "xnem-backend/$(guest_domid "$1")-0" "$2"; }
load_is_on() { [ "$(of g1 inflight)" -ge 60 ]; }

on_bg server_g1 -t 300 g1 "exec xnem-perf server --port 7111"
on_bg server_g2 -t 300 g2 "exec xnem-perf server --port 7112"

step "64 copies of 16 MiB from g1 in flight, 64 KiB at a time from g2"
on_bg load -t 300 g1 "exec xnem-perf client g2 --port 7112 --wait 20 --test bw --op put --size 16M --depth 64 --iterations 100000"
if wait_for 60 load_is_on; then pass load; else fail load "in flight: $(of g1 inflight): $(tail -n 1 "$OUT/load.err")"; fi
before=$(of g1 chunks)
if on -t 200 g2 "xnem-perf client g1 --port 7111 --wait 20 --test lat --size 64K --iterations 200 --verify" >"$OUT/small.out" 2>&1 </dev/null; then
	pass small
else
	fail small "$(tail -n 1 "$OUT/small.out")"
fi
if wait_for 30 load_is_on; then pass load-still-on; else fail load-still-on "in flight: $(of g1 inflight)"; fi
chunks=$(($(of g1 chunks) - before)) waited=$(of g2 wait_bytes_max)
step "meanwhile $chunks chunks for g1; a copy of g2 waited for at most $waited bytes"
# Each of the 200 meets a worker that is busy with a chunk.
if [ "$chunks" -ge 200 ]; then pass chunks; else fail chunks "$chunks"; fi
# Four chunks of 256 KiB.
if [ "$waited" -gt 0 ] && [ "$waited" -le 1048576 ]; then
	pass four-chunks
else
	fail four-chunks "a copy of 64 KiB waited for $waited bytes"
fi
kill_bg load
kill_bg server_g1
kill_bg server_g2
settled fair-settled
