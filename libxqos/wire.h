/* SPDX-License-Identifier: MIT */
/* wire.h: the headers of requests and replies. The rest of each message is in xqosproto.h.
 *
 * Private to the library. XCB uses the byte order of the machine, so these structures are the wire format. A request is
 * an array of words; XCB fills in the first, which is the header.
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
    /* The entries follow, entry_bytes apart. */
};
_Static_assert(sizeof(struct wire_client_list) == 32, "as on the wire");

/* Size of an event. */
enum { WIRE_EVENT_BYTES = 32 };

#endif
