/* SPDX-License-Identifier: MIT */
/* xqosproto.h: the numbers of XQOS, and its structures behind the size that a caller sets.
 * Made from proto/xqos.xml by proto/generate.py; change that instead.
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
};

enum xqos_policy {
    XQOS_POLICY_STOCK = 0, /* what the server does without xqos */
    XQOS_POLICY_CLASSIC = 1, /* round robin, a fixed number of requests each */
    XQOS_POLICY_SMART = 2, /* the smart scheduler of 2000 */
    XQOS_POLICY_FAIR = 3, /* server time in proportion to the weights */
    XQOS_POLICY_FIXED = 4, /* by fixed priority */
};

/* Which clients are one group, unless a client was put into a group by name. */
enum xqos_grouping {
    XQOS_GROUPING_NONE = 0, /* each client stands for itself */
    XQOS_GROUPING_APPLICATION = 1, /* those of one control group of an application, else of a process */
    XQOS_GROUPING_USER = 2, /* those of one user */
};

/* Whether a client waits for those that it uncovers. */
enum xqos_paced {
    XQOS_PACING_AS_ALL = 0, /* as the server's setting Pacing says */
    XQOS_PACING_ALWAYS = 1, /* also where others do not */
    XQOS_PACING_NEVER = 2, /* also where others do */
};

/* What an XqosNotify tells. */
enum xqos_notify_kind {
    XQOS_EVENT_CLIENT_CONNECTED = 0,
    XQOS_EVENT_CLIENT_GONE = 1,
    XQOS_EVENT_RESERVATION_SET = 2,
    XQOS_EVENT_RESERVATION_CLEARED = 3,
    XQOS_EVENT_DEPLETED = 4,
    XQOS_EVENT_MISSED = 5, /* a deadline, with budget left and work waiting */
    XQOS_EVENT_EXPOSING = 6, /* an Expose was delivered to it, and none before it is unanswered */
    XQOS_EVENT_ANSWERED = 7, /* it has redrawn, or answered input */
    XQOS_EVENT_INPUT = 8, /* user input was delivered to it while another client is exposing */
    XQOS_EVENT_SETTINGS = 9, /* a setting of it, or of its group, was set or cleared */
};

/* What is so of a client. */
enum xqos_entry_flag {
    XQOS_CLIENT_RESERVED = 1,
    XQOS_CLIENT_HARD = 2,
    XQOS_CLIENT_HELD_BACK = 4,
    XQOS_CLIENT_READY = 8, /* it has requests waiting */
    XQOS_CLIENT_YOU = 16, /* it is the client that asks */
    XQOS_CLIENT_LOCAL = 32, /* on the server's machine, by its Unix socket */
    XQOS_CLIENT_GRABS_SERVER = 64, /* it holds the server grab */
    XQOS_CLIENT_COMPOSITOR = 128, /* it owns the selection of a screen's compositing manager */
    XQOS_CLIENT_WINDOW_MANAGER = 256, /* it owns the selection of a screen's window manager, or redirects its windows */
    XQOS_CLIENT_GROUP_HARD = 512, /* the reservation of its group is hard */
    XQOS_CLIENT_PACED = 1024, /* Paced is Always */
    XQOS_CLIENT_NEVER_PACED = 2048, /* Paced is Never */
    XQOS_CLIENT_SOFT_PAPER = 4096, /* its reservation is soft by the paper's rule */
    XQOS_CLIENT_GROUP_SOFT_PAPER = 8192, /* that of its group is */
    XQOS_CLIENT_GRABS_POINTER = 16384, /* not seen of servers that export nothing */
    XQOS_CLIENT_GRABS_KEYBOARD = 32768, /* the same */
};

/* What a client gets whose budget is used up; none of them: it goes on as best effort. */
enum xqos_reservation_flag {
    XQOS_RESERVATION_HARD = 1, /* nothing: it is held back until its deadline */
    XQOS_RESERVATION_HELD_BACK = 2, /* in replies only: hard, depleted, waiting for its deadline */
    XQOS_RESERVATION_SOFT_PAPER = 4, /* the next budget at once and a later deadline (Manica et al.) */
};

/* Which values of a PolicyChange count. */
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
    XQOS_EVENTS_EXPOSES = 16, /* Exposes that clients have to answer */
    XQOS_EVENTS_SETTINGS = 32, /* other settings of clients and groups */
};

/* Whom a setting is of. */
enum xqos_subject_kind {
    XQOS_SUBJECT_CLIENT = 0,
    XQOS_SUBJECT_GROUP = 1, /* the group of the client that is named */
    XQOS_SUBJECT_SERVER = 2,
};

/* What can be set; the member of SettingValue has the same name. */
enum xqos_setting_kind {
    XQOS_SETTING_RESERVATION = 0, /* of a client or a group */
    XQOS_SETTING_WEIGHT = 1, /* of a client or a group, hundredths; 0 of a group: that of its heaviest client */
    XQOS_SETTING_PRIORITY = 2, /* of a client under the policy fixed; larger is first */
    XQOS_SETTING_CAP = 3, /* of a group: the most that it gets, millionths; 0: no cap */
    XQOS_SETTING_PACED = 4, /* of a client */
    XQOS_SETTING_GROUP = 5, /* of a client: the group that it is in; empty: that of the grouping */
    XQOS_SETTING_PACING = 6, /* of the server: how clients wait for those that they uncover */
    XQOS_SETTING_DESKTOP = 7, /* of the server: the most that compositors and window managers get, millionths */
    XQOS_SETTING_GROUPING = 8, /* of the server */
    XQOS_SETTING_USER_LIMIT = 9, /* of the server: the most that one user may reserve, millionths; 0: no limit */
    XQOS_SETTING_SLICE = 10, /* of a client: its longest slice while the policy decides, us; 0: as long as all */
};

struct xqos_server_info {
    uint32_t size; /* set by the caller */
    uint32_t armed; /* 0: xqos stepped aside, the server schedules as if it were not there */
    uint32_t server_pid;
    uint32_t policy;
    uint32_t clients;
    uint32_t reservations;
    uint32_t max_utilization_ppm; /* U of the admission test */
    uint32_t admitted_utilization_ppm; /* what the reservations take of it */
    uint32_t blocking_observed_us;
    uint32_t blocking_configured_us; /* B of the admission test; 0: the observed one is B */
    uint32_t min_budget_us; /* the ranges of a reservation */
    uint32_t min_period_us;
    uint32_t max_period_us;
    uint32_t slice_us;
    uint32_t timer_interval_us;
    uint32_t maximum_slice_us;
    uint32_t memory_bytes; /* held by xqos in the server */
    uint32_t clients_limit; /* how many clients the server can have; 0: nobody has connected yet */
    uint64_t uptime_ns;
    uint64_t busy_ns; /* server time spent for clients */
    uint64_t decisions;
    uint64_t early_ends; /* slices ended early for a better client */
    uint32_t grab_holder; /* first resource id of the client that holds the server grab; 0: nobody does */
    char reason[256]; /* why xqos stepped aside; empty while armed */
};
_Static_assert(offsetof(struct xqos_server_info, reason) == 108, "as on the wire");

struct xqos_reservation {
    uint32_t size; /* set by the caller */
    uint32_t active; /* 0: the client has no reservation */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t depletions; /* how often the budget ran out */
    int64_t budget_left_ns; /* negative after a request longer than what was left */
    uint64_t deadline_ns; /* the scheduling deadline, an instant */
    uint32_t misses; /* deadlines at which budget was left and work was waiting */
};
_Static_assert(offsetof(struct xqos_reservation, misses) == 40, "as on the wire");

struct xqos_admission {
    uint32_t size; /* set by the caller */
    uint32_t admitted;
    uint32_t failing_client; /* of the first term that fails, or of the largest one when all hold */
    uint32_t failing_period_us; /* T of it */
    uint32_t sum_ppm; /* the sum of Q/T up to that term */
    uint32_t blocking_ppm; /* B/T of that term */
    uint32_t limit_ppm; /* U; 0: the figures are not known */
    uint32_t blocking_us; /* B */
};
_Static_assert(offsetof(struct xqos_admission, blocking_us) == 28, "as on the wire");

struct xqos_groups {
    uint32_t size; /* set by the caller */
    uint32_t grouping;
    uint32_t user_limit_ppm; /* the most that the reservations of one user may sum up to; 0: no limit */
    uint32_t groups; /* how many there are; clients that stand for themselves are not counted */
};
_Static_assert(offsetof(struct xqos_groups, groups) == 12, "as on the wire");

struct xqos_client {
    uint32_t size; /* set by the caller */
    uint32_t unused;
    uint32_t client; /* first resource id */
    int32_t pid; /* 0 where not local */
    uint32_t uid; /* 0xffffffff where not local */
    int32_t sync_priority; /* as SYNC GetPriority would answer */
    uint32_t weight; /* hundredths, 100 by default; policy fair */
    int32_t fixed_priority; /* 0 by default; policy fixed */
    uint32_t flags;
    uint32_t budget_us; /* Q of its reservation; 0: it has none */
    uint32_t period_us; /* T of it */
    uint32_t depletions; /* how often the budget ran out */
    uint32_t misses; /* deadlines at which budget was left and work was waiting */
    uint32_t longest_request; /* major opcode + 65536 x minor opcode of a slice that was one request, the longest by its processor time */
    int64_t budget_left_ns;
    uint64_t deadline_ns;
    uint64_t server_time_ns; /* server time spent for it */
    uint64_t reserved_time_ns; /* the part of it paid from the reservation */
    uint64_t requests;
    uint64_t slices;
    uint64_t waited_ns; /* sum of arrival to dispatch */
    uint64_t longest_wait_ns;
    uint64_t longest_request_ns; /* processor time that the server took for it; below 0.1 ms, time by the clock */
    uint64_t connected_ns; /* instant of connection */
    uint64_t grabbed_ns; /* time it held the server grab, up to now */
    uint64_t charged_ns; /* server time that it caused: without what it did for others, with what window managers did for it */
    uint32_t grabs; /* how often it grabbed the server */
    uint32_t group_cap_ppm; /* the most that its group gets; 0: no cap */
    char name[32]; /* program; empty where not local */
    uint32_t group; /* number of its group; 0: it stands for itself */
    uint32_t group_weight; /* what was set for its group, hundredths; 0: nothing */
    char group_name[32];
    char reservation_origin[32]; /* who made its reservation: `itself`, `hand`, or a name from SetOrigin; empty: it has none */
    char settings_origin[32]; /* the same of its other settings, whichever was set last and is not the default */
    char host[48]; /* the address from which a client of another machine connected; empty where local */
    uint32_t waits[8]; /* waits from arrival to dispatch: within 1, 5, 20, 50, 100, 250 and 1000 ms and above the bound before; the last: above all. They wrap around */
    uint32_t long_grabs; /* server grabs of a second and more */
    uint32_t group_budget_us; /* Q of its group's reservation; 0: that has none */
    uint32_t group_period_us; /* T of it */
    uint32_t slice_us; /* its longest slice; 0: as long as all */
};
_Static_assert(offsetof(struct xqos_client, slice_us) == 388, "as on the wire");

struct xqos_policy_change {
    uint32_t size; /* set by the caller */
    uint32_t mask; /* which of the following count */
    uint32_t policy;
    uint32_t slice_us; /* 100 to 1000000 */
    uint32_t timer_interval_us; /* 100 to 1000000 */
    uint32_t maximum_slice_us; /* 100 to 1000000 */
    uint32_t max_utilization_ppm; /* at most 950000, at least what is admitted */
    uint32_t blocking_us; /* 0: use the observed one */
};
_Static_assert(offsetof(struct xqos_policy_change, blocking_us) == 28, "as on the wire");

struct xqos_event {
    uint32_t size; /* set by the caller */
    uint8_t response_type;
    uint8_t kind; /* XQOS_EVENT_*, or a number of a later version: pass over it */
    uint16_t sequence; /* of the last request that the server had read from this client */
    uint32_t client; /* first resource id */
    int32_t pid; /* 0 where not local */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t count; /* how many happened since the last such event of this client */
    uint32_t time_ms;
};
_Static_assert(offsetof(struct xqos_event, time_ms) == 32, "as on the wire");

#endif
