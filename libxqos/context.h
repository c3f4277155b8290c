/* context.h: a connection that has the extension, and how requests go over it.
 *
 * Private to the library: nothing here is exported.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_CONTEXT_H
#define XQOS_CONTEXT_H

#include "xqos.h"

struct xqos {
    xcb_connection_t *connection;
    uint8_t first_event;
    uint8_t first_error;
};

/* Fills a context without memory of its own: one look for the extension, which XCB remembers, and no version asked.
 * Errors as xqos_open, without VERSION and MEMORY. */
int xqos_attach(struct xqos *xqos, xcb_connection_t *connection);

/* Sends a request that has no reply, and waits until the server has carried it out or refused it. *value, where wanted,
 * gets the number that came with an X error. */
int xqos_perform(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, uint32_t *value);

/* Sends a request and waits for its reply, which is then the caller's to free and has at least `least` bytes.
 * `reply` points to a pointer to one of the replies of wire.h. */
int xqos_receive(struct xqos *xqos, uint8_t opcode, void *request, size_t bytes, size_t least, void *reply);

/* XQOS_OK where the server speaks a version this library can. */
int xqos_check_version(struct xqos *xqos);

#endif
