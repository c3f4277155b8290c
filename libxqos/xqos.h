/* SPDX-License-Identifier: MIT */
/* xqos.h: quality of service from an X server that carries xqos, for clients written on XCB.
 *
 * A client asks the server for a guaranteed share of its time (a reservation: a budget in every period), reads who
 * uses the server and how much, and chooses the scheduling policy. xqos(3) is the manual; xrt.h is the shorter
 * interface of Manica et al. (RTAS 2008) for Xlib clients.
 *
 * Every function is synchronous: it sends one request and waits for the answer. Every function that returns int
 * returns XQOS_OK (0) or a negative number of enum xqos_error; the exceptions say so. What a function fills is left
 * as it was where the function fails, unless it says otherwise.
 *
 * Times end in their unit: _us microseconds, _ns nanoseconds, _ms milliseconds. Instants (deadline_ns, connected_ns,
 * now_ns) are those of CLOCK_MONOTONIC on the server's machine. _ppm are millionths: 900000 is 0.9.
 *
 * A structure that the library fills or reads starts with its size, which the caller sets, so that later versions can
 * add fields at the end without breaking a program:
 *
 *     struct xqos_reservation mine = { .size = sizeof mine };
 *
 * A size below that of this header is XQOS_ERR_ARGUMENT. Fields that the caller knows and the library does not are
 * filled with zeros.
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

/* The client that asks, wherever a function takes a client. Otherwise a client is any resource id of it (a window, a
 * pixmap, the base of its ids); an id of no connected client is XQOS_ERR_VALUE. */
#define XQOS_SELF 0u

/* Bytes of a name, of a group or an origin, with the 0 at its end. */
#define XQOS_NAME_BYTES 32

/* How many lengths of waits are counted: within 1, 5, 20, 50, 100, 250 and 1000 ms and longer than the length before,
 * and in the last all that are longer. */
#define XQOS_WAITS 8

/* An uid where the client is not on the server's machine. */
#define XQOS_NO_UID UINT32_MAX

enum xqos_error {
    XQOS_OK = 0,
    XQOS_ERR_NO_EXTENSION = -1, /* the server does not carry xqos, or does not show it to this client */
    XQOS_ERR_CONNECTION = -2,   /* the connection to the server is broken */
    XQOS_ERR_VERSION = -3,      /* the server speaks another major version */
    XQOS_ERR_ACCESS = -4,       /* BadAccess: this client may not do that to that client, or to the server */
    XQOS_ERR_VALUE = -5,        /* BadValue: out of range, an unknown flag or mask bit, or no such client */
    XQOS_ERR_ADMISSION = -6,    /* the reservation would break the guarantees already given */
    XQOS_ERR_LENGTH = -7,       /* BadLength, or an answer too short for what it must hold */
    XQOS_ERR_REQUEST = -8,      /* BadRequest: the server does not know this request */
    XQOS_ERR_MEMORY = -9,       /* BadAlloc, or no memory here */
    XQOS_ERR_PROTOCOL = -10,    /* any other X error */
    XQOS_ERR_ARGUMENT = -11,    /* a null pointer or a wrong structure size; nothing was sent */
    XQOS_ERR_EVENT = -12,       /* xqos_decode_event: not an event of this extension */
    XQOS_ERR_FROM_BELOW = -13   /* the server is served through libc, without the extension, and this needs single
                                 * requests: XQOS_POLICY_CLASSIC */
};

/* A connection to a server with xqos. Nothing in it changes after xqos_open, so several threads may share it as they
 * may share the connection. */
typedef struct xqos xqos_t;

/* One answer of xqos_list_clients, with a place in it. One thread at a time. */
typedef struct xqos_client_list xqos_client_list_t;

/* The structures are those of xqosproto.h, with comments. To add to these: in struct xqos_reservation all is 0 where active is
 * 0; struct xqos_admission has the first term of the test that fails or, when all hold, the largest one; it says that for
 * every reservation i in order of period the sum of budget/period up to i, plus B/period of i, is at most U. */

/* Finds the extension on a connection or, where the server cannot have it, the server's control socket, and agrees on
 * the version; *out is then the context for all else. The connection stays the caller's and must outlive the context.
 * Errors: NO_EXTENSION, VERSION, CONNECTION, MEMORY, ARGUMENT. *out is null after any of them. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_open(xcb_connection_t *connection, xqos_t **out);

/* Frees the context. Reservations stay, and so do selected events that come on the X connection: they end with the
 * connection. Null is allowed. */
XQOS_PUBLIC void xqos_close(xqos_t *xqos);

/* The version of the protocol that the server speaks. Either pointer may be null.
 * Errors: CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_query_version(xqos_t *xqos, uint32_t *major, uint32_t *minor);

/* The state and the settings of the scheduler. Errors: CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_server_info(xqos_t *xqos, struct xqos_server_info *out);

/* Reserves budget_us of server time in every period_us for a client, in place of the reservation it has. The
 * ranges are in xqos_server_info: budget min_budget_us to period_us, period min_period_us to max_period_us. After an
 * error nothing has changed.
 *
 * flags says what the client gets once its budget is used up, until its deadline:
 *
 *     0 (soft)                        its share among the clients without a reservation
 *     XQOS_RESERVATION_HARD           nothing
 *     XQOS_RESERVATION_SOFT_PAPER     the next budget at once, with a deadline postponed by the period (the soft rule of
 *                                     Manica et al. 2008): it stays above the clients without a reservation, and while
 *                                     it is busy these get only what other reservations leave. Where its group has a
 *                                     cap it is served as with 0.
 *
 * refused may be null. After XQOS_ERR_ADMISSION it holds the term of the test that fails. The figures come from a
 * second request: should the server's state have changed between the two so that the test holds now, failing_client
 * is still the client named with the refusal, the figures are 0, and the call is worth repeating.
 *
 * Errors: ADMISSION; VALUE (out of range, unknown flags, no such client); ACCESS (another's client: allowed to local
 * clients of its user, of the user that runs the server, and of root); CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us,
                                                       uint32_t period_us, uint32_t flags,
                                                       struct xqos_admission *refused);

/* A client's reservation and how it goes. A client without one is no error: active is 0.
 * Errors: VALUE (no such client), CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_reservation(xqos_t *xqos, uint32_t client, struct xqos_reservation *out);

/* Ends a client's reservation. A client without one is no error.
 * Errors: VALUE (no such client), ACCESS (another's client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_clear_reservation(xqos_t *xqos, uint32_t client);

/* Whether xqos_set_reservation with the same arguments would be admitted; changes nothing. A refusal is no error:
 * out->admitted is 0. Errors: VALUE, CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_check_admission(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us,
                                     uint32_t flags, struct xqos_admission *out);

/* All clients of the server at one instant. *out is to be freed with xqos_client_list_free; it is null after an error.
 * Errors: CONNECTION, LENGTH, MEMORY, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_list_clients(xqos_t *xqos, xqos_client_list_t **out);

/* How many clients the list holds. */
XQOS_PUBLIC uint32_t xqos_client_list_count(const xqos_client_list_t *list);

/* The instant at which the list was taken. */
XQOS_PUBLIC uint64_t xqos_client_list_now_ns(const xqos_client_list_t *list);

/* Fills out with the next client. Returns 1, or 0 at the end, or XQOS_ERR_ARGUMENT, so that a loop is
 *     while (xqos_client_list_next(list, &client) > 0) */
XQOS_PUBLIC int xqos_client_list_next(xqos_client_list_t *list, struct xqos_client *out);

/* Back to the first client. */
XQOS_PUBLIC void xqos_client_list_rewind(xqos_client_list_t *list);

/* Null is allowed. */
XQOS_PUBLIC void xqos_client_list_free(xqos_client_list_t *list);

/* Sets those of the policy and its settings that change->mask names: all of them or, after an error, none. Allowed to
 * local clients of the user that runs the server, and of root.
 * Errors: VALUE (out of range, unknown policy or mask bit), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_policy(xqos_t *xqos, const struct xqos_policy_change *change);

/* A client's weight in hundredths, 1 to 10000; 100 by default. Counts under XQOS_POLICY_FAIR.
 * Errors: VALUE, ACCESS (another's client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths);

/* A client's priority, -1000 to 1000, larger is first; 0 by default. Counts under XQOS_POLICY_FIXED.
 * Errors: VALUE, ACCESS (another's client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_priority(xqos_t *xqos, uint32_t client, int32_t priority);

/* A client's longest slice, 100 to 1000000 microseconds; 0: as long as all. A single request is never cut short.
 * Errors: VALUE, ACCESS (another's client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_slice(xqos_t *xqos, uint32_t client, uint32_t slice_us);

/* What is set from now on in this context is told to others with this name; null or empty: as made by the client itself,
 * or by hand. With lease 1 it ends when the connection does, however that ends, or with xqos_close where the server has
 * no extension; and where something was set without a lease, setting it is ACCESS.
 * Errors: VALUE (lease neither 0 nor 1), ARGUMENT (a name of XQOS_NAME_BYTES or more), CONNECTION, MEMORY. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_origin(xqos_t *xqos, const char *name, uint32_t lease);

/* Which clients are one group, and the most that the reservations of one user may sum up to; root and the server's user
 * excepted. 0 is no limit. Errors: VALUE; ACCESS (allowed to local clients of the user that runs the server, and of
 * root; a leased limit does not replace one that is not); CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_groups(xqos_t *xqos, uint32_t grouping, uint32_t user_limit_ppm);

/* Errors: CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_groups(xqos_t *xqos, struct xqos_groups *out);

/* Puts a client into the group of this name. Null or empty: into the group that the grouping gives; ":none", ":app" and
 * ":user": into that which this grouping would give. Errors: VALUE (no such client, another name that begins with a
 * colon), ACCESS (another's client), ARGUMENT (a name of XQOS_NAME_BYTES or more), CONNECTION. */
XQOS_PUBLIC int xqos_set_client_group(xqos_t *xqos, uint32_t client, const char *name);

/* The weight of a client's group in hundredths, 1 to 10000; 0: that of its heaviest client. It ends with the group.
 * Errors: VALUE (out of range, no such client, or it stands for itself), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_group_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths);

/* The most that a client's group gets of the server, 10000 to 1000000; 0: no cap. Errors: as xqos_set_group_weight. */
XQOS_PUBLIC int xqos_set_group_cap(xqos_t *xqos, uint32_t client, uint32_t cap_ppm);

/* Reserves budget_us in every period_us for the clients of a client's group together, in place of the reservation that
 * the group has; those with a reservation of their own take no part. Ranges and flags are those of xqos_set_reservation,
 * and so is the admission test. It ends with xqos_clear_group_reservation or with the group.
 *
 * refused is filled as by xqos_set_reservation; a group is named by one of its clients.
 *
 * Errors: ADMISSION; VALUE (out of range, unknown flags, no such client, or it stands for itself); ACCESS,
 * CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_group_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us,
                                                             uint32_t period_us, uint32_t flags,
                                                             struct xqos_admission *refused);

/* Ends the reservation of a client's group. A group without one is no error. Errors: VALUE (no such client, or it stands
 * for itself), ACCESS, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_clear_group_reservation(xqos_t *xqos, uint32_t client);

/* Whether a client waits for those that it uncovers (enum xqos_pacing).
 * Errors: VALUE, ACCESS (another's client), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_client_pacing(xqos_t *xqos, uint32_t client, uint32_t pacing);

/* Which events (XQOS_EVENTS_*) arrive on this connection from now on; 0 ends them. Depletions and misses come at most
 * ten times a second for each client. Errors: VALUE (unknown bit), CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_select_events(xqos_t *xqos, uint32_t mask);

/* Fills out from an event of the connection, as xcb_wait_for_event gives it; the event stays the caller's. Sends
 * nothing. An event that another client made with SendEvent is not taken: it would not be the server's word.
 * Errors: EVENT (not of this extension), ARGUMENT. */
XQOS_PUBLIC int xqos_decode_event(const xqos_t *xqos, const xcb_generic_event_t *event, struct xqos_event *out);

/* Becomes readable when selected events come beside the X connection: the server has no extension and sends them over
 * its control socket; read them with xqos_next_event. -1: nothing is selected, or they come as events of the X
 * connection. It stays the context's. */
XQOS_PUBLIC int xqos_event_descriptor(const xqos_t *xqos);

/* Fills out with the next event that has come beside the X connection; never waits. Returns 1, or 0 where none has come,
 * or an error. To be called by one thread at a time. Errors: CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_next_event(xqos_t *xqos, struct xqos_event *out);

/* A sentence for a result of this library, never null, never to be freed. */
XQOS_PUBLIC const char *xqos_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
