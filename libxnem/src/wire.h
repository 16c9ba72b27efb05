/* SPDX-License-Identifier: MIT */
/*
 * The wire protocol's header, whose names of two types are the library's, too.
 */
#ifndef XNEM_WIRE_H
#define XNEM_WIRE_H

#define xnem_cookie xnem_wire_cookie
#define xnem_op xnem_wire_op
#include <xen/io/xnemif.h>
#undef xnem_cookie
#undef xnem_op

#endif /* XNEM_WIRE_H */
