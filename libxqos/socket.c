/* SPDX-License-Identifier: MIT */
/* socket.c: requests over the control socket of a server without the extension.
 *
 * xqos serves such a server through libc (interposition). The server accepts the same requests on a separate socket
 * (proto/xqosproto.md, "The control socket"). Each connection carries one request and its answer. A context therefore
 * never changes after it is opened, threads share it without a lock, and XRT keeps no state per display. Only events
 * and origins need lasting connections; threads take turns on the connection for origins.
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE /* struct ucred */

#include "context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/time.h>

#include "wire.h"

enum {
    EVENT = 64,
    FIRST_ERROR = 128,
    RECORD_BYTES = 32,
    PATIENCE_S = 10,              /* after this time without an answer, the server counts as hung */
    MAX_REPLY_BYTES = 64 << 20    /* no list of clients is larger */
};

/* ---- which socket ------------------------------------------------------------------------------------------ */

/* Sets *user to the user at the other end of a socket. Returns 0 if the kernel does not know the user. */
static int peer_of(int descriptor, uid_t *user)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return 0;
    *user = peer.uid;
    return 1;
}

/* Returns the display number from the peer address of an X connection, or -1 if the connection is not local. */
static long display_of(int descriptor)
{
    static const char folder[] = "/.X11-unix/X";
    struct sockaddr_un place;
    socklen_t bytes = sizeof place;
    char path[sizeof place.sun_path + 1] = { 0 };
    const char *number;
    char *end;
    long display;

    memset(&place, 0, sizeof place);
    if (getpeername(descriptor, (struct sockaddr *)&place, &bytes) != 0 || place.sun_family != AF_UNIX)
        return -1;
    /* An abstract address begins with 0. */
    memcpy(path, place.sun_path + !place.sun_path[0], sizeof place.sun_path - !place.sun_path[0]);
    number = strstr(path, folder);
    if (!number)
        return -1;
    number += sizeof folder - 1;
    display = strtol(number, &end, 10);
    return *number >= '0' && *number <= '9' && !*end ? display : -1;
}

/* Connects to the control socket and checks that the server's user owns the other end: anyone can put a socket in /tmp.
 */
static int connect_to(const struct xqos *xqos)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uid_t user;

    if (descriptor < 0)
        return -1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0
        && connect(descriptor, (const struct sockaddr *)&xqos->place, sizeof xqos->place) == 0
        && peer_of(descriptor, &user) && user == xqos->server)
        return descriptor;
    close(descriptor);
    return -1;
}

int xqos_socket_attach(struct xqos *xqos, xcb_connection_t *connection)
{
    static const char *const folders[] = { "/run/user/%lu/xqos", "/run/xqos", "/tmp/.xqos-%lu" };
    int descriptor = xcb_get_file_descriptor(connection);
    long display = display_of(descriptor);

    if (display < 0 || !peer_of(descriptor, &xqos->server))
        return XQOS_ERR_NO_EXTENSION;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char folder[64];

        snprintf(folder, sizeof folder, folders[i], (unsigned long)xqos->server);
        xqos->place = (struct sockaddr_un) { .sun_family = AF_UNIX };
        snprintf(xqos->place.sun_path, sizeof xqos->place.sun_path, "%s/%ld.socket", folder, display);
        descriptor = connect_to(xqos);
        if (descriptor < 0)
            continue;
        close(descriptor);
        xqos->connection = connection;
        xqos->own = xcb_get_setup(connection)->resource_id_base;
        xqos->first_event = EVENT;
        xqos->first_error = FIRST_ERROR;
        return XQOS_OK;
    }
    return XQOS_ERR_NO_EXTENSION;
}

/* ---- a request and its answer ------------------------------------------------------------------------------ */

/* The offset of the client in a request; 0 if the request has no client. */
static size_t client_at(uint8_t opcode)
{
    switch (opcode) {
    case XQOS_REQUEST_GET_RESERVATION:
    case XQOS_REQUEST_MARK_EXPOSING: return 4;
    case XQOS_REQUEST_SET:
    case XQOS_REQUEST_CLEAR:
    case XQOS_REQUEST_CHECK_ADMISSION: return 8;
    default: return 0;
    }
}

static int send_request(const struct xqos *xqos, int descriptor, uint8_t opcode, void *request, size_t bytes)
{
    struct wire_header header = { .minor_opcode = opcode, .length = (uint16_t)(bytes / 4) };
    char *client = (char *)request + client_at(opcode);

    memcpy(request, &header, sizeof header);
    /* On the socket, 0 means no client, so name the client of the X connection instead. */
    if (client != request && memcmp(client, &(uint32_t) { XQOS_SELF }, sizeof xqos->own) == 0)
        memcpy(client, &xqos->own, sizeof xqos->own);
    /* The buffer is empty and the request has at most 48 bytes, so all of it is sent, or nothing. */
    return send(descriptor, request, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* If only a part arrives, the connection is shut down, because nothing after it could be told apart. */
static int receive_all(int descriptor, void *to, size_t bytes)
{
    char *at = to;

    while (bytes > 0) {
        ssize_t received = recv(descriptor, at, bytes, 0);

        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0) {
            if (at != to)
                shutdown(descriptor, SHUT_RDWR);
            return 0;
        }
        at += received;
        bytes -= (size_t)received;
    }
    return 1;
}

/* Reads the next answer, and skips events. The caller must free it. */
static int receive_one(int descriptor, struct wire_reply **out)
{
    unsigned char record[RECORD_BYTES];
    struct wire_reply head;
    size_t more;
    int result;

    do {
        if (!receive_all(descriptor, record, sizeof record))
            return XQOS_ERR_CONNECTION;
    } while (record[0] == EVENT);
    memcpy(&head, record, sizeof head);
    /* An error has its value where a reply has its length. */
    more = head.type == 0 ? 0 : 4 * (size_t)head.length;
    *out = more > MAX_REPLY_BYTES ? NULL : malloc(sizeof record + more);
    if (*out) {
        memcpy(*out, record, sizeof record);
        if (receive_all(descriptor, (char *)*out + sizeof record, more))
            return XQOS_OK;
        result = XQOS_ERR_CONNECTION;
    } else {
        result = more > MAX_REPLY_BYTES ? XQOS_ERR_LENGTH : XQOS_ERR_MEMORY;
    }
    free(*out);
    *out = NULL;
    shutdown(descriptor, SHUT_RDWR);
    return result;
}

/* Reads the answer to the last request. *late counts the earlier requests whose answers have not arrived in time: they
 * arrive first. */
static int receive_answer(int descriptor, unsigned int *late, struct wire_reply **out)
{
    int result;

    while ((result = receive_one(descriptor, out)) == XQOS_OK && *late > 0) {
        free(*out);
        *out = NULL;
        (*late)--;
    }
    if (result != XQOS_OK)
        (*late)++;
    return result;
}

static int ask_over(const struct xqos *xqos, int descriptor, unsigned int *late, uint8_t opcode, void *request,
                    size_t bytes, struct wire_reply **out)
{
    if (!send_request(xqos, descriptor, opcode, request, bytes))
        return XQOS_ERR_CONNECTION;
    return receive_answer(descriptor, late, out);
}

int xqos_socket_ask(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, struct wire_reply **out)
{
    int result, descriptor = atomic_load(&xqos->requests);
    unsigned int late = 0;

    *out = NULL;
    if (xcb_connection_has_error(xqos->connection))
        return XQOS_ERR_CONNECTION;
    /* The server would also send the events over this connection, from which nobody would read them. */
    if (descriptor >= 0 && opcode != XQOS_REQUEST_SELECT_EVENTS) {
        pthread_mutex_lock(&xqos->requests_lock);
        result = ask_over(xqos, descriptor, &xqos->late, opcode, request, bytes, out);
        pthread_mutex_unlock(&xqos->requests_lock);
        return result;
    }
    descriptor = connect_to(xqos);
    if (descriptor < 0)
        return XQOS_ERR_CONNECTION;
    result = ask_over(xqos, descriptor, &late, opcode, request, bytes, out);
    close(descriptor);
    return result;
}

/* ---- events ------------------------------------------------------------------------------------------------ */

/* Returns a lasting connection, which the first thread that needs it opens, or -1 if the server has exited. */
static int lasting_connection(struct xqos *xqos, _Atomic int *place)
{
    int none = -1, descriptor = atomic_load(place);

    if (descriptor >= 0)
        return descriptor;
    descriptor = connect_to(xqos);
    if (descriptor < 0 || atomic_compare_exchange_strong(place, &none, descriptor))
        return descriptor;
    close(descriptor);
    return none;
}

int xqos_socket_hold(struct xqos *xqos)
{
    return lasting_connection(xqos, &xqos->requests) < 0 ? XQOS_ERR_CONNECTION : XQOS_OK;
}

int xqos_socket_select(struct xqos *xqos, uint32_t mask)
{
    uint32_t request[] = { 0, mask };
    int descriptor = lasting_connection(xqos, &xqos->events);

    if (descriptor < 0 || !send_request(xqos, descriptor, XQOS_REQUEST_SELECT_EVENTS, request, sizeof request))
        return XQOS_ERR_CONNECTION;
    return XQOS_OK;
}

int xqos_socket_next(const struct xqos *xqos, unsigned char *out)
{
    int descriptor = atomic_load(&xqos->events);

    while (descriptor >= 0) {
        ssize_t received = recv(descriptor, out, WIRE_EVENT_BYTES, MSG_PEEK | MSG_DONTWAIT);

        if (received < 0 && errno == EINTR)
            continue;
        if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (received <= 0)
            return XQOS_ERR_CONNECTION;
        /* The rest of the event has not arrived yet. */
        if (received < WIRE_EVENT_BYTES)
            return 0;
        if (!receive_all(descriptor, out, WIRE_EVENT_BYTES))
            return XQOS_ERR_CONNECTION;
        /* Any other record answers SelectEvents, whose mask was checked before. */
        if (out[0] == EVENT)
            return 1;
    }
    return 0;
}

void xqos_socket_close(struct xqos *xqos)
{
    _Atomic int *places[] = { &xqos->events, &xqos->requests };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int descriptor = atomic_exchange(places[i], -1);

        if (descriptor >= 0)
            close(descriptor);
    }
}
