/* SPDX-License-Identifier: MIT */
/* request.c: sends requests, and receives answers and errors.
 *
 * Requests are sent with xcb_send_request instead of generated code, because the extension is not part of xcb-proto and
 * its few requests are not worth a generator. Every request is sent checked, so its error is returned to the caller and
 * never reaches the event queue or an error handler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "context.h"

#include <stdlib.h>
#include <string.h>

#include <sys/uio.h>

#include <xcb/xcbext.h>

#include "wire.h"

/* XCB numbers the extensions in a process, and uses the number to find the opcode on each connection. */
static xcb_extension_t extension = { .name = "XQOS", .global_id = 0 };

int xqos_attach(struct xqos *xqos, xcb_connection_t *connection)
{
    const xcb_query_extension_reply_t *found;

    if (!connection)
        return XQOS_ERR_ARGUMENT;
    if (xcb_connection_has_error(connection))
        return XQOS_ERR_CONNECTION;
    found = xcb_get_extension_data(connection, &extension);
    if (!found)
        return XQOS_ERR_CONNECTION;
    *xqos = (struct xqos) { .events = -1, .requests = -1 };
    if (!found->present)
        return xcb_connection_has_error(connection) ? XQOS_ERR_CONNECTION : xqos_socket_attach(xqos, connection);
    xqos->connection = connection;
    xqos->first_event = found->first_event;
    xqos->first_error = found->first_error;
    return XQOS_OK;
}

/* Converts an X error, or an error with the same layout from the socket, and frees it. If value is not null, *value is
 * set to the number in the error. */
static int result_of(const xqos_t *xqos, xcb_generic_error_t *error, uint32_t *value)
{
    int code = error->error_code;

    if (value)
        *value = error->resource_id;
    free(error);
    if (code == xqos->first_error)
        return XQOS_ERR_ADMISSION;
    switch (code) {
    case XCB_REQUEST: return XQOS_ERR_REQUEST;
    case XCB_VALUE: return XQOS_ERR_VALUE;
    case XCB_ACCESS: return XQOS_ERR_ACCESS;
    case XCB_ALLOC: return XQOS_ERR_MEMORY;
    case XCB_LENGTH: return XQOS_ERR_LENGTH;
    case XCB_IMPLEMENTATION: return XQOS_ERR_FROM_BELOW;
    default: return XQOS_ERR_PROTOCOL;
    }
}

/* Returns the sequence number, or 0 if the connection is broken. */
static unsigned int send_request(xqos_t *xqos, uint8_t opcode, void *request, size_t bytes, int is_void)
{
    xcb_protocol_request_t protocol = { .count = 1, .ext = &extension, .opcode = opcode, .isvoid = (uint8_t)is_void };
    /* XCB may write to the two elements before the one that is passed to it. */
    struct iovec parts[3] = { { 0 }, { 0 }, { .iov_base = request, .iov_len = bytes } };

    return xcb_send_request(xqos->connection, XCB_REQUEST_CHECKED, parts + 2, &protocol);
}

/* After an error, *answer is null. */
static int ask_over_socket(xqos_t *xqos, uint8_t opcode, void *request, size_t bytes, uint32_t *value,
                           struct wire_reply **answer)
{
    int result = xqos_socket_ask(xqos, opcode, request, bytes, answer);

    if (result == XQOS_OK && (*answer)->type == 0) {
        result = result_of(xqos, (xcb_generic_error_t *)*answer, value);
        *answer = NULL;
    }
    return result;
}

int xqos_perform(xqos_t *xqos, uint8_t opcode, void *request, size_t bytes, uint32_t *value)
{
    xcb_void_cookie_t cookie;
    xcb_generic_error_t *error;

    if (!xqos)
        return XQOS_ERR_ARGUMENT;
    if (xqos_uses_socket(xqos)) {
        struct wire_reply *answer;
        int result = ask_over_socket(xqos, opcode, request, bytes, value, &answer);

        free(answer);
        return result;
    }
    cookie.sequence = send_request(xqos, opcode, request, bytes, 1);
    if (!cookie.sequence)
        return XQOS_ERR_CONNECTION;
    error = xcb_request_check(xqos->connection, cookie);
    if (error)
        return result_of(xqos, error, value);
    /* A broken connection also returns no error, so check whether it is broken. */
    return xcb_connection_has_error(xqos->connection) ? XQOS_ERR_CONNECTION : XQOS_OK;
}

int xqos_ask(xqos_t *xqos, uint8_t opcode, void *request, size_t bytes, void *out, size_t known)
{
    struct wire_reply *reply;
    int result;

    if (!xqos_has_room(out, known))
        return XQOS_ERR_ARGUMENT;
    result = xqos_receive(xqos, opcode, request, bytes, known, &reply);
    if (result != XQOS_OK)
        return result;
    /* The structure has the reply's data byte where the reply has its length; otherwise the layouts are the same. */
    reply->length = reply->data;
    xqos_fill(out, reply, known);
    free(reply);
    return XQOS_OK;
}

int xqos_receive(xqos_t *xqos, uint8_t opcode, void *request, size_t bytes, size_t least, void *reply)
{
    xcb_generic_error_t *error = NULL;
    struct wire_reply *answer;

    if (!xqos)
        return XQOS_ERR_ARGUMENT;
    if (xqos_uses_socket(xqos)) {
        int result = ask_over_socket(xqos, opcode, request, bytes, NULL, &answer);

        if (result != XQOS_OK)
            return result;
    } else {
        unsigned int sequence = send_request(xqos, opcode, request, bytes, 0);

        if (!sequence)
            return XQOS_ERR_CONNECTION;
        answer = xcb_wait_for_reply(xqos->connection, sequence, &error);
        if (error)
            return result_of(xqos, error, NULL);
        if (!answer)
            return XQOS_ERR_CONNECTION;
    }
    if (32 + 4 * (uint64_t)answer->length < least) {
        free(answer);
        return XQOS_ERR_LENGTH;
    }
    memcpy(reply, &answer, sizeof answer);
    return XQOS_OK;
}
