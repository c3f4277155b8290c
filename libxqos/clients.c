/* SPDX-License-Identifier: MIT */
/* clients.c: the list of clients.
 *
 * The invariant is that of xqos.c: no byte of a reply is read before the reply's length has been compared with what it
 * must hold. An entry may be longer than this library knows, never shorter.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wire.h"

/* The layout that programs are compiled with: it may only grow. */
enum { CLIENT_BYTES_1_0 = 184 };
_Static_assert(offsetof(struct xqos_client, grabs) == CLIENT_BYTES_1_0, "layout of 1.0");
_Static_assert(offsetof(struct xqos_client, waits) == 344, "layout of the first 1.1");
_Static_assert(sizeof(struct xqos_client) == 400, "layout of 1.1");

struct xqos_client_list {
    struct wire_client_list *reply;
    uint32_t next;
    uint32_t own; /* whose entry is marked here, because the socket does not know; 0: the server has marked it */
};

/* Whether the entries fit in the reply. They may be longer than this library knows, never shorter. */
static int entries_fit(const struct wire_client_list *reply)
{
    return reply->count == 0
        || (reply->entry_bytes >= WIRE_CLIENT_BYTES_1_0
            && xqos_bytes_behind(&reply->header, sizeof *reply) / reply->entry_bytes >= reply->count);
}

int xqos_list_clients(xqos_t *xqos, xqos_client_list_t **out)
{
    struct wire_plain request = { 0 };
    struct wire_client_list *reply;
    int result;

    if (!out)
        return XQOS_ERR_ARGUMENT;
    *out = NULL;
    result = xqos_receive(xqos, WIRE_LIST_CLIENTS, &request, sizeof request, sizeof *reply, &reply);
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

static struct xqos_client client_from(const struct wire_client *entry)
{
    struct xqos_client client = {
        .client = entry->client,
        .pid = entry->pid,
        .uid = entry->uid,
        .sync_priority = entry->sync_priority,
        .weight = entry->weight,
        .fixed_priority = entry->fixed_priority,
        .flags = entry->flags,
        .budget_us = entry->budget_us,
        .period_us = entry->period_us,
        .depletions = entry->depletions,
        .misses = entry->misses,
        .longest_request_major = entry->longest_request & 0xffff,
        .longest_request_minor = entry->longest_request >> 16,
        .budget_left_ns = entry->budget_left_ns,
        .deadline_ns = entry->deadline_ns,
        .server_time_ns = entry->server_time_ns,
        .reserved_time_ns = entry->reserved_time_ns,
        .requests = entry->requests,
        .slices = entry->slices,
        .waited_ns = entry->waited_ns,
        .longest_wait_ns = entry->longest_wait_ns,
        .longest_request_ns = entry->longest_request_ns,
        .connected_ns = entry->connected_ns,
        .grabbed_ns = entry->grabbed_ns,
        .grabs = entry->grabs,
        .group = entry->group,
        .group_weight = entry->group_weight,
        .group_cap_ppm = entry->group_cap_ppm,
        .long_grabs = entry->long_grabs,
        .group_budget_us = entry->group_budget_us,
        .group_period_us = entry->group_period_us,
        .charged_ns = entry->charged_ns,
    };

    /* The wire's 32 bytes need not end with 0; these 40 do. */
    memcpy(client.name, entry->name, sizeof entry->name);
    /* These end with 0 on the wire too; what follows keeps that promise for the server. */
    memcpy(client.group_name, entry->group_name, sizeof client.group_name - 1);
    memcpy(client.reservation_origin, entry->reservation_origin, sizeof client.reservation_origin - 1);
    memcpy(client.settings_origin, entry->settings_origin, sizeof client.settings_origin - 1);
    memcpy(client.host, entry->host, sizeof client.host - 1);
    memcpy(client.waits, entry->waits, sizeof client.waits);
    return client;
}

int xqos_client_list_next(xqos_client_list_t *list, struct xqos_client *out)
{
    struct wire_client entry = { 0 };
    struct xqos_client client;
    const char *entries;
    size_t known;

    if (!list || !xqos_has_room(out, CLIENT_BYTES_1_0))
        return XQOS_ERR_ARGUMENT;
    if (list->next >= list->reply->count)
        return 0;
    /* Copied, because a later version's entry_bytes need not keep the alignment. */
    entries = (const char *)(list->reply + 1);
    known = list->reply->entry_bytes < sizeof entry ? list->reply->entry_bytes : sizeof entry;
    memcpy(&entry, entries + (size_t)list->next * list->reply->entry_bytes, known);
    list->next++;
    client = client_from(&entry);
    if (list->own && client.client == list->own)
        client.flags |= XQOS_CLIENT_YOU;
    xqos_fill(out, &client, sizeof client);
    return 1;
}
