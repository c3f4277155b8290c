/* SPDX-License-Identifier: MIT */
/* xqos.h: quality of service from an X server with xqos, for XCB clients.
 *
 * A client can ask for a guaranteed share of the server's time (a reservation: a budget in every period), read how much
 * each client uses the server, and set the scheduling policy. xqos(3) is the manual; xrt.h is the shorter interface of
 * Manica et al. (RTAS 2008) for Xlib clients.
 *
 * Every function is synchronous: it sends a request and waits for the answer. Every function that returns int returns
 * XQOS_OK (0) or a negative number of enum xqos_error, unless documented otherwise. If a function fails, it leaves its
 * output unchanged, unless documented otherwise.
 *
 * Names of times end in their unit: _us microseconds, _ns nanoseconds, _ms milliseconds. Points in time (deadline_ns,
 * connected_ns, now_ns) are those of CLOCK_MONOTONIC on the server's machine. _ppm means millionths: 900000 is 0.9.
 *
 * A structure that the library fills or reads starts with its size, which the caller sets, so that later versions can
 * add fields at the end without breaking programs:
 *
 *     struct xqos_reservation mine = { .size = sizeof mine };
 *
 * A size smaller than that in this header causes XQOS_ERR_ARGUMENT. The library zeroes fields that it does not know.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_H
#define XQOS_H

#include <stddef.h>
#include <stdint.h>

#include <xcb/xcb.h>

#include "xqosproto.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define XQOS_PUBLIC __attribute__((visibility("default")))
#define XQOS_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define XQOS_PUBLIC
#define XQOS_CHECK_RESULT
#endif

/* The calling client, for functions that take a client. To name another client, use any of its resource ids (a window,
 * a pixmap, the base of its ids). An id that belongs to no connected client causes XQOS_ERR_VALUE. */
#define XQOS_SELF 0u

/* Size of the name of a group or an origin, including the terminating 0. */
#define XQOS_NAME_BYTES 32

/* Number of classes in which waits are counted: up to 1, 5, 20, 50, 100, 250 and 1000 ms, and longer. */
#define XQOS_WAITS 8

/* The uid of a client that is not on the server's machine. */
#define XQOS_NO_UID UINT32_MAX

enum xqos_error {
    XQOS_OK = 0,
    XQOS_ERR_NO_EXTENSION = -1, /* the server has no xqos, or hides it from this client */
    XQOS_ERR_CONNECTION = -2,   /* the connection to the server is broken */
    XQOS_ERR_VERSION = -3,      /* the server has a different major version */
    XQOS_ERR_ACCESS = -4,       /* BadAccess: this client has no permission to do that */
    XQOS_ERR_VALUE = -5,        /* BadValue: out of range, an unknown flag or mask bit, or an unknown client */
    XQOS_ERR_ADMISSION = -6,    /* the reservation would break guarantees already given */
    XQOS_ERR_LENGTH = -7,       /* BadLength, or an answer that is too short */
    XQOS_ERR_REQUEST = -8,      /* BadRequest: the server does not know this request */
    XQOS_ERR_MEMORY = -9,       /* BadAlloc, or out of memory in this program */
    XQOS_ERR_PROTOCOL = -10,    /* any other X error */
    XQOS_ERR_ARGUMENT = -11,    /* a null pointer or a wrong structure size; nothing was sent */
    XQOS_ERR_EVENT = -12,       /* xqos_decode_event: not an event of this extension */
    XQOS_ERR_FROM_BELOW = -13   /* xqos serves this server through libc, without the extension, and cannot see single
                                 * requests, which XQOS_POLICY_CLASSIC needs */
};

/* A connection to a server with xqos. It does not change after xqos_open, so several threads can share it in the same
 * way as the XCB connection. */
typedef struct xqos xqos_t;

/* The list that xqos_list_clients returns, with a current position. Only one thread at a time may use it. */
typedef struct xqos_client_list xqos_client_list_t;

/* xqosproto.h declares and describes the structures. In addition: in struct xqos_reservation, all fields are 0 if
 * active is 0. struct xqos_admission contains the first term of the test that exceeds the limit or, if admitted, the
 * largest term. With the reservations in order of period, the test requires for each reservation i that the sum of
 * budget/period up to i, plus B divided by the period of i, is at most U. */

/* Looks for the extension on a connection, or for the control socket if the server cannot have the extension, and
 * checks the version. *out is then the context for all other functions. The caller still owns the connection, which
 * must outlive the context.
 * Errors: NO_EXTENSION, VERSION, CONNECTION, MEMORY, ARGUMENT. After an error *out is null. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_open(xcb_connection_t *connection, xqos_t **out);

/* Frees the context. Reservations, and events selected on the X connection, remain until the connection ends. Null is
 * allowed. */
XQOS_PUBLIC void xqos_close(xqos_t *xqos);

/* Gets the server's version of the protocol. Either pointer may be null. Errors: CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_query_version(xqos_t *xqos, uint32_t *major, uint32_t *minor);

/* Gets the state and the settings of the scheduler. Errors: CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_server_info(xqos_t *xqos, struct xqos_server_info *out);

/* Reserves budget_us of server time in every period_us for a client, and replaces its current reservation. The budget
 * must be from min_budget_us to period_us, and the period from min_period_us to max_period_us, both as in
 * xqos_server_info. After an error, nothing has changed.
 *
 * flags determines what happens to the client from the time its budget is used up until its deadline:
 *
 *     0 (soft)                        it gets its share among the clients without a reservation
 *     XQOS_RESERVATION_HARD           it is held back
 *     XQOS_RESERVATION_SOFT_PAPER     it gets the next budget immediately, and its deadline is postponed by one period
 *                                     (the soft rule of Manica et al. 2008). It stays above the clients without a
 *                                     reservation; while it is busy, they get only the time that reservations leave. If
 *                                     its group has a cap, this is the same as 0.
 *
 * refused may be null. After XQOS_ERR_ADMISSION it contains the failing term of the test, from a second request. If
 * the server's state has changed in between and the test would now pass, failing_client is the client named in the
 * refusal, all other fields are 0, and trying again may succeed.
 *
 * Errors: ADMISSION; VALUE (out of range, unknown flags, unknown client); ACCESS (another client: allowed for local
 * clients of its user, of the user that runs the server, and of root); CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us,
                                                       uint32_t period_us, uint32_t flags,
                                                       struct xqos_admission *refused);

/* Gets a client's reservation and its state. If the client has no reservation, active is 0.
 * Errors: VALUE (unknown client), CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_reservation(xqos_t *xqos, uint32_t client, struct xqos_reservation *out);

/* Ends a client's reservation. It is not an error if the client has none.
 * Errors: VALUE (unknown client), ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_clear_reservation(xqos_t *xqos, uint32_t client);

/* Checks whether xqos_set_reservation with the same arguments would be admitted, and changes nothing. A refusal is not
 * an error: out->admitted is 0.
 * Errors: VALUE, CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_check_admission(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us,
                                     uint32_t flags, struct xqos_admission *out);

/* Gets all clients of the server at one point in time. Free *out with xqos_client_list_free; after an error it is null.
 * Errors: CONNECTION, LENGTH, MEMORY, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_list_clients(xqos_t *xqos, xqos_client_list_t **out);

/* Returns the number of clients in the list. */
XQOS_PUBLIC uint32_t xqos_client_list_count(const xqos_client_list_t *list);

/* Returns the time at which the list was made. */
XQOS_PUBLIC uint64_t xqos_client_list_now_ns(const xqos_client_list_t *list);

/* Fills out with the next client. Returns 1, or 0 at the end, or XQOS_ERR_ARGUMENT. Use it in a loop:
 *     while (xqos_client_list_next(list, &client) > 0) */
XQOS_PUBLIC int xqos_client_list_next(xqos_client_list_t *list, struct xqos_client *out);

/* Goes back to the first client. */
XQOS_PUBLIC void xqos_client_list_rewind(xqos_client_list_t *list);

/* Frees the list. Null is allowed. */
XQOS_PUBLIC void xqos_client_list_free(xqos_client_list_t *list);

/* Sets the fields that change->mask names: the policy and its settings. After an error, none of them has changed. Only
 * local clients of root, and of the user that runs the server, may do this.
 * Errors: VALUE (out of range, unknown policy or mask bit), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_policy(xqos_t *xqos, const struct xqos_policy_change *change);

/* Sets a client's weight in hundredths, 1 to 10000; 100 by default. Used by XQOS_POLICY_FAIR.
 * Errors: VALUE, ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths);

/* Sets a client's priority, -1000 to 1000 (larger values are served first); 0 by default. Used by XQOS_POLICY_FIXED.
 * Errors: VALUE, ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_priority(xqos_t *xqos, uint32_t client, int32_t priority);

/* Sets a client's longest slice, 100 to 1000000 us, or 0 for the policy's slice. A request is never interrupted.
 * Errors: VALUE, ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_slice(xqos_t *xqos, uint32_t client, uint32_t slice_us);

/* Sets the name reported as the origin of settings that this context makes from now on; null or empty: the client
 * itself, or `hand`. With lease 1 these settings end with the connection, however it ends, or with xqos_close if the
 * server has no extension; they cannot replace settings made without a lease (ACCESS). Errors: VALUE (lease neither 0
 * nor 1), ARGUMENT (a name of XQOS_NAME_BYTES or more), CONNECTION, MEMORY. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_origin(xqos_t *xqos, const char *name, uint32_t lease);

/* Sets which clients form a group, and the largest sum of one user's reservations (except for root and the server's
 * user); 0: no limit.
 * Errors: VALUE; ACCESS (allowed for local clients of the user that runs the server, and of root; a leased limit does
 * not replace one without a lease); CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_groups(xqos_t *xqos, uint32_t grouping, uint32_t user_limit_ppm);

/* Gets the grouping and the per-user limit. Errors: CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_groups(xqos_t *xqos, struct xqos_groups *out);

/* Moves a client to the group with this name. Null or empty: the group that the grouping gives; ":none", ":app" and
 * ":user": the group that this grouping would give.
 * Errors: VALUE (unknown client, another name that begins with a colon), ACCESS (another client), ARGUMENT (a name of
 * XQOS_NAME_BYTES or more), CONNECTION. */
XQOS_PUBLIC int xqos_set_client_group(xqos_t *xqos, uint32_t client, const char *name);

/* Sets the weight of a client's group in hundredths, 1 to 10000; 0: the weight of its heaviest client. The setting ends
 * with the group.
 * Errors: VALUE (out of range, unknown client, client without a group), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_group_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths);

/* Sets the maximum share of a client's group in millionths, 10000 to 1000000; 0: no cap.
 * Errors as for xqos_set_group_weight. */
XQOS_PUBLIC int xqos_set_group_cap(xqos_t *xqos, uint32_t client, uint32_t cap_ppm);

/* Reserves budget_us in every period_us for all clients of a client's group together, in place of the group's current
 * reservation. Clients that have their own reservation do not use it. Ranges, flags and the admission test are those of
 * xqos_set_reservation. It ends with xqos_clear_group_reservation or with the group.
 *
 * refused is filled as by xqos_set_reservation; a group is identified by one of its clients.
 *
 * Errors: ADMISSION; VALUE (out of range, unknown flags, unknown client, client without a group); ACCESS, CONNECTION,
 * ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_group_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us,
                                                             uint32_t period_us, uint32_t flags,
                                                             struct xqos_admission *refused);

/* Ends the reservation of a client's group. It is not an error if the group has none.
 * Errors: VALUE (unknown client, client without a group), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_clear_group_reservation(xqos_t *xqos, uint32_t client);

/* Sets whether a client waits for the clients that it uncovers (enum xqos_paced).
 * Errors: VALUE, ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_pacing(xqos_t *xqos, uint32_t client, uint32_t pacing);

/* Reports that a client is about to redraw, as if an Expose had been delivered to it. xqos sees Exposes itself, so
 * this is for redraws that no Expose announces: of a toolkit whose windows a compositor keeps, or after a scroll. The
 * client counts as exposing until its next requests have been served, for at most the limit of pacing, or 40 ms.
 * `xqos boost` raises it meanwhile, and the policy fair prefers it once. Marks less than 10 ms after an earlier one are
 * ignored. To mark the program that the user drags, use xqos_set_client_pacing with XQOS_PACING_ALWAYS.
 * Errors: VALUE, ACCESS (another client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_mark_exposing(xqos_t *xqos, uint32_t client);

/* Selects the events (XQOS_EVENTS_*) that this connection receives from now on; 0: none. Depletions and misses are
 * sent at most ten times per second and client.
 * Errors: VALUE (unknown bit), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_select_events(xqos_t *xqos, uint32_t mask);

/* Fills out from an event of the connection, as returned by xcb_wait_for_event; the caller still owns the event. Sends
 * nothing. Events that another client sent with SendEvent are rejected, because they do not come from the server.
 * Errors: EVENT (not of this extension), ARGUMENT. */
XQOS_PUBLIC int xqos_decode_event(const xqos_t *xqos, const xcb_generic_event_t *event, struct xqos_event *out);

/* Returns a descriptor that becomes readable when selected events arrive outside the X connection: a server without the
 * extension sends them over its control socket. Read them with xqos_next_event. Returns -1 if no events are selected,
 * or if they arrive on the X connection. The descriptor belongs to the context. */
XQOS_PUBLIC int xqos_event_descriptor(const xqos_t *xqos);

/* Fills out with the next event that arrived outside the X connection; never waits. Returns 1, or 0 if there is none,
 * or an error. Only one thread at a time may call it.
 * Errors: CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_next_event(xqos_t *xqos, struct xqos_event *out);

/* Returns the text for a result code of this library; never null, must not be freed. */
XQOS_PUBLIC const char *xqos_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
