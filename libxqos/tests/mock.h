/* SPDX-License-Identifier: MIT */
/* mock.h: a small X server in a thread, for tests of the bytes that the library sends and reads.
 *
 * It does the connection's handshake, says that it has XQOS (or not), and answers each XQOS request with what the
 * test put into its queue beforehand; of the core protocol it knows just what XCB and XOpenDisplay need. The requests
 * it saw are kept for the test to compare. It speaks the machine's byte order, as a client on that machine does.
 */
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

/* has_extension 0: a stock server. major: the version answered to QueryVersion. */
struct mock *mock_start(int has_extension, uint32_t major);

/* A client of it over a pair of sockets. */
xcb_connection_t *mock_connect(struct mock *mock);

/* The name to open it as a display. */
const char *mock_display(struct mock *mock);

/* What the next XQOS request gets; several may wait in the queue, each for one request. A request that finds the
 * queue empty gets no answer, as one that has no reply and no error. The sequence number is filled in. */
void mock_answer(struct mock *mock, const void *reply, size_t bytes);
void mock_answer_error(struct mock *mock, uint8_t code, uint32_t value);
void mock_answer_nothing(struct mock *mock);
void mock_hang_up(struct mock *mock);

/* An event of 32 bytes, sent when the next XQOS request has arrived, before its answer. */
void mock_send_event(struct mock *mock, const void *event);

/* The XQOS request number `index` since the last mock_forget, without QueryVersion; null where there is none. */
const uint8_t *mock_seen(struct mock *mock, int index, size_t *bytes);
void mock_forget(struct mock *mock);

/* Ends the thread; the client must have disconnected. */
void mock_stop(struct mock *mock);

#endif
