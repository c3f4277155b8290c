/* SPDX-License-Identifier: MIT */
/* xqos.c: the public functions, one for each request of the extension; the list of clients is in clients.c, and what is
 * set for a client in settings.c.
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
_Static_assert(sizeof(struct xqos_server_info) == 368, "layout of 1.0");
_Static_assert(sizeof(struct xqos_reservation) == 48, "layout of 1.0");
_Static_assert(sizeof(struct xqos_admission) == 32, "layout of 1.0");
_Static_assert(sizeof(struct xqos_policy_change) == 32, "layout of 1.0");
_Static_assert(sizeof(struct xqos_event) == 40, "layout of 1.0");

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
    pthread_mutex_init(&(*out)->turn, NULL);
    return XQOS_OK;
}

void xqos_close(xqos_t *xqos)
{
    if (xqos) {
        xqos_socket_close(xqos);
        pthread_mutex_destroy(&xqos->turn);
    }
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
        .clients_limit = reply->clients_limit,
        .grab_holder = reply->grab_holder,
        .uptime_ns = reply->uptime_ns,
        .busy_ns = reply->busy_ns,
        .decisions = reply->decisions,
        .early_ends = reply->early_ends,
    };

    /* reason_len is a byte, so the 256 bytes hold it and its 0. */
    memcpy(info.reason, reply + 1, reply->reason_len);
    return info;
}

int xqos_get_server_info(xqos_t *xqos, struct xqos_server_info *out)
{
    struct wire_plain request = { 0 };
    struct wire_server_info *reply;
    struct xqos_server_info info;
    int result;

    if (!xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_receive(xqos, WIRE_GET_SERVER_INFO, &request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    if (xqos_bytes_behind(&reply->header, sizeof *reply) < reply->reason_len) {
        free(reply);
        return XQOS_ERR_LENGTH;
    }
    info = server_info_from(reply);
    free(reply);
    xqos_fill(out, &info, sizeof info);
    return XQOS_OK;
}

int xqos_set_policy(xqos_t *xqos, const struct xqos_policy_change *change)
{
    struct wire_set_policy request;

    if (!xqos_has_room(change, sizeof *change))
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

    if (refused && !xqos_has_room(refused, sizeof *refused))
        return XQOS_ERR_ARGUMENT;
    result = xqos_perform(xqos, WIRE_SET_RESERVATION, &request, sizeof request, &value);
    if (result != XQOS_ERR_ADMISSION || !refused)
        return result;
    admission = explain(xqos, request, value);
    xqos_fill(refused, &admission, sizeof admission);
    return result;
}

int xqos_check_admission(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                         struct xqos_admission *out)
{
    struct wire_reserve request = { .client = client, .budget_us = budget_us, .period_us = period_us, .flags = flags };
    struct xqos_admission admission;
    int result;

    if (!xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = check_admission(xqos, request, &admission);
    if (result == XQOS_OK)
        xqos_fill(out, &admission, sizeof admission);
    return result;
}

int xqos_get_reservation(xqos_t *xqos, uint32_t client, struct xqos_reservation *out)
{
    struct wire_one request = { .first = client };
    struct wire_reservation *reply;
    struct xqos_reservation reservation = { .client = client };
    int result;

    if (!xqos_has_room(out, sizeof *out))
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
    xqos_fill(out, &reservation, sizeof reservation);
    return XQOS_OK;
}

int xqos_clear_reservation(xqos_t *xqos, uint32_t client)
{
    struct wire_one request = { .first = client };

    return xqos_perform(xqos, WIRE_CLEAR_RESERVATION, &request, sizeof request, NULL);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

int xqos_select_events(xqos_t *xqos, uint32_t mask)
{
    struct wire_one request = { .first = mask };
    int result = xqos_perform(xqos, WIRE_SELECT_EVENTS, &request, sizeof request, NULL);

    /* The first connection, now closed, has checked the mask. */
    if (result == XQOS_OK && xqos_is_below(xqos))
        result = xqos_socket_select(xqos, mask);
    return result;
}

static struct xqos_event event_from(const struct wire_event *wire)
{
    return (struct xqos_event) {
        .kind = wire->kind,
        .client = wire->client,
        .pid = wire->pid,
        .budget_us = wire->budget_us,
        .period_us = wire->period_us,
        .flags = wire->flags,
        .count = wire->count,
        .time_ms = wire->time_ms,
        .sequence = wire->sequence,
    };
}

int xqos_event_descriptor(const xqos_t *xqos)
{
    return xqos ? atomic_load(&xqos->events) : -1;
}

int xqos_next_event(xqos_t *xqos, struct xqos_event *out)
{
    struct wire_event wire;
    struct xqos_event ours;
    int result;

    if (!xqos || !xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_socket_next(xqos, &wire);
    if (result <= 0)
        return result;
    ours = event_from(&wire);
    xqos_fill(out, &ours, sizeof ours);
    return 1;
}

int xqos_decode_event(const xqos_t *xqos, const xcb_generic_event_t *event, struct xqos_event *out)
{
    struct wire_event wire;
    struct xqos_event ours;

    if (!xqos || !event || !xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    /* The top bit, which SendEvent sets, is left in: such an event does not match. */
    if (xqos_is_below(xqos) || event->response_type != xqos->first_event)
        return XQOS_ERR_EVENT;
    memcpy(&wire, event, sizeof wire);
    ours = event_from(&wire);
    xqos_fill(out, &ours, sizeof ours);
    return XQOS_OK;
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

const char *xqos_strerror(int error)
{
    switch (error) {
    case XQOS_OK: return "no error";
    case XQOS_ERR_NO_EXTENSION: return "this X server does not offer xqos to this client";
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
    case XQOS_ERR_FROM_BELOW: return "this X server is served from below, where single requests are not seen";
    default: return "unknown error";
    }
}
