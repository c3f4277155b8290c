/* SPDX-License-Identifier: MIT */
/* wire.h: what stands at the head of requests and replies. What follows is xqosproto.h's.
 *
 * Private to the library. XCB speaks the byte order of the machine, so the structures are what travels. A request is words:
 * the first is the header, which XCB fills in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef XQOS_WIRE_H
#define XQOS_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct wire_header {
    uint8_t major_opcode;
    uint8_t minor_opcode;
    uint16_t length;
};

struct wire_reply {
    uint8_t type;
    uint8_t data;
    uint16_t sequence;
    uint32_t length; /* words after the first 32 bytes */
};

struct wire_client_list {
    struct wire_reply header;
    uint32_t count;
    uint32_t entry_bytes;
    uint64_t now_ns;
    uint64_t server_cpu_ns;
    /* the entries follow, entry_bytes apart */
};
_Static_assert(sizeof(struct wire_client_list) == 32, "as on the wire");

/* An event, as it comes. */
enum { WIRE_EVENT_BYTES = 32 };

#endif
