/* SPDX-License-Identifier: MIT */
/* mock.h: a small X server in a thread, for tests of the bytes that the library sends and reads.
 *
 * The mock performs the connection handshake, reports the XQOS extension if the test wants it, and answers each XQOS
 * request with the next answer that the test has queued. Of the core protocol, it implements only what XCB and
 * XOpenDisplay need. It keeps the received requests for the test to compare. Its byte order is the machine's. */
#ifndef XQOS_MOCK_H
#define XQOS_MOCK_H

#include <stddef.h>
#include <stdint.h>

#include <xcb/xcb.h>

enum {
    MOCK_OPCODE = 140,
    MOCK_FIRST_EVENT = 90,
    MOCK_FIRST_ERROR = 150,
    MOCK_RESOURCE_BASE = 0x400000
};

struct mock;

/* has_extension is 0 for a server without xqos. major is the version in the reply to QueryVersion. */
struct mock *mock_start(int has_extension, uint32_t major);

/* Connects a client through a pair of sockets. */
xcb_connection_t *mock_connect(struct mock *mock);

/* Returns a display name with which clients can connect to the mock. */
const char *mock_display(struct mock *mock);

/* Queue the answer to the next XQOS request; the mock fills in the sequence number. If the queue is empty, a request
 * gets no answer, as if it had neither a reply nor an error. */
void mock_answer(struct mock *mock, const void *reply, size_t bytes);
void mock_answer_error(struct mock *mock, uint8_t code, uint32_t value);
void mock_answer_nothing(struct mock *mock);
void mock_hang_up(struct mock *mock);

/* Sends an event of 32 bytes before the answer to the next XQOS request. */
void mock_send_event(struct mock *mock, const void *event);

/* Returns the XQOS request number `index` since the last mock_forget, not counting QueryVersion, or null. */
const uint8_t *mock_seen(struct mock *mock, int index, size_t *bytes);
void mock_forget(struct mock *mock);

/* Ends the thread. The client must have disconnected. */
void mock_stop(struct mock *mock);

#endif
