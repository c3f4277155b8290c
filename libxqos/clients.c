/* SPDX-License-Identifier: MIT */
/* clients.c: the list of clients.
 *
 * Invariant, as in xqos.c: the length of a reply is checked before any of its contents are read. An entry may be
 * longer, but not shorter, than the entry that this library knows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wire.h"

/* In struct xqos_client, the size and padding precede the bytes of the entry. */
enum { ENTRY_AT = 8, ENTRY_BYTES = sizeof(struct xqos_client) - ENTRY_AT };

struct xqos_client_list {
    struct wire_client_list *reply;
    uint32_t next;
    uint32_t own; /* the client to mark as ours, which a server cannot do over the socket; 0: it is marked */
};

/* Returns 1 if the entries fit in the reply and are not shorter than the entries that this library knows. */
static int entries_fit(const struct wire_client_list *reply)
{
    return reply->count == 0
        || (reply->entry_bytes >= ENTRY_BYTES
            && xqos_bytes_behind(&reply->header, sizeof *reply) / reply->entry_bytes >= reply->count);
}

int xqos_list_clients(xqos_t *xqos, xqos_client_list_t **out)
{
    uint32_t request[1] = { 0 };
    struct wire_client_list *reply;
    int result;

    if (!out)
        return XQOS_ERR_ARGUMENT;
    *out = NULL;
    result = xqos_receive(xqos, XQOS_REQUEST_LIST_CLIENTS, request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    if (entries_fit(reply))
        *out = malloc(sizeof **out);
    else
        result = XQOS_ERR_LENGTH;
    if (!*out) {
        free(reply);
        return result == XQOS_OK ? XQOS_ERR_MEMORY : result;
    }
    **out = (xqos_client_list_t) { .reply = reply, .own = xqos->own };
    return XQOS_OK;
}

uint32_t xqos_client_list_count(const xqos_client_list_t *list)
{
    return list ? list->reply->count : 0;
}

uint64_t xqos_client_list_now_ns(const xqos_client_list_t *list)
{
    return list ? list->reply->now_ns : 0;
}

void xqos_client_list_rewind(xqos_client_list_t *list)
{
    if (list)
        list->next = 0;
}

void xqos_client_list_free(xqos_client_list_t *list)
{
    if (!list)
        return;
    free(list->reply);
    free(list);
}

int xqos_client_list_next(xqos_client_list_t *list, struct xqos_client *out)
{
    struct xqos_client client = { 0 };
    const char *entries;

    if (!list || !xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    if (list->next >= list->reply->count)
        return 0;
    entries = (const char *)(list->reply + 1);
    memcpy((char *)&client + ENTRY_AT, entries + (size_t)list->next++ * list->reply->entry_bytes, ENTRY_BYTES);
    /* Names end with 0 on the wire. Set the 0 again, so as not to rely on the server. */
    client.name[sizeof client.name - 1] = client.host[sizeof client.host - 1] = 0;
    client.group_name[XQOS_NAME_BYTES - 1] = 0;
    client.reservation_origin[XQOS_NAME_BYTES - 1] = client.settings_origin[XQOS_NAME_BYTES - 1] = 0;
    if (list->own && client.client == list->own)
        client.flags |= XQOS_CLIENT_YOU;
    xqos_fill(out, &client, sizeof client);
    return 1;
}
