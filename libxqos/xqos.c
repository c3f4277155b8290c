/* SPDX-License-Identifier: MIT */
/* xqos.c: the public functions for the connection, the server and events. The list of clients is in clients.c; settings
 * are in settings.c.
 *
 * Invariant: the length of a reply is checked before any of its contents are read. request.c checks the fixed part; the
 * functions in this file check the rest.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wire.h"

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
    pthread_mutex_init(&(*out)->requests_lock, NULL);
    return XQOS_OK;
}

void xqos_close(xqos_t *xqos)
{
    if (xqos) {
        xqos_socket_close(xqos);
        pthread_mutex_destroy(&xqos->requests_lock);
    }
    free(xqos);
}

int xqos_query_version(xqos_t *xqos, uint32_t *major, uint32_t *minor)
{
    uint32_t request[] = { 0, XQOS_MAJOR_VERSION, XQOS_MINOR_VERSION };
    uint32_t *reply; /* the version follows the header */
    int result = xqos_receive(xqos, XQOS_REQUEST_QUERY_VERSION, request, sizeof request, 32, &reply);

    if (result != XQOS_OK)
        return result;
    if (major)
        *major = reply[2];
    if (minor)
        *minor = reply[3];
    free(reply);
    return XQOS_OK;
}

/* ---- the server -------------------------------------------------------------------------------------------- */

int xqos_get_server_info(xqos_t *xqos, struct xqos_server_info *out)
{
    uint32_t request[1] = { 0 };
    int result = xqos_ask(xqos, XQOS_REQUEST_GET_SERVER_INFO, request, sizeof request, out, sizeof *out);

    if (result == XQOS_OK)
        out->reason[sizeof out->reason - 1] = 0;
    return result;
}

int xqos_set_policy(xqos_t *xqos, const struct xqos_policy_change *change)
{
    struct xqos_policy_change request;

    if (!xqos_has_room(change, sizeof *change))
        return XQOS_ERR_ARGUMENT;
    /* The request has its header where the structure has its size. */
    request = *change;
    return xqos_perform(xqos, XQOS_REQUEST_SET_POLICY, &request, sizeof request, NULL);
}

int xqos_get_groups(xqos_t *xqos, struct xqos_groups *out)
{
    uint32_t request[1] = { 0 };

    return xqos_ask(xqos, XQOS_REQUEST_GET_GROUPS, request, sizeof request, out, sizeof *out);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

int xqos_select_events(xqos_t *xqos, uint32_t mask)
{
    uint32_t request[] = { 0, mask };
    int result = xqos_perform(xqos, XQOS_REQUEST_SELECT_EVENTS, request, sizeof request, NULL);

    /* The mask was checked over the first connection, which is closed now. */
    if (result == XQOS_OK && xqos_uses_socket(xqos))
        result = xqos_socket_select(xqos, mask);
    return result;
}

int xqos_event_descriptor(const xqos_t *xqos)
{
    return xqos ? atomic_load(&xqos->events) : -1;
}

/* Fills the structure from an event. In the structure, the event's bytes follow the size. */
static void fill_event(struct xqos_event *out, const void *bytes)
{
    struct xqos_event ours;

    memcpy((char *)&ours + sizeof ours.size, bytes, WIRE_EVENT_BYTES);
    xqos_fill(out, &ours, sizeof ours);
}

int xqos_next_event(xqos_t *xqos, struct xqos_event *out)
{
    unsigned char bytes[WIRE_EVENT_BYTES];
    int result;

    if (!xqos || !xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_socket_next(xqos, bytes);
    if (result > 0)
        fill_event(out, bytes);
    return result;
}

int xqos_decode_event(const xqos_t *xqos, const xcb_generic_event_t *event, struct xqos_event *out)
{
    if (!xqos || !event || !xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    /* SendEvent sets the top bit; such an event must not match. */
    if (xqos_uses_socket(xqos) || event->response_type != xqos->first_event)
        return XQOS_ERR_EVENT;
    fill_event(out, event);
    return XQOS_OK;
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

const char *xqos_strerror(int error)
{
    switch (error) {
    case XQOS_OK: return "no error";
    case XQOS_ERR_NO_EXTENSION: return "this X server has no xqos, or hides it from this client";
    case XQOS_ERR_CONNECTION: return "the connection to the X server is broken";
    case XQOS_ERR_VERSION: return "the X server has another version of XQOS";
    case XQOS_ERR_ACCESS: return "this client has no permission for the request";
    case XQOS_ERR_VALUE: return "a value is out of range, or the client does not exist";
    case XQOS_ERR_ADMISSION: return "the reservation would break guarantees already given";
    case XQOS_ERR_LENGTH: return "a request or an answer has the wrong length";
    case XQOS_ERR_REQUEST: return "the X server does not know this XQOS request";
    case XQOS_ERR_MEMORY: return "out of memory";
    case XQOS_ERR_PROTOCOL: return "the X server answered with an unexpected error";
    case XQOS_ERR_ARGUMENT: return "a null pointer or a wrong structure size";
    case XQOS_ERR_EVENT: return "not an event of the XQOS extension";
    case XQOS_ERR_FROM_BELOW: return "xqos serves this X server through libc and cannot see single requests";
    default: return "unknown error";
    }
}
