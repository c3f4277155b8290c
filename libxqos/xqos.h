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
 * A size below that of version 1.0 is XQOS_ERR_ARGUMENT. Fields that the caller knows and the library does not are
 * filled with zeros.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_H
#define XQOS_H

#include <stddef.h>
#include <stdint.h>

#include <xcb/xcb.h>

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

/* The version of the protocol that this header describes. */
#define XQOS_MAJOR_VERSION 1
#define XQOS_MINOR_VERSION 1

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

enum xqos_policy {
    XQOS_POLICY_STOCK = 0,   /* what the server does without xqos */
    XQOS_POLICY_CLASSIC = 1, /* round robin, a fixed number of requests each */
    XQOS_POLICY_SMART = 2,   /* the smart scheduler of 2000 */
    XQOS_POLICY_FAIR = 3,    /* server time in proportion to the weights */
    XQOS_POLICY_FIXED = 4    /* by fixed priority */
};

/* Which clients are one group, which has one share under XQOS_POLICY_FAIR (protocol 1.1). */
enum xqos_grouping {
    XQOS_GROUPING_NONE = 0,        /* each client stands for itself */
    XQOS_GROUPING_APPLICATION = 1, /* those of an application's control group, else of a process */
    XQOS_GROUPING_USER = 2         /* those of a user */
};

/* Whether a client waits for those that it uncovers (protocol 1.1). */
enum xqos_pacing {
    XQOS_PACING_AS_ALL = 0, /* as the server is set for all */
    XQOS_PACING_ALWAYS = 1,
    XQOS_PACING_NEVER = 2
};

/* Flags of a reservation. HARD or SOFT_PAPER may be asked for, or neither: once the budget is gone, the client then goes
 * on among the clients without a reservation until its deadline. */
#define XQOS_RESERVATION_HARD 1u       /* budget gone: it is held back until its deadline */
#define XQOS_RESERVATION_HELD_BACK 2u  /* hard, depleted, waiting for its deadline */
#define XQOS_RESERVATION_SOFT_PAPER 4u /* budget gone: the next one at once and a later deadline, as in Manica et al. */

/* Flags of struct xqos_client. */
#define XQOS_CLIENT_RESERVED 1u
#define XQOS_CLIENT_HARD 2u
#define XQOS_CLIENT_HELD_BACK 4u
#define XQOS_CLIENT_READY 8u       /* has requests waiting */
#define XQOS_CLIENT_YOU 16u        /* the client that asks */
#define XQOS_CLIENT_LOCAL 32u      /* on the server's machine, by its Unix socket */
#define XQOS_CLIENT_HOLDS_GRAB 64u /* holds the server grab */
#define XQOS_CLIENT_COMPOSITOR 128u     /* draws what others have drawn; served before them */
#define XQOS_CLIENT_WINDOW_MANAGER 256u /* the same */
#define XQOS_CLIENT_GROUP_HARD 512u     /* the reservation of its group is hard */
#define XQOS_CLIENT_PACED 1024u         /* XQOS_PACING_ALWAYS */
#define XQOS_CLIENT_NEVER_PACED 2048u   /* XQOS_PACING_NEVER */
#define XQOS_CLIENT_SOFT_PAPER 4096u    /* XQOS_RESERVATION_SOFT_PAPER */
#define XQOS_CLIENT_GROUP_SOFT_PAPER 8192u /* the same of the reservation of its group */
#define XQOS_CLIENT_GRABS_POINTER 16384u  /* has grabbed the pointer; not seen of servers that export nothing */
#define XQOS_CLIENT_GRABS_KEYBOARD 32768u /* the same of the keyboard */

/* Which fields of struct xqos_policy_change count. */
#define XQOS_SET_POLICY 1u
#define XQOS_SET_SLICE 2u
#define XQOS_SET_TIMER_INTERVAL 4u
#define XQOS_SET_MAXIMUM_SLICE 8u
#define XQOS_SET_MAX_UTILIZATION 16u
#define XQOS_SET_BLOCKING 32u

/* Which events arrive: of clients that come and go, of reservations set and cleared, of depletions, of misses, of
 * Exposes that clients have to answer, of weights, priorities and groups (protocol 1.1). */
#define XQOS_EVENTS_CLIENTS 1u
#define XQOS_EVENTS_RESERVATIONS 2u
#define XQOS_EVENTS_DEPLETIONS 4u
#define XQOS_EVENTS_MISSES 8u
#define XQOS_EVENTS_EXPOSES 16u
#define XQOS_EVENTS_SETTINGS 32u

enum xqos_event_kind {
    XQOS_EVENT_CLIENT_CONNECTED = 0,
    XQOS_EVENT_CLIENT_GONE = 1,
    XQOS_EVENT_RESERVATION_SET = 2,
    XQOS_EVENT_RESERVATION_CLEARED = 3,
    XQOS_EVENT_DEPLETED = 4,
    XQOS_EVENT_DEADLINE_MISSED = 5,
    XQOS_EVENT_EXPOSING = 6,
    XQOS_EVENT_ANSWERED = 7,
    XQOS_EVENT_INPUT = 8,
    XQOS_EVENT_SETTINGS = 9
};

/* A connection to a server with xqos. Nothing in it changes after xqos_open, so several threads may share it as they
 * may share the connection. */
typedef struct xqos xqos_t;

/* One answer of xqos_list_clients, with a place in it. One thread at a time. */
typedef struct xqos_client_list xqos_client_list_t;

struct xqos_server_info {
    uint32_t size;       /* set by the caller */
    uint32_t server_pid;
    uint32_t armed;      /* 1: xqos decides; 0: it has stepped aside, and reason says why */
    uint32_t policy;     /* enum xqos_policy */
    uint32_t clients;
    uint32_t reservations;
    uint32_t max_utilization_ppm;      /* U of the admission test */
    uint32_t admitted_utilization_ppm; /* what the reservations take of it */
    uint32_t blocking_observed_us;
    uint32_t blocking_configured_us;   /* B of the admission test; 0: the observed one is B */
    uint32_t min_budget_us;            /* the ranges of xqos_set_reservation */
    uint32_t min_period_us;
    uint32_t max_period_us;
    uint32_t slice_us;
    uint32_t timer_interval_us;
    uint32_t maximum_slice_us;
    uint32_t memory_bytes;             /* held by xqos in the server */
    uint32_t reason_len;               /* bytes of reason without the 0 */
    uint32_t clients_limit;            /* how many clients the server can have; 0: nobody has connected yet */
    uint32_t grab_holder;              /* first resource id of the client that holds the server grab; 0: nobody does */
    uint64_t uptime_ns;
    uint64_t busy_ns;                  /* server time spent for clients */
    uint64_t decisions;
    uint64_t early_ends;               /* slices ended early for a better client */
    char reason[256];                  /* ends with 0; empty while armed */
};

struct xqos_reservation {
    uint32_t size;          /* set by the caller */
    uint32_t active;        /* 1: the client has a reservation; 0: it has none, and the rest is 0 */
    uint32_t client;        /* as asked for */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;         /* XQOS_RESERVATION_* */
    uint32_t depletions;    /* how often the budget ran out */
    uint32_t misses;        /* deadlines at which budget was left and work was waiting */
    int64_t budget_left_ns; /* negative after a request longer than what was left */
    uint64_t deadline_ns;   /* the scheduling deadline, an instant */
};

/* The admission test: for every reservation i in order of period, the sum of budget/period up to i, plus B/period of
 * i, is at most U. This is the first term that fails or, when all hold, the largest one. */
struct xqos_admission {
    uint32_t size;              /* set by the caller */
    uint32_t admitted;          /* 1: all terms hold */
    uint32_t failing_client;    /* resource base of the client i */
    uint32_t failing_period_us; /* the period of i */
    uint32_t sum_ppm;           /* the sum up to i */
    uint32_t blocking_ppm;      /* B/period of i */
    uint32_t limit_ppm;         /* U; 0: the figures are not known */
    uint32_t blocking_us;       /* B */
};

struct xqos_client {
    uint32_t size;                  /* set by the caller */
    uint32_t client;                /* resource base */
    int32_t pid;                    /* 0 where not local */
    uint32_t uid;                   /* XQOS_NO_UID where not local */
    int32_t sync_priority;          /* as the SYNC extension's GetPriority answers */
    uint32_t weight;                /* hundredths, for XQOS_POLICY_FAIR */
    int32_t fixed_priority;         /* for XQOS_POLICY_FIXED */
    uint32_t flags;                 /* XQOS_CLIENT_* */
    uint32_t budget_us;             /* of the reservation; 0 without one */
    uint32_t period_us;
    uint32_t depletions;
    uint32_t misses;
    uint32_t longest_request_major; /* opcode of a slice that was one request, the longest so far by processor time */
    uint32_t longest_request_minor;
    int64_t budget_left_ns;
    uint64_t deadline_ns;
    uint64_t server_time_ns;        /* server time spent for this client */
    uint64_t reserved_time_ns;      /* the part of it paid from the reservation */
    uint64_t requests;
    uint64_t slices;
    uint64_t waited_ns;             /* sum of the times from arrival to dispatch */
    uint64_t longest_wait_ns;
    uint64_t longest_request_ns;
    uint64_t connected_ns;          /* the instant of connection */
    uint64_t grabbed_ns;            /* time it held the server grab */
    char name[40];                  /* the program, at most 32 bytes and 0; empty where not local */
    /* Of 1.1; zeros from a server of 1.0. */
    uint32_t grabs;                 /* how often it grabbed the server */
    uint32_t group;                 /* number of its group; 0: it stands for itself */
    uint32_t group_weight;          /* hundredths; 0: that of its heaviest client */
    uint32_t group_cap_ppm;         /* the most that its group gets; 0: no cap */
    char group_name[XQOS_NAME_BYTES];
    char reservation_origin[XQOS_NAME_BYTES]; /* who made its reservation: itself, hand, or a name of xqos_set_origin */
    char settings_origin[XQOS_NAME_BYTES];    /* the same of weight, priority, group and pacing, whichever was set last */
    char host[48];                  /* from where a client of another machine connected; empty where local */
    uint32_t waits[XQOS_WAITS];     /* waits from arrival to dispatch by their length; they wrap around */
    uint32_t long_grabs;            /* server grabs of a second and more */
    uint32_t group_budget_us;       /* of the reservation of its group; 0 without one */
    uint32_t group_period_us;
    uint32_t pad;
    uint64_t charged_ns;            /* server time that it caused: without what it did for others, with what window
                                     * managers did for it */
};

/* Which clients are one group, and what users may reserve. */
struct xqos_groups {
    uint32_t size;           /* set by the caller */
    uint32_t grouping;       /* enum xqos_grouping */
    uint32_t user_limit_ppm; /* the most that the reservations of one user may sum up to; 0: no limit */
    uint32_t groups;         /* how many there are now */
};

struct xqos_policy_change {
    uint32_t size;                /* set by the caller */
    uint32_t mask;                /* XQOS_SET_*: which of the following count */
    uint32_t policy;              /* enum xqos_policy */
    uint32_t slice_us;            /* 100 to 1000000 */
    uint32_t timer_interval_us;   /* 100 to 1000000 */
    uint32_t maximum_slice_us;    /* 100 to 1000000 */
    uint32_t max_utilization_ppm; /* at most 950000, at least what is admitted */
    uint32_t blocking_us;         /* 0: use the observed one */
};

struct xqos_event {
    uint32_t size;     /* set by the caller */
    uint32_t kind;     /* enum xqos_event_kind, or a number of a later version: pass over it */
    uint32_t client;   /* resource base */
    int32_t pid;       /* 0 where not local */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;    /* XQOS_RESERVATION_* */
    uint32_t count;    /* depletions or misses since the last such event of this client */
    uint32_t time_ms;  /* the server's time stamp, as in input events */
    uint32_t sequence; /* low 16 bits of the last request the server had read from this client */
};

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

/* ---- protocol 1.1; a server of 1.0 answers each of these with REQUEST ---------------------------------------- */

/* What is set from now on in this context is told to others with this name; null or empty: as made by the client itself,
 * or by hand. With lease 1 it ends when the connection does, however that ends, or with xqos_close where the server has
 * no extension; and where something was set without a lease, setting it is ACCESS.
 * Errors: VALUE (lease neither 0 nor 1), ARGUMENT (a name of XQOS_NAME_BYTES or more), REQUEST, CONNECTION, MEMORY. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_origin(xqos_t *xqos, const char *name, uint32_t lease);

/* Which clients are one group, and the most that the reservations of one user may sum up to; root and the server's user
 * excepted. 0 is no limit. Errors: VALUE; ACCESS (allowed to local clients of the user that runs the server, and of
 * root; a leased limit does not replace one that is not); REQUEST, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_groups(xqos_t *xqos, uint32_t grouping, uint32_t user_limit_ppm);

/* Errors: REQUEST, CONNECTION, LENGTH, ARGUMENT. */
XQOS_PUBLIC int xqos_get_groups(xqos_t *xqos, struct xqos_groups *out);

/* Puts a client into the group of this name. Null or empty: into the group that the grouping gives; ":none", ":app" and
 * ":user": into that which this grouping would give. Errors: VALUE (no such client, another name that begins with a
 * colon), ACCESS (another's client), ARGUMENT (a name of XQOS_NAME_BYTES or more), REQUEST, CONNECTION. */
XQOS_PUBLIC int xqos_set_client_group(xqos_t *xqos, uint32_t client, const char *name);

/* The weight of a client's group in hundredths, 1 to 10000; 0: that of its heaviest client. It ends with the group.
 * Errors: VALUE (out of range, no such client, or it stands for itself), ACCESS, REQUEST, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_set_group_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths);

/* The most that a client's group gets of the server, 10000 to 1000000; 0: no cap. Errors: as xqos_set_group_weight. */
XQOS_PUBLIC int xqos_set_group_cap(xqos_t *xqos, uint32_t client, uint32_t cap_ppm);

/* Reserves budget_us in every period_us for the clients of a client's group together, in place of the reservation that
 * the group has; those with a reservation of their own take no part. Ranges and flags are those of xqos_set_reservation,
 * and so is the admission test. It ends with xqos_clear_group_reservation or with the group.
 *
 * refused may be null. After XQOS_ERR_ADMISSION failing_client is the client whose term fails, or one of the group
 * whose term fails; the figures are 0.
 *
 * Errors: ADMISSION; VALUE (out of range, unknown flags, no such client, or it stands for itself); ACCESS, REQUEST,
 * CONNECTION, ARGUMENT. */
XQOS_PUBLIC XQOS_CHECK_RESULT int xqos_set_group_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us,
                                                             uint32_t period_us, uint32_t flags,
                                                             struct xqos_admission *refused);

/* Ends the reservation of a client's group. A group without one is no error. Errors: VALUE (no such client, or it stands
 * for itself), ACCESS, REQUEST, CONNECTION, ARGUMENT. */
XQOS_PUBLIC int xqos_clear_group_reservation(xqos_t *xqos, uint32_t client);

/* Whether a client waits for those that it uncovers (enum xqos_pacing).
 * Errors: VALUE, ACCESS (another's client), REQUEST, CONNECTION, ARGUMENT. */
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
