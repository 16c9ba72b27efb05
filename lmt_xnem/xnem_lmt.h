/* SPDX-License-Identifier: MIT */
/*
 * The XNEM module's side towards MPICH: what the patch calls, and where from.
 */
#ifndef XNEM_LMT_H
#define XNEM_LMT_H

#define XNEM_LMT_CARD_KEY "xnem"

/** MPID_nem_init(): opens the device and adds to the business card. */
int xnem_lmt_init(int rank, char **card, int *card_left);
/** MPID_nem_vc_init(), at its end: decides about a connection. */
int xnem_lmt_vc_init(MPIDI_VC_t *vc);
/** MPIDI_CH3I_Progress_init(): the two packets. */
void xnem_lmt_packets_init(MPIDI_CH3_PktHandler_Fcn **handlers);
/** MPIDI_CH3I_Progress(), when xnem_lmt_pending. */
int xnem_lmt_progress(void);
/** MPID_nem_finalize(), after the last connection has ended. */
void xnem_lmt_finalize(void);

#endif
