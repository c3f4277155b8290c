/* SPDX-License-Identifier: MIT */
/* xrt.h: the three calls of Manica, Abeni and Palopoli, "QoS Support in the X11 Window Systems" (RTAS 2008, section
 * 3.3), for Xlib clients.
 *
 * A client makes itself real-time: it gets rt_maxcapacity microseconds of server time in every rt_period, or is told
 * that it cannot. The names are the paper's; the arguments, which the paper does not give, are this library's.
 * For other clients, lists, policies and events use xqos.h with XGetXCBConnection.
 *
 * Every function returns 0 (XQOS_OK) or a negative number of enum xqos_error; xqos_strerror says what it means. No X
 * error handler is called.
 *
 *     RTProperty rt;
 *     if (XRTInitialize(display, &rt) == 0) {
 *         rt.rt_maxcapacity = 3000;
 *         rt.rt_period = 10000;
 *         result = RTSetProperty(display, &rt);
 *     }
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XRT_H
#define XRT_H

#include <stdint.h>

#include <X11/Xlib.h>

#include <xqos.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The paper's per-client data, and what it leaves to the reader: which behaviour on depletion. With rt_hard and
 * rt_best_effort 0 it is the paper's soft one: the budget is recharged at once and the deadline postponed by the period,
 * so that the client stays above those that are not real-time. */
typedef struct {
    uint32_t rt_period;      /* T, microseconds; 0: not real-time */
    uint32_t rt_maxcapacity; /* Q, the maximum budget, microseconds */
    int64_t rt_capacity;     /* q, the current budget, microseconds rounded down; negative after a long request */
    uint64_t rt_deadline;    /* d, the scheduling deadline, microseconds of the server's CLOCK_MONOTONIC */
    uint32_t rt_hard;        /* 1: held back on depletion until rt_deadline; 0: soft */
    uint32_t rt_best_effort; /* 1, with rt_hard 0: on depletion it is one of the clients that are not real-time, until
                              * rt_deadline; not of the paper */
    uint32_t rt_reserved[8]; /* room for growth; 0 */
} RTProperty;

/* Sets all of *rt to 0, which is "not real-time", and checks that the server has the extension.
 * Errors: NO_EXTENSION, VERSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int XRTInitialize(Display *display, RTProperty *rt);

/* Makes this client real-time with rt_period, rt_maxcapacity, rt_hard and rt_best_effort; the other fields are not read,
 * but rt_reserved must be 0. With rt_period and rt_maxcapacity both 0 the client is not real-time any more. After an
 * error nothing has changed.
 * Errors: ADMISSION; VALUE (out of the server's range, rt_hard or rt_best_effort neither 0 nor 1, or both 1);
 * NO_EXTENSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int RTSetProperty(Display *display, const RTProperty *rt);

/* Fills *rt with how this client's reservation goes; all 0 where it has none.
 * Errors: NO_EXTENSION, CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int RTGetProperty(Display *display, RTProperty *rt);

/* Shares this client's time with those of the same group, as xqos_set_client_group does; not of the paper.
 * Errors: VALUE, NO_EXTENSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int RTSetGroup(Display *display, const char *name);

#ifdef __cplusplus
}
#endif

#endif
