/* sized.c: helpers for structures that begin with their size.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "context.h"
#include "wire.h"

int xqos_has_room(const void *sized, size_t least)
{
    uint32_t size;

    if (!sized)
        return 0;
    memcpy(&size, sized, sizeof size);
    return size >= least;
}

void xqos_fill(void *out, const void *ours, size_t bytes)
{
    uint32_t size;
    size_t common;

    memcpy(&size, out, sizeof size);
    common = size < bytes ? size : bytes;
    memcpy((char *)out + sizeof size, (const char *)ours + sizeof size, common - sizeof size);
    memset((char *)out + common, 0, size - common);
}

uint64_t xqos_bytes_behind(const struct wire_reply *reply, size_t fixed)
{
    return 32 + 4 * (uint64_t)reply->length - fixed;
}
