/* SPDX-License-Identifier: MIT */
/* context.h: a connection to a server with xqos, and how requests go to it: over the connection where the server has
 * the extension (request.c), over its control socket where it cannot (socket.c).
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
    /* The rest is for a server without the extension; sun_family is 0 for one with it. */
    struct sockaddr_un place;
    uid_t server;      /* whom it runs as */
    uint32_t own;      /* resource base of the connection */
    _Atomic int events; /* the connection that events come on; -1 until some are selected */
    _Atomic int kept;   /* the one that requests go over since an origin was set, one at a time; -1 before */
    pthread_mutex_t turn;
};

static inline int xqos_is_below(const struct xqos *xqos)
{
    return xqos->place.sun_family != 0;
}

/* Fills a context without memory of its own: one look for the extension, which XCB remembers, then for the socket, and
 * no version asked. Errors as xqos_open, without VERSION and MEMORY. */
int xqos_attach(struct xqos *xqos, xcb_connection_t *connection);

/* Sends a request that has no reply, and waits until the server has carried it out or refused it. *value, where wanted,
 * gets the number that came with an X error. */
int xqos_perform(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, uint32_t *value);

/* Sends a request and waits for its reply, which is then the caller's to free and has at least `least` bytes. `reply` points
 * to a pointer to it. */
int xqos_receive(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, size_t least, void *reply);

/* The same, and fills a structure of the caller's from the reply: `known` bytes are what this library knows of it. */
int xqos_ask(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, void *out, size_t known);

/* Fills a context by the control socket of the server at the other end. Error: NO_EXTENSION. */
int xqos_socket_attach(struct xqos *xqos, xcb_connection_t *connection);

/* Sends a request and waits for the answer, which is then the caller's to free: a reply, or an error, which begins
 * with 0 as on an X connection. */
int xqos_socket_ask(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, struct wire_reply **answer);

/* From now on requests go over one connection, which lives as long as the context: what was said of origins holds for a
 * connection. Errors: CONNECTION. */
int xqos_socket_keep(struct xqos *xqos);

/* Selects events on a connection that lives as long as the context; the mask has been checked by the server before. */
int xqos_socket_select(struct xqos *xqos, uint32_t mask);

/* 1: an event has come; 0: none has. */
int xqos_socket_next(const struct xqos *xqos, unsigned char *out);

void xqos_socket_close(struct xqos *xqos);

/* XQOS_OK where the server speaks a version this library can. */
int xqos_check_version(struct xqos *xqos);

/* Whether a structure of the caller is there and has at least these bytes. */
int xqos_has_room(const void *sized, size_t least);

/* Copies ours over the caller's, all but the size: what the caller does not know is left out, what this library does
 * not know is zero. */
void xqos_fill(void *out, const void *ours, size_t bytes);

/* Bytes of a reply behind its fixed part of `fixed` bytes. */
uint64_t xqos_bytes_behind(const struct wire_reply *reply, size_t fixed);

#endif
