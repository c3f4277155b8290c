/* xqos.c: the public functions, one for each request of the extension.
 *
 * Each turns its arguments into the structure of wire.h, has request.c send it, and turns the answer into the
 * structure of xqos.h: the wire's layouts and the library's may then change apart.
 *
 * The invariant: no byte of a reply is read before the reply's length has been compared with what it must hold. The
 * fixed part is compared in request.c, what follows it here.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wire.h"

/* Layouts that programs are compiled with: they may only grow. */
_Static_assert(sizeof(struct xqos_server_info) == 360, "layout of 1.0");
_Static_assert(sizeof(struct xqos_reservation) == 48, "layout of 1.0");
_Static_assert(sizeof(struct xqos_admission) == 32, "layout of 1.0");
_Static_assert(sizeof(struct xqos_client) == 184, "layout of 1.0");
_Static_assert(sizeof(struct xqos_policy_change) == 32, "layout of 1.0");
_Static_assert(sizeof(struct xqos_event) == 40, "layout of 1.0");

struct xqos_client_list {
    struct wire_client_list *reply;
    uint32_t next;
};

static int has_room(const void *sized, size_t least);
static void fill(void *out, const void *ours, size_t bytes);

/* ---- the connection ---------------------------------------------------------------------------------------- */

int xqos_check_version(struct xqos *xqos)
{
    uint32_t major;
    int result = xqos_query_version(xqos, &major, NULL);

    if (result == XQOS_OK && major != XQOS_MAJOR_VERSION)
        return XQOS_ERR_VERSION;
    return result;
}

int xqos_open(xcb_connection_t *connection, xqos_t **out)
{
    struct xqos found;
    int result;

    if (!out)
        return XQOS_ERR_ARGUMENT;
    *out = NULL;
    result = xqos_attach(&found, connection);
    if (result == XQOS_OK)
        result = xqos_check_version(&found);
    if (result != XQOS_OK)
        return result;
    *out = malloc(sizeof **out);
    if (!*out)
        return XQOS_ERR_MEMORY;
    **out = found;
    return XQOS_OK;
}

void xqos_close(xqos_t *xqos)
{
    free(xqos);
}

int xqos_query_version(xqos_t *xqos, uint32_t *major, uint32_t *minor)
{
    struct wire_two request = { .first = XQOS_MAJOR_VERSION, .second = XQOS_MINOR_VERSION };
    struct wire_version *reply;
    int result = xqos_receive(xqos, WIRE_QUERY_VERSION, &request, sizeof request, sizeof *reply, &reply);

    if (result != XQOS_OK)
        return result;
    if (major)
        *major = reply->major;
    if (minor)
        *minor = reply->minor;
    free(reply);
    return XQOS_OK;
}

/* ---- the server -------------------------------------------------------------------------------------------- */

static struct xqos_server_info server_info_from(const struct wire_server_info *reply)
{
    struct xqos_server_info info = {
        .server_pid = reply->server_pid,
        .armed = reply->header.data != 0,
        .policy = reply->policy,
        .clients = reply->clients,
        .reservations = reply->reservations,
        .max_utilization_ppm = reply->max_utilization_ppm,
        .admitted_utilization_ppm = reply->admitted_utilization_ppm,
        .blocking_observed_us = reply->blocking_observed_us,
        .blocking_configured_us = reply->blocking_configured_us,
        .min_budget_us = reply->min_budget_us,
        .min_period_us = reply->min_period_us,
        .max_period_us = reply->max_period_us,
        .slice_us = reply->slice_us,
        .timer_interval_us = reply->timer_interval_us,
        .maximum_slice_us = reply->maximum_slice_us,
        .memory_bytes = reply->memory_bytes,
        .reason_len = reply->reason_len,
        .uptime_ns = reply->uptime_ns,
        .busy_ns = reply->busy_ns,
        .decisions = reply->decisions,
        .early_ends = reply->early_ends,
    };

    /* reason_len is a byte, so the 256 bytes hold it and its 0. */
    memcpy(info.reason, reply + 1, reply->reason_len);
    return info;
}

/* Bytes of a reply behind its fixed part of `fixed` bytes. */
static uint64_t bytes_behind(const struct wire_reply *reply, size_t fixed)
{
    return 32 + 4 * (uint64_t)reply->length - fixed;
}

int xqos_get_server_info(xqos_t *xqos, struct xqos_server_info *out)
{
    struct wire_plain request = { 0 };
    struct wire_server_info *reply;
    struct xqos_server_info info;
    int result;

    if (!has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_receive(xqos, WIRE_GET_SERVER_INFO, &request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    if (bytes_behind(&reply->header, sizeof *reply) < reply->reason_len) {
        free(reply);
        return XQOS_ERR_LENGTH;
    }
    info = server_info_from(reply);
    free(reply);
    fill(out, &info, sizeof info);
    return XQOS_OK;
}

int xqos_set_policy(xqos_t *xqos, const struct xqos_policy_change *change)
{
    struct wire_set_policy request;

    if (!has_room(change, sizeof *change))
        return XQOS_ERR_ARGUMENT;
    /* The wire has a byte for it: a larger number must not become a policy by losing its upper bits. */
    if ((change->mask & XQOS_SET_POLICY) && change->policy > UINT8_MAX)
        return XQOS_ERR_VALUE;
    request = (struct wire_set_policy) {
        .policy = (uint8_t)change->policy,
        .mask = change->mask,
        .slice_us = change->slice_us,
        .timer_interval_us = change->timer_interval_us,
        .maximum_slice_us = change->maximum_slice_us,
        .max_utilization_ppm = change->max_utilization_ppm,
        .blocking_us = change->blocking_us,
    };
    return xqos_perform(xqos, WIRE_SET_POLICY, &request, sizeof request, NULL);
}

/* ---- reservations ------------------------------------------------------------------------------------------ */

static int check_admission(xqos_t *xqos, struct wire_reserve request, struct xqos_admission *admission)
{
    struct wire_admission *reply;
    int result = xqos_receive(xqos, WIRE_CHECK_ADMISSION, &request, sizeof request, sizeof *reply, &reply);

    if (result != XQOS_OK)
        return result;
    *admission = (struct xqos_admission) {
        .admitted = reply->header.data != 0,
        .failing_client = reply->failing_client,
        .failing_period_us = reply->failing_period_us,
        .sum_ppm = reply->sum_ppm,
        .blocking_ppm = reply->blocking_ppm,
        .limit_ppm = reply->limit_ppm,
        .blocking_us = reply->blocking_us,
    };
    free(reply);
    return XQOS_OK;
}

/* The term behind a refusal. Where the second request does not refuse, the client named with the first is all there
 * is to say. */
static struct xqos_admission explain(xqos_t *xqos, struct wire_reserve request, uint32_t failing_client)
{
    struct xqos_admission admission;

    if (check_admission(xqos, request, &admission) == XQOS_OK && !admission.admitted)
        return admission;
    return (struct xqos_admission) { .failing_client = failing_client };
}

int xqos_set_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                         struct xqos_admission *refused)
{
    struct wire_reserve request = { .client = client, .budget_us = budget_us, .period_us = period_us, .flags = flags };
    struct xqos_admission admission;
    uint32_t value;
    int result;

    if (refused && !has_room(refused, sizeof *refused))
        return XQOS_ERR_ARGUMENT;
    result = xqos_perform(xqos, WIRE_SET_RESERVATION, &request, sizeof request, &value);
    if (result != XQOS_ERR_ADMISSION || !refused)
        return result;
    admission = explain(xqos, request, value);
    fill(refused, &admission, sizeof admission);
    return result;
}

int xqos_check_admission(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                         struct xqos_admission *out)
{
    struct wire_reserve request = { .client = client, .budget_us = budget_us, .period_us = period_us, .flags = flags };
    struct xqos_admission admission;
    int result;

    if (!has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = check_admission(xqos, request, &admission);
    if (result == XQOS_OK)
        fill(out, &admission, sizeof admission);
    return result;
}

int xqos_get_reservation(xqos_t *xqos, uint32_t client, struct xqos_reservation *out)
{
    struct wire_one request = { .first = client };
    struct wire_reservation *reply;
    struct xqos_reservation reservation = { .client = client };
    int result;

    if (!has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_receive(xqos, WIRE_GET_RESERVATION, &request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    if (reply->header.data) {
        reservation.active = 1;
        reservation.budget_us = reply->budget_us;
        reservation.period_us = reply->period_us;
        reservation.flags = reply->flags;
        reservation.depletions = reply->depletions;
        reservation.misses = reply->misses;
        reservation.budget_left_ns = reply->budget_left_ns;
        reservation.deadline_ns = reply->deadline_ns;
    }
    free(reply);
    fill(out, &reservation, sizeof reservation);
    return XQOS_OK;
}

int xqos_clear_reservation(xqos_t *xqos, uint32_t client)
{
    struct wire_one request = { .first = client };

    return xqos_perform(xqos, WIRE_CLEAR_RESERVATION, &request, sizeof request, NULL);
}

/* ---- clients ----------------------------------------------------------------------------------------------- */

/* Whether the entries fit in the reply. They may be longer than this library knows, never shorter. */
static int entries_fit(const struct wire_client_list *reply)
{
    return reply->count == 0
        || (reply->entry_bytes >= sizeof(struct wire_client)
            && bytes_behind(&reply->header, sizeof *reply) / reply->entry_bytes >= reply->count);
}

int xqos_list_clients(xqos_t *xqos, xqos_client_list_t **out)
{
    struct wire_plain request = { 0 };
    struct wire_client_list *reply;
    int result;

    if (!out)
        return XQOS_ERR_ARGUMENT;
    *out = NULL;
    result = xqos_receive(xqos, WIRE_LIST_CLIENTS, &request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    if (entries_fit(reply))
        *out = malloc(sizeof **out);
    else
        result = XQOS_ERR_LENGTH;
    if (!*out) {
        free(reply);
        return result == XQOS_OK ? XQOS_ERR_MEMORY : result;
    }
    **out = (xqos_client_list_t) { .reply = reply };
    return XQOS_OK;
}

uint32_t xqos_client_list_count(const xqos_client_list_t *list)
{
    return list ? list->reply->count : 0;
}

uint64_t xqos_client_list_now_ns(const xqos_client_list_t *list)
{
    return list ? list->reply->now_ns : 0;
}

void xqos_client_list_rewind(xqos_client_list_t *list)
{
    if (list)
        list->next = 0;
}

void xqos_client_list_free(xqos_client_list_t *list)
{
    if (!list)
        return;
    free(list->reply);
    free(list);
}

static struct xqos_client client_from(const struct wire_client *entry)
{
    struct xqos_client client = {
        .client = entry->client,
        .pid = entry->pid,
        .uid = entry->uid,
        .sync_priority = entry->sync_priority,
        .weight = entry->weight,
        .fixed_priority = entry->fixed_priority,
        .flags = entry->flags,
        .budget_us = entry->budget_us,
        .period_us = entry->period_us,
        .depletions = entry->depletions,
        .misses = entry->misses,
        .longest_request_major = entry->longest_request & 0xffff,
        .longest_request_minor = entry->longest_request >> 16,
        .budget_left_ns = entry->budget_left_ns,
        .deadline_ns = entry->deadline_ns,
        .server_time_ns = entry->server_time_ns,
        .reserved_time_ns = entry->reserved_time_ns,
        .requests = entry->requests,
        .slices = entry->slices,
        .waited_ns = entry->waited_ns,
        .longest_wait_ns = entry->longest_wait_ns,
        .longest_request_ns = entry->longest_request_ns,
        .connected_ns = entry->connected_ns,
        .grabbed_ns = entry->grabbed_ns,
    };

    /* The wire's 32 bytes need not end with 0; these 40 do. */
    memcpy(client.name, entry->name, sizeof entry->name);
    return client;
}

int xqos_client_list_next(xqos_client_list_t *list, struct xqos_client *out)
{
    struct wire_client entry;
    struct xqos_client client;
    const char *entries;

    if (!list || !has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    if (list->next >= list->reply->count)
        return 0;
    /* Copied, because a later version's entry_bytes need not keep the alignment. */
    entries = (const char *)(list->reply + 1);
    memcpy(&entry, entries + (size_t)list->next * list->reply->entry_bytes, sizeof entry);
    list->next++;
    client = client_from(&entry);
    fill(out, &client, sizeof client);
    return 1;
}

int xqos_set_client_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths)
{
    struct wire_two request = { .first = client, .second = weight_hundredths };

    return xqos_perform(xqos, WIRE_SET_CLIENT_WEIGHT, &request, sizeof request, NULL);
}

int xqos_set_client_priority(xqos_t *xqos, uint32_t client, int32_t priority)
{
    struct wire_two request = { .first = client, .second = (uint32_t)priority };

    return xqos_perform(xqos, WIRE_SET_CLIENT_PRIORITY, &request, sizeof request, NULL);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

int xqos_select_events(xqos_t *xqos, uint32_t mask)
{
    struct wire_one request = { .first = mask };

    return xqos_perform(xqos, WIRE_SELECT_EVENTS, &request, sizeof request, NULL);
}

int xqos_decode_event(const xqos_t *xqos, const xcb_generic_event_t *event, struct xqos_event *out)
{
    struct wire_event wire;
    struct xqos_event ours;

    if (!xqos || !event || !has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    /* The top bit, which SendEvent sets, is left in: such an event does not match. */
    if (event->response_type != xqos->first_event)
        return XQOS_ERR_EVENT;
    memcpy(&wire, event, sizeof wire);
    ours = (struct xqos_event) {
        .kind = wire.kind,
        .client = wire.client,
        .pid = wire.pid,
        .budget_us = wire.budget_us,
        .period_us = wire.period_us,
        .flags = wire.flags,
        .count = wire.count,
        .time_ms = wire.time_ms,
        .sequence = wire.sequence,
    };
    fill(out, &ours, sizeof ours);
    return XQOS_OK;
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

const char *xqos_strerror(int error)
{
    switch (error) {
    case XQOS_OK: return "no error";
    case XQOS_ERR_NO_EXTENSION: return "this X server does not offer the XQOS extension to this client";
    case XQOS_ERR_CONNECTION: return "the connection to the X server is broken";
    case XQOS_ERR_VERSION: return "the X server speaks another version of XQOS";
    case XQOS_ERR_ACCESS: return "not permitted for this client";
    case XQOS_ERR_VALUE: return "a value is out of range, or there is no such client";
    case XQOS_ERR_ADMISSION: return "the reservation would break the guarantees already given";
    case XQOS_ERR_LENGTH: return "a request or an answer has the wrong length";
    case XQOS_ERR_REQUEST: return "the X server does not know this XQOS request";
    case XQOS_ERR_MEMORY: return "out of memory";
    case XQOS_ERR_PROTOCOL: return "the X server answered with an unexpected error";
    case XQOS_ERR_ARGUMENT: return "a null pointer or a wrong structure size";
    case XQOS_ERR_EVENT: return "not an event of the XQOS extension";
    default: return "unknown error";
    }
}

/* ---- structures with a size -------------------------------------------------------------------------------- */

/* Whether a structure of the caller is there and has at least the `least` bytes of version 1.0. */
static int has_room(const void *sized, size_t least)
{
    uint32_t size;

    if (!sized)
        return 0;
    memcpy(&size, sized, sizeof size);
    return size >= least;
}

/* Copies ours over the caller's, all but the size: what the caller does not know is left out, what this library does
 * not know is zero. */
static void fill(void *out, const void *ours, size_t bytes)
{
    uint32_t size;
    size_t common;

    memcpy(&size, out, sizeof size);
    common = size < bytes ? size : bytes;
    memcpy((char *)out + sizeof size, (const char *)ours + sizeof size, common - sizeof size);
    memset((char *)out + common, 0, size - common);
}
