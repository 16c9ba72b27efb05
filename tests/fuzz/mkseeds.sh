#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# mkseeds.sh DIR: what the fuzzers start from, one directory a harness.  Made
# rather than kept, so that they can be read.
set -eu

dir=$1
rm -rf "$dir"
mkdir -p "$dir/request" "$dir/completion" "$dir/xenstore" "$dir/walk" \
	"$dir/segments"

# byte VALUE, and little-endian numbers of 2, 4 and 8 bytes (8: below 2^32)
byte()
{
	# shellcheck disable=SC2059 # the escape is the format
	printf "\\$(printf %03o "$1")"
}

le16()
{
	byte $(($1 & 255)); byte $(($1 >> 8 & 255))
}

le32()
{
	le16 $(($1 & 65535)); le16 $(($1 >> 16 & 65535))
}

le64()
{
	le32 "$1"; le32 0
}

zeros()
{
	head -c "$1" /dev/zero
}

# head OP FLAGS: the first 32 bytes of a request
head32()
{
	le32 7; le16 "$1"; le16 "$2"; le32 3; le32 0; le64 11; le64 13
}

# register LENGTH OFFSET FLAGS PAGES REFS
register()
{
	head32 1 0
	le64 "$1"; le32 "$2"; le32 3; le32 "$3"; le32 "$4"
	n=0
	while [ $n -lt 18 ]; do
		if [ $n -lt "$5" ]; then le32 $((n + 8)); else le32 0; fi
		n=$((n + 1))
	done
}

# copy SRC_OFFSET DST_OFFSET LENGTH
copy()
{
	head32 3 0
	le64 1; le64 2; le64 3; le64 4
	le64 "$1"; le64 "$2"; le64 "$3"
	zeros 40
}

# segment LENGTH OFFSET
segment()
{
	le64 "$1"; le32 "$2"; le32 0
}

# features, all of them, and limits
before()
{
	le64 511
	le32 4; le32 2; le32 1; le32 128; le32 256; le32 1024; le32 18432; le32 1048576
	le32 4; le32 64
}

r=$dir/request
{ before; head32 0 1; zeros 96; } >"$r/ping"
{ before; register 5000 100 0 2 2; } >"$r/register"
{ before; register 73728 0 1 18 18; } >"$r/register-18"
{ before; register 4194305 0 2 1025 2; } >"$r/register-indirect"
{ before; head32 2 0; le64 5; zeros 88; } >"$r/deregister"
{ before; copy 1 2 4097; } >"$r/copy"
{ before; head32 4 0; le32 9; zeros 92; } >"$r/open"
{ before; head32 5 0; zeros 96; } >"$r/close"
{ before; register 5000 2 8 3 4; } >"$r/register-segments"
{ before; register 9000000 300 14 2500 5; } >"$r/register-segments-indirect-once"
{ before; register 1073741824 0 16 262144 0; } >"$r/register-windowed"
{ before; register 5000 2 24 3 1; } >"$r/register-windowed-segments"
{
	before; head32 3 10; le64 1; le64 2; le64 3; le64 4
	le64 5; le64 6; le64 7; le64 8; zeros 32
} >"$r/copy-notify"
{ before; head32 3 20; le64 1; le64 2; le64 3; le64 4; zeros 64; } >"$r/copy-bounded"
{
	before; head32 4 0; le32 9; le32 1; le32 10; le32 2
	le32 11; le32 12; le32 13; le32 14; zeros 64
} >"$r/open-inbox"
{ before; head32 16 4; le64 1; le64 2; le32 5; le32 0; printf hello; zeros 67; } >"$r/message"
{ before; head32 17 0; le32 6; zeros 92; } >"$r/cancel"
{ before; head32 18 0; le32 3; le32 1; le32 2; le32 0; le32 8; le32 9; zeros 72; } >"$r/describe"
{ before; head32 18 0; le32 0; le32 1; le32 64; le32 1; le32 8; zeros 76; } >"$r/describe-indirect"
{ before; head32 18 0; le32 0; le32 1; zeros 88; } >"$r/describe-nothing"
{ before; head32 32 0; zeros 96; } >"$r/reserved"

c=$dir/completion
{ le16 3; le16 0; le64 4097; le32 7; le16 0; le16 0; le64 4097; zeros 16; } >"$c/copy"
{ le16 3; le16 0; le64 4097; le32 7; le16 9; le16 0; le64 4096; zeros 16; } >"$c/fault"
{ le16 3; le16 16; le64 4097; le32 7; le16 0; le16 0; le64 100; zeros 16; } >"$c/bounded"
{ le16 3; le16 8; le64 4097; le32 7; le16 14; le16 0; le64 4097; zeros 16; } >"$c/busy"
{ le16 1; le16 0; le64 0; le32 7; le16 0; le16 0; le64 0; le64 1; le64 2; } >"$c/register"

x=$dir/xenstore
{ byte 0; printf 4294967295; } >"$x/u32"
{ byte 1; printf '0 1'; } >"$x/versions"
{ byte 2; printf 0123456789abcdEF; } >"$x/hex64"
{
	byte 3
	printf 'queues=4 sq-order=2 cq-order=1 inflight=128 contexts=256 regions=1024 '
	printf 'region-pages=18432 pages=1048576 windows=4 window-pages=64 later=1'
} >"$x/limits"
{ byte $((4 + 6 * 16)); printf '8 9 10 11'; } >"$x/refs"
{ byte $((4 + 6)); printf '4294967295'; } >"$x/refs-1"
{ byte 5; printf 'zone-1_a.B'; } >"$x/zone"

w=$dir/walk
{ register 5000 100 0 2 2; register 9000 4095 0 4 4; copy 1 2 4097; } >"$w/small"
{ register 73728 0 0 18 18; register 73727 1 0 18 18; copy 0 0 65535; } >"$w/odd"
{ register 8388608 0 2 2048 2; register 4194304 0 2 1024 1; copy 4096 0 4194304; } >"$w/large"
{ register 1 4095 0 1 1; register 1 0 0 1 1; copy 1 1 0; } >"$w/nothing"

s=$dir/segments
{ le64 1; le32 1; segment 1 4095; } >"$s/byte"
{ le64 4099; le32 4; segment 4096 0; segment 2 4095; segment 1 7; } >"$s/three"
{ le64 5; le32 3; segment 3 10; segment 1 10; segment 1 11; } >"$s/one-page"
{ le32 0; le32 2048; le32 2147483648; le32 0; le32 2048; le64 0; } >"$s/8-TiB"
