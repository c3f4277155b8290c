/* SPDX-License-Identifier: MIT */
/* context.h: a connection to a server with xqos, and the transport of its requests: the X connection if the server has
 * the extension (request.c), otherwise its control socket (socket.c).
 *
 * Private to the library: nothing here is exported.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_CONTEXT_H
#define XQOS_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "xqos.h"

struct wire_reply;

struct xqos {
    xcb_connection_t *connection;
    uint8_t first_event;
    uint8_t first_error;
    /* The fields below are for servers without the extension; with the extension, sun_family is 0. */
    struct sockaddr_un place;
    uid_t server;         /* the server's user */
    uint32_t own;         /* resource base of the connection */
    _Atomic int events;   /* the connection for events; -1 until events are selected */
    _Atomic int requests; /* connection for requests after an origin is set, one request at a time; -1 before */
    pthread_mutex_t requests_lock;
    unsigned int late;    /* answers that have not arrived in time over `requests`; with the lock */
};

static inline int xqos_uses_socket(const struct xqos *xqos)
{
    return xqos->place.sun_family != 0;
}

/* Fills a context without allocating memory. Looks for the extension, which XCB caches, then for the socket. Does not
 * check the version. Returns the errors of xqos_open except VERSION and MEMORY. */
int xqos_attach(struct xqos *xqos, xcb_connection_t *connection);

/* Sends a request that has no reply, and waits until the server has executed or refused it. If value is not null,
 * *value is set to the number in an X error. */
int xqos_perform(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, uint32_t *value);

/* Sends a request and waits for its reply, which has at least `least` bytes. `reply` is the address of a pointer, which
 * is set to the reply; the caller must free it. */
int xqos_receive(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, size_t least, void *reply);

/* Sends a request and fills the caller's structure from the reply; the library knows the first `known` bytes of it. */
int xqos_ask(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, void *out, size_t known);

/* Fills a context for the control socket of the server that the connection leads to. Error: NO_EXTENSION. */
int xqos_socket_attach(struct xqos *xqos, xcb_connection_t *connection);

/* Sends a request and waits for the answer, which the caller must free. The answer is a reply or an error; an error
 * begins with 0, as on an X connection. */
int xqos_socket_ask(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, struct wire_reply **answer);

/* Makes all further requests of the context use one lasting connection, because an origin belongs to a connection.
 * Error: CONNECTION. */
int xqos_socket_hold(struct xqos *xqos);

/* Selects events on a connection that lasts as long as the context. The server must have checked the mask before. */
int xqos_socket_select(struct xqos *xqos, uint32_t mask);

/* Returns 1 if an event has arrived, otherwise 0. */
int xqos_socket_next(const struct xqos *xqos, unsigned char *out);

void xqos_socket_close(struct xqos *xqos);

/* Returns XQOS_OK if this library supports the server's version. */
int xqos_check_version(struct xqos *xqos);

/* Returns 1 if the caller's structure is not null and has at least this size. */
int xqos_has_room(const void *sized, size_t least);

/* Copies our structure over the caller's, except for the size. Fields that the caller does not know are omitted; fields
 * that this library does not know are set to zero. */
void xqos_fill(void *out, const void *ours, size_t bytes);

/* Number of bytes of a reply after its first `fixed` bytes. */
uint64_t xqos_bytes_behind(const struct wire_reply *reply, size_t fixed);

#endif
