/* SPDX-License-Identifier: MIT */
/*
 * hostile.h - what the attacks of a frontend have in common
 *
 * They stand on the frozen frontend: it connects as it should, and then does what
 * no frontend should.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "../frozen/common.h"

/** Attacks that the backend bears: it answers, and serves the same device on. */
extern const struct test served_tests[];
/** Attacks for which the device is cut off; each needs a device that was not before. */
extern const struct test cut_tests[];

/** xorshift: the same numbers for the same seed, everywhere. */
uint64_t rnd(uint64_t *state);

/** Puts a request into the ring as it is, with no look at room, ids or answers. */
void shove(struct frontend *fe, const struct xnem_request *req);
/** Takes answers without looking at them, until @n in all have come; false: they do not. */
bool take_raw(struct frontend *fe, uint32_t n);
/** Shows what was shoved, and always notifies. */
void show_all(struct frontend *fe);
/** As it is before a connection, for one that begins anew with the pages there are; not during one. */
void new_header(struct frontend *fe);

/**
 * Thread that calls @scribble(arg) without pause until the end; one at a time.
 */
void scribbler_start(void (*scribble)(void *arg), void *arg);
void scribbler_stop(void);

/** @count mutated requests. */
int fuzz(struct frontend *fe, uint64_t seed, uint64_t count);
/** Garbage in nodes of xenstore. */
int nodes(struct frontend *fe, const char *node);

#endif /* HOSTILE_H */
