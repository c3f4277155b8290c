/* SPDX-License-Identifier: MIT */
/* xqosproto.h: constants and structures of XQOS; a structure begins with its size, set by the caller.
 * Generated from proto/xqos.xml by proto/generate.py: edit that file instead.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOSPROTO_H
#define XQOSPROTO_H

#include <stddef.h>
#include <stdint.h>

#define XQOS_MAJOR_VERSION 1
#define XQOS_MINOR_VERSION 0

enum xqos_request {
    XQOS_REQUEST_QUERY_VERSION = 0,
    XQOS_REQUEST_GET_SERVER_INFO = 1,
    XQOS_REQUEST_SET = 2,
    XQOS_REQUEST_CLEAR = 3,
    XQOS_REQUEST_CHECK_ADMISSION = 4,
    XQOS_REQUEST_GET_RESERVATION = 5,
    XQOS_REQUEST_LIST_CLIENTS = 6,
    XQOS_REQUEST_LIST_DEPARTED = 7,
    XQOS_REQUEST_LIST_LONGEST_REQUESTS = 8,
    XQOS_REQUEST_GET_PACING = 9,
    XQOS_REQUEST_GET_DESKTOP = 10,
    XQOS_REQUEST_GET_GROUPS = 11,
    XQOS_REQUEST_GET_PROCESSOR = 12,
    XQOS_REQUEST_SET_POLICY = 13,
    XQOS_REQUEST_SET_ORIGIN = 14,
    XQOS_REQUEST_LEND_PROCESSOR = 15,
    XQOS_REQUEST_SELECT_EVENTS = 16,
    XQOS_REQUEST_START_TRACE = 17,
    XQOS_REQUEST_STOP_TRACE = 18,
    XQOS_REQUEST_GET_CUT = 19,
    XQOS_REQUEST_MARK_EXPOSING = 20,
};

enum xqos_policy {
    XQOS_POLICY_STOCK = 0, /* what the server does without xqos */
    XQOS_POLICY_CLASSIC = 1, /* round robin, a fixed number of requests each */
    XQOS_POLICY_SMART = 2, /* the smart scheduler of 2000 */
    XQOS_POLICY_FAIR = 3, /* server time in proportion to the weights */
    XQOS_POLICY_FIXED = 4, /* by fixed priority */
    XQOS_POLICY_SMART_STRICT = 5, /* as Smart, but without bounds on waits */
};

/* Which clients are one group, unless a client was put into a group by name. */
enum xqos_grouping {
    XQOS_GROUPING_NONE = 0, /* each client is scheduled alone */
    XQOS_GROUPING_APPLICATION = 1, /* clients of one application's control group, else of one process */
    XQOS_GROUPING_USER = 2, /* clients of one user */
};

/* Whether a client waits for the clients that it uncovers. */
enum xqos_paced {
    XQOS_PACING_AS_ALL = 0, /* as the server's setting Pacing */
    XQOS_PACING_ALWAYS = 1, /* even if Pacing is off */
    XQOS_PACING_NEVER = 2, /* even if Pacing is on */
};

/* The cause of an XqosNotify. */
enum xqos_notify_kind {
    XQOS_EVENT_CLIENT_CONNECTED = 0,
    XQOS_EVENT_CLIENT_GONE = 1,
    XQOS_EVENT_RESERVATION_SET = 2,
    XQOS_EVENT_RESERVATION_CLEARED = 3,
    XQOS_EVENT_DEPLETED = 4,
    XQOS_EVENT_MISSED = 5, /* a deadline passed with budget left and work waiting */
    XQOS_EVENT_EXPOSING = 6, /* an Expose was delivered to it, and no earlier one is unanswered */
    XQOS_EVENT_ANSWERED = 7, /* it has redrawn, or responded to input */
    XQOS_EVENT_INPUT = 8, /* user input was delivered to it while another client is exposing */
    XQOS_EVENT_SETTINGS = 9, /* a setting of it, or of its group, was set or cleared */
};

/* State of a client. */
enum xqos_entry_flag {
    XQOS_CLIENT_RESERVED = 1,
    XQOS_CLIENT_HARD = 2,
    XQOS_CLIENT_HELD_BACK = 4,
    XQOS_CLIENT_READY = 8, /* it has requests waiting */
    XQOS_CLIENT_YOU = 16, /* the client that sent the request */
    XQOS_CLIENT_LOCAL = 32, /* on the server's machine, connected by a Unix socket */
    XQOS_CLIENT_GRABS_SERVER = 64, /* it holds the server grab */
    XQOS_CLIENT_COMPOSITOR = 128, /* it owns the selection of a screen's compositing manager */
    XQOS_CLIENT_WINDOW_MANAGER = 256, /* it owns the selection of a screen's window manager, or redirects the screen's windows */
    XQOS_CLIENT_GROUP_HARD = 512, /* the reservation of its group is hard */
    XQOS_CLIENT_PACED = 1024, /* Paced is Always */
    XQOS_CLIENT_NEVER_PACED = 2048, /* Paced is Never */
    XQOS_CLIENT_SOFT_PAPER = 4096, /* its reservation is soft, by the paper's rule */
    XQOS_CLIENT_GROUP_SOFT_PAPER = 8192, /* the reservation of its group is soft, by the paper's rule */
    XQOS_CLIENT_GRABS_POINTER = 16384, /* not known if the server is served through libc */
    XQOS_CLIENT_GRABS_KEYBOARD = 32768, /* not known if the server is served through libc */
};

/* What a client gets when its budget is used up; 0: it continues as best effort. */
enum xqos_reservation_flag {
    XQOS_RESERVATION_HARD = 1, /* nothing: it is held back until its deadline */
    XQOS_RESERVATION_HELD_BACK = 2, /* in replies only: hard, depleted, waiting for its deadline */
    XQOS_RESERVATION_SOFT_PAPER = 4, /* the next budget immediately, with a later deadline (Manica et al.) */
};

/* The values of a PolicyChange to set. */
enum xqos_policy_mask {
    XQOS_SET_POLICY = 1,
    XQOS_SET_SLICE = 2,
    XQOS_SET_TIMER_INTERVAL = 4,
    XQOS_SET_MAXIMUM_SLICE = 8,
    XQOS_SET_MAX_UTILIZATION = 16,
    XQOS_SET_BLOCKING = 32,
};

/* Which events to send. */
enum xqos_event_mask {
    XQOS_EVENTS_CLIENTS = 1, /* clients that connect and disconnect */
    XQOS_EVENTS_RESERVATIONS = 2,
    XQOS_EVENTS_DEPLETIONS = 4,
    XQOS_EVENTS_MISSES = 8,
    XQOS_EVENTS_EXPOSES = 16, /* Exposes, their answers, and input */
    XQOS_EVENTS_SETTINGS = 32, /* other settings of clients and groups */
};

/* The kind of a setting's subject. */
enum xqos_subject_kind {
    XQOS_SUBJECT_CLIENT = 0,
    XQOS_SUBJECT_GROUP = 1, /* the group of the named client */
    XQOS_SUBJECT_SERVER = 2,
};

/* What can be set; the member of SettingValue has the same name. */
enum xqos_setting_kind {
    XQOS_SETTING_RESERVATION = 0, /* for a client or a group */
    XQOS_SETTING_WEIGHT = 1, /* for a client or a group, in hundredths; 0 for a group: the weight of its heaviest client */
    XQOS_SETTING_PRIORITY = 2, /* for a client under the policy fixed; larger values are served first */
    XQOS_SETTING_CAP = 3, /* for a group: its maximum share, in millionths; 0: no cap */
    XQOS_SETTING_PACED = 4, /* for a client */
    XQOS_SETTING_GROUP = 5, /* for a client: the name of its group; empty: the group that the grouping gives */
    XQOS_SETTING_PACING = 6, /* for the server: how clients wait for those that they uncover */
    XQOS_SETTING_DESKTOP = 7, /* for the server: maximum share of compositors and window managers, in millionths */
    XQOS_SETTING_GROUPING = 8, /* for the server */
    XQOS_SETTING_USER_LIMIT = 9, /* for the server: maximum that one user may reserve, in millionths; 0: no limit */
    XQOS_SETTING_SLICE = 10, /* for a client: its longest slice under the policy, in us; 0: the policy's slice */
    XQOS_SETTING_CUT = 11, /* for the server: time after which a long request is cut, in us; 0: requests are not cut */
};

/* The ranges of the settings. 0 is also valid where it has a special meaning. */
#define XQOS_BUDGET_MIN 100 /* us */
#define XQOS_BUDGET_MAX 10000000 /* us */
#define XQOS_PERIOD_MIN 1000 /* us */
#define XQOS_PERIOD_MAX 10000000 /* us */
#define XQOS_WEIGHT_MIN 1 /* hundredths */
#define XQOS_WEIGHT_MAX 10000 /* hundredths */
#define XQOS_PRIORITY_MIN (-1000)
#define XQOS_PRIORITY_MAX 1000
#define XQOS_CAP_MIN 10000 /* ppm */
#define XQOS_CAP_MAX 1000000 /* ppm */
#define XQOS_SLICE_MIN 100 /* us */
#define XQOS_SLICE_MAX 1000000 /* us */
#define XQOS_PACING_MIN 1000 /* us */
#define XQOS_PACING_MAX 1000000 /* us */
#define XQOS_DESKTOP_MIN 0 /* ppm */
#define XQOS_DESKTOP_MAX 900000 /* ppm */
#define XQOS_CUT_MIN 50 /* us */
#define XQOS_CUT_MAX 100000 /* us */
#define XQOS_USER_LIMIT_MIN 0 /* ppm */
#define XQOS_USER_LIMIT_MAX 950000 /* ppm */
#define XQOS_POLICY_SLICE_MIN 100 /* us */
#define XQOS_POLICY_SLICE_MAX 1000000 /* us */
#define XQOS_TIMER_INTERVAL_MIN 100 /* us */
#define XQOS_TIMER_INTERVAL_MAX 1000000 /* us */
#define XQOS_MAXIMUM_SLICE_MIN 100 /* us */
#define XQOS_MAXIMUM_SLICE_MAX 1000000 /* us */
#define XQOS_MAX_UTILIZATION_MIN 0 /* ppm */
#define XQOS_MAX_UTILIZATION_MAX 950000 /* ppm */
#define XQOS_BLOCKING_MIN 0 /* us */
#define XQOS_BLOCKING_MAX 4294967295u /* us */

struct xqos_server_info {
    uint32_t size; /* set by the caller */
    uint32_t armed; /* 0: xqos stepped aside, and the server schedules without it */
    uint32_t server_pid;
    uint32_t policy;
    uint32_t clients;
    uint32_t reservations;
    uint32_t max_utilization_ppm; /* U of the admission test */
    uint32_t admitted_utilization_ppm; /* the part of U that reservations take */
    uint32_t blocking_observed_us;
    uint32_t blocking_configured_us; /* B of the admission test; 0: blocking_observed_us is B */
    uint32_t min_budget_us; /* valid range of a reservation */
    uint32_t min_period_us;
    uint32_t max_period_us;
    uint32_t slice_us;
    uint32_t timer_interval_us;
    uint32_t maximum_slice_us;
    uint32_t memory_bytes; /* memory that xqos uses in the server */
    uint32_t clients_limit; /* maximum number of clients; 0: no client has connected yet */
    uint64_t uptime_ns;
    uint64_t busy_ns; /* server time spent on clients */
    uint64_t decisions;
    uint64_t early_ends; /* slices ended early for another client */
    uint32_t grab_holder; /* first resource id of the client that holds the server grab; 0: none */
    char reason[256]; /* why xqos stepped aside; empty while armed */
};
_Static_assert(offsetof(struct xqos_server_info, reason) == 108, "as on the wire");

struct xqos_reservation {
    uint32_t size; /* set by the caller */
    uint32_t active; /* 0: the client has no reservation */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t depletions; /* times the budget was used up */
    int64_t budget_left_ns; /* negative after a request longer than what was left */
    uint64_t deadline_ns; /* the scheduling deadline, an instant */
    uint32_t misses; /* deadlines that passed with budget left and work waiting */
};
_Static_assert(offsetof(struct xqos_reservation, misses) == 40, "as on the wire");

struct xqos_admission {
    uint32_t size; /* set by the caller */
    uint32_t admitted;
    uint32_t failing_client; /* client of the first term that fails, or of the largest term if all hold */
    uint32_t failing_period_us; /* T of that reservation */
    uint32_t sum_ppm; /* the sum of Q/T up to that term */
    uint32_t blocking_ppm; /* B/T of that term */
    uint32_t limit_ppm; /* U; 0: the figures are not known */
    uint32_t blocking_us; /* B */
};
_Static_assert(offsetof(struct xqos_admission, blocking_us) == 28, "as on the wire");

struct xqos_groups {
    uint32_t size; /* set by the caller */
    uint32_t grouping;
    uint32_t user_limit_ppm; /* maximum sum of one user's reservations; 0: no limit */
    uint32_t groups; /* number of groups; clients without a group are not counted */
};
_Static_assert(offsetof(struct xqos_groups, groups) == 12, "as on the wire");

struct xqos_client {
    uint32_t size; /* set by the caller */
    uint32_t unused;
    uint32_t client; /* first resource id */
    int32_t pid; /* 0 if not local */
    uint32_t uid; /* 0xffffffff if not local */
    int32_t sync_priority; /* as SYNC GetPriority replies */
    uint32_t weight; /* in hundredths, 100 by default; policy fair */
    int32_t fixed_priority; /* 0 by default; policy fixed */
    uint32_t flags;
    uint32_t budget_us; /* Q of its reservation; 0: none */
    uint32_t period_us; /* T of that reservation */
    uint32_t depletions; /* times the budget was used up */
    uint32_t misses; /* deadlines that passed with budget left and work waiting */
    uint32_t longest_request; /* major opcode + 65536 x minor opcode of its longest single-request slice, by processor time */
    int64_t budget_left_ns;
    uint64_t deadline_ns;
    uint64_t server_time_ns; /* server time used */
    uint64_t reserved_time_ns; /* the part of it that was paid from the reservation */
    uint64_t requests;
    uint64_t slices;
    uint64_t waited_ns; /* total time from arrival to dispatch */
    uint64_t longest_wait_ns;
    uint64_t longest_request_ns; /* processor time of longest_request; below 0.1 ms, elapsed time */
    uint64_t connected_ns; /* time of connection */
    uint64_t grabbed_ns; /* time for which it held the server grab, up to now */
    uint64_t charged_ns; /* server time that it caused, without its work for other clients but with window managers' work for it */
    uint32_t grabs; /* server grabs */
    uint32_t group_cap_ppm; /* maximum share of its group; 0: no cap */
    char name[32]; /* program; empty if not local */
    uint32_t group; /* number of its group; 0: none */
    uint32_t group_weight; /* weight set for its group, in hundredths; 0: not set */
    char group_name[32];
    char reservation_origin[32]; /* origin of its reservation: `itself`, `hand`, or a name from SetOrigin; empty: no reservation */
    char settings_origin[32]; /* origin of its most recent other setting that is not the default */
    char host[48]; /* address from which a client on another machine connected; empty if local */
    uint32_t waits[8]; /* histogram of waits from arrival to dispatch, with the upper bounds 1, 5, 20, 50, 100, 250 and 1000 ms; the last: longer waits. Counters wrap around */
    uint32_t long_grabs; /* server grabs of one second or longer */
    uint32_t group_budget_us; /* Q of its group's reservation; 0: none */
    uint32_t group_period_us; /* T of that reservation */
    uint32_t slice_us; /* its longest slice; 0: the policy's slice */
    uint32_t longest_part_us; /* longest time that others waited for one of its requests, or for a part of one that was cut; processor time */
    uint32_t cuts; /* times another client was served between two parts of its requests */
};
_Static_assert(offsetof(struct xqos_client, cuts) == 396, "as on the wire");

struct xqos_policy_change {
    uint32_t size; /* set by the caller */
    uint32_t mask; /* which of the following to set */
    uint32_t policy;
    uint32_t slice_us; /* 100 to 1000000 */
    uint32_t timer_interval_us; /* 100 to 1000000 */
    uint32_t maximum_slice_us; /* 100 to 1000000 */
    uint32_t max_utilization_ppm; /* 0 to 950000, at least what is admitted */
    uint32_t blocking_us; /* 0: use the observed value */
};
_Static_assert(offsetof(struct xqos_policy_change, blocking_us) == 28, "as on the wire");

struct xqos_event {
    uint32_t size; /* set by the caller */
    uint8_t response_type;
    uint8_t kind; /* XQOS_EVENT_*, or a number of a later version: ignore it */
    uint16_t sequence; /* the last request that the server had read from this client */
    uint32_t client; /* first resource id */
    int32_t pid; /* 0 if not local */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t count; /* occurrences since the last such event of this client */
    uint32_t time_ms;
};
_Static_assert(offsetof(struct xqos_event, time_ms) == 32, "as on the wire");

#endif
