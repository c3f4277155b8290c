/* SPDX-License-Identifier: MIT */
/* xrt.h: the three calls of Manica, Abeni and Palopoli, "QoS Support in the X11 Window Systems" (RTAS 2008, section
 * 3.3), for Xlib clients.
 *
 * A client makes itself real-time: it gets rt_maxcapacity microseconds of server time in every rt_period, or learns
 * that this is refused. The names are those of the paper; the arguments, which the paper does not specify, are those of
 * this library. For other clients, lists, policies and events use xqos.h with XGetXCBConnection.
 *
 * Every function returns 0 (XQOS_OK) or a negative number of enum xqos_error; xqos_strerror returns its text. No X
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

/* The paper's data of a client, and the behaviour on depletion, which the paper leaves open. If rt_hard and
 * rt_best_effort are 0, the paper's soft rule applies: the budget is recharged immediately and the deadline postponed
 * by the period, so that the client stays above clients that are not real-time. */
typedef struct {
    uint32_t rt_period;      /* T, microseconds; 0: not real-time */
    uint32_t rt_maxcapacity; /* Q, the maximum budget, microseconds */
    int64_t rt_capacity;     /* q, the current budget, microseconds rounded down; negative after a long request */
    uint64_t rt_deadline;    /* d, the scheduling deadline, microseconds of the server's CLOCK_MONOTONIC */
    uint32_t rt_hard;        /* 1: held back on depletion until rt_deadline; 0: soft */
    uint32_t rt_best_effort; /* 1 with rt_hard 0: not real-time on depletion, until rt_deadline; not in the paper */
    uint32_t rt_reserved[8]; /* for future fields; must be 0 */
} RTProperty;

/* Sets all of *rt to 0, which means "not real-time", and checks that the server has xqos.
 * Errors: NO_EXTENSION, VERSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int XRTInitialize(Display *display, RTProperty *rt);

/* Makes this client real-time with rt_period, rt_maxcapacity, rt_hard and rt_best_effort. The other fields are ignored,
 * but rt_reserved must be 0. If rt_period and rt_maxcapacity are both 0, the client is no longer real-time. After an
 * error nothing has changed.
 * Errors: ADMISSION; VALUE (out of the server's range, rt_hard or rt_best_effort neither 0 nor 1, or both 1);
 * NO_EXTENSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int RTSetProperty(Display *display, const RTProperty *rt);

/* Fills *rt with the state of this client's reservation; all 0 if it has none.
 * Errors: NO_EXTENSION, CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int RTGetProperty(Display *display, RTProperty *rt);

/* Moves this client to a group, which shares its time, like xqos_set_client_group; not in the paper.
 * Errors: VALUE, NO_EXTENSION, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int RTSetGroup(Display *display, const char *name);

#ifdef __cplusplus
}
#endif

#endif
