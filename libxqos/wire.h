/* SPDX-License-Identifier: MIT */
/* wire.h: the bytes of the XQOS extension as C structures.
 *
 * Private to the library. One structure for each request, reply and event of proto/xqosproto.md, in its order. XCB
 * speaks the byte order of the machine, so the structures are what travels. The invariant, asserted here, is that
 * each has the size the protocol gives; names and offsets follow from natural alignment, which the protocol keeps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_WIRE_H
#define XQOS_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " is " #bytes " bytes")

enum wire_opcode {
    WIRE_QUERY_VERSION = 0,
    WIRE_GET_SERVER_INFO = 1,
    WIRE_SET_RESERVATION = 2,
    WIRE_GET_RESERVATION = 3,
    WIRE_CLEAR_RESERVATION = 4,
    WIRE_CHECK_ADMISSION = 5,
    WIRE_LIST_CLIENTS = 6,
    WIRE_SET_POLICY = 7,
    WIRE_SET_CLIENT_WEIGHT = 8,
    WIRE_SET_CLIENT_PRIORITY = 9,
    WIRE_SELECT_EVENTS = 10,
    /* of 1.1 */
    WIRE_SET_ORIGIN = 20,
    WIRE_SET_GROUPS = 21,
    WIRE_GET_GROUPS = 22,
    WIRE_SET_CLIENT_GROUP = 23,
    WIRE_SET_GROUP_WEIGHT = 24,
    WIRE_SET_GROUP_CAP = 25,
    WIRE_SET_GROUP_RESERVATION = 26,
    WIRE_CLEAR_GROUP_RESERVATION = 27,
    WIRE_SET_CLIENT_PACING = 28
};

/* XCB fills it in. */
struct wire_header {
    uint8_t major_opcode;
    uint8_t minor_opcode;
    uint16_t length;
};

/* Requests whose content is nothing, one number or two. */
struct wire_plain {
    struct wire_header header;
};
WIRE_SIZE(wire_plain, 4);

struct wire_one {
    struct wire_header header;
    uint32_t first;
};
WIRE_SIZE(wire_one, 8);

struct wire_two {
    struct wire_header header;
    uint32_t first;
    uint32_t second;
};
WIRE_SIZE(wire_two, 12);

/* SetReservation, CheckAdmission and SetGroupReservation. */
struct wire_reserve {
    struct wire_header header;
    uint32_t client;
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
};
WIRE_SIZE(wire_reserve, 20);

struct wire_set_policy {
    struct wire_header header;
    uint8_t policy;
    uint8_t pad[3];
    uint32_t mask;
    uint32_t slice_us;
    uint32_t timer_interval_us;
    uint32_t maximum_slice_us;
    uint32_t max_utilization_ppm;
    uint32_t blocking_us;
};
WIRE_SIZE(wire_set_policy, 32);

/* SetOrigin and SetClientGroup: a number, or a byte of one, and a name filled with zeros. */
struct wire_named {
    struct wire_header header;
    uint32_t first;
    char name[32];
};
WIRE_SIZE(wire_named, 40);

/* Requests with a byte at either place. */
struct wire_set_groups {
    struct wire_header header;
    uint8_t grouping;
    uint8_t pad[3];
    uint32_t user_limit_ppm;
};
WIRE_SIZE(wire_set_groups, 12);

struct wire_set_pacing {
    struct wire_header header;
    uint32_t client;
    uint8_t pacing;
    uint8_t pad[3];
};
WIRE_SIZE(wire_set_pacing, 12);

struct wire_reply {
    uint8_t type;
    uint8_t data;
    uint16_t sequence;
    uint32_t length; /* words after the first 32 bytes */
};
WIRE_SIZE(wire_reply, 8);

struct wire_version {
    struct wire_reply header;
    uint32_t major;
    uint32_t minor;
    uint32_t pad[4];
};
WIRE_SIZE(wire_version, 32);

struct wire_server_info {
    struct wire_reply header; /* data: armed */
    uint32_t server_pid;
    uint8_t policy;
    uint8_t reason_len;
    uint16_t clients;
    uint32_t max_utilization_ppm;
    uint32_t admitted_utilization_ppm;
    uint32_t blocking_observed_us;
    uint32_t blocking_configured_us;
    uint32_t min_budget_us;
    uint32_t min_period_us;
    uint32_t max_period_us;
    uint32_t slice_us;
    uint32_t timer_interval_us;
    uint32_t maximum_slice_us;
    uint64_t uptime_ns;
    uint64_t busy_ns;
    uint64_t decisions;
    uint64_t early_ends;
    uint32_t memory_bytes;
    uint32_t reservations;
    uint32_t clients_limit;
    uint32_t grab_holder;
    /* the reason follows */
};
WIRE_SIZE(wire_server_info, 104);

struct wire_reservation {
    struct wire_reply header; /* data: reserved */
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t depletions;
    int64_t budget_left_ns;
    uint64_t deadline_ns;
    uint32_t misses;
    uint32_t pad;
};
WIRE_SIZE(wire_reservation, 48);

struct wire_admission {
    struct wire_reply header; /* data: admitted */
    uint32_t failing_client;
    uint32_t failing_period_us;
    uint32_t sum_ppm;
    uint32_t blocking_ppm;
    uint32_t limit_ppm;
    uint32_t blocking_us;
};
WIRE_SIZE(wire_admission, 32);

struct wire_groups {
    struct wire_reply header; /* data: grouping */
    uint32_t user_limit_ppm;
    uint32_t groups;
    uint32_t pad[4];
};
WIRE_SIZE(wire_groups, 32);

struct wire_client_list {
    struct wire_reply header;
    uint32_t count;
    uint32_t entry_bytes;
    uint64_t now_ns;
    uint32_t pad[2];
    /* the entries follow, entry_bytes apart */
};
WIRE_SIZE(wire_client_list, 32);

struct wire_client {
    uint32_t client;
    int32_t pid;
    uint32_t uid;
    int32_t sync_priority;
    uint32_t weight;
    int32_t fixed_priority;
    uint32_t flags;
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t depletions;
    uint32_t misses;
    uint32_t longest_request; /* major + 65536 x minor */
    int64_t budget_left_ns;
    uint64_t deadline_ns;
    uint64_t server_time_ns;
    uint64_t reserved_time_ns;
    uint64_t requests;
    uint64_t slices;
    uint64_t waited_ns;
    uint64_t longest_wait_ns;
    uint64_t longest_request_ns;
    uint64_t connected_ns;
    uint64_t grabbed_ns;
    uint32_t grabs;
    uint32_t group_cap_ppm;
    char name[32];
    /* A server of 1.0 ends here. */
    uint32_t group;
    uint32_t group_weight;
    char group_name[32];
    char reservation_origin[32];
    char settings_origin[32];
    char host[48];
    uint32_t waits[8];
    uint32_t long_grabs;
    uint32_t group_budget_us;
    uint32_t group_period_us;
    uint32_t pad;
    uint64_t charged_ns;
};
WIRE_SIZE(wire_client, 384);
enum { WIRE_CLIENT_BYTES_1_0 = 176 };

struct wire_event {
    uint8_t type;
    uint8_t kind;
    uint16_t sequence;
    uint32_t client;
    int32_t pid;
    uint32_t budget_us;
    uint32_t period_us;
    uint32_t flags;
    uint32_t count;
    uint32_t time_ms;
};
WIRE_SIZE(wire_event, 32);

#endif
