/* settings.c: what is set for a client and for its group, and who is told to have set it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wire.h"

_Static_assert(sizeof(struct xqos_groups) == 16, "layout of 1.1");
_Static_assert(sizeof((struct wire_named *)0)->name == XQOS_NAME_BYTES, "the wire's names");

int xqos_set_client_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths)
{
    struct wire_two request = { .first = client, .second = weight_hundredths };

    return xqos_perform(xqos, WIRE_SET_CLIENT_WEIGHT, &request, sizeof request, NULL);
}

int xqos_set_client_priority(xqos_t *xqos, uint32_t client, int32_t priority)
{
    struct wire_two request = { .first = client, .second = (uint32_t)priority };

    return xqos_perform(xqos, WIRE_SET_CLIENT_PRIORITY, &request, sizeof request, NULL);
}

int xqos_set_client_pacing(xqos_t *xqos, uint32_t client, uint32_t pacing)
{
    struct wire_set_pacing request = { .client = client, .pacing = (uint8_t)pacing };

    /* The wire has a byte for it: a larger number must not become another by losing its upper bits. */
    if (xqos && pacing > UINT8_MAX)
        return XQOS_ERR_VALUE;
    return xqos_perform(xqos, WIRE_SET_CLIENT_PACING, &request, sizeof request, NULL);
}

/* Fills a name in; 0 where it is too long. Null is empty. */
static int put_name(char to[XQOS_NAME_BYTES], const char *name)
{
    size_t bytes = name ? strlen(name) : 0;

    if (bytes >= XQOS_NAME_BYTES)
        return 0;
    memset(to, 0, XQOS_NAME_BYTES);
    if (bytes > 0)
        memcpy(to, name, bytes);
    return 1;
}

int xqos_set_origin(xqos_t *xqos, const char *name, uint32_t lease)
{
    struct wire_named request = { 0 };
    uint8_t flag = (uint8_t)lease;
    int result = XQOS_OK;

    if (!xqos || !put_name(request.name, name))
        return XQOS_ERR_ARGUMENT;
    if (lease > 1)
        return XQOS_ERR_VALUE;
    memcpy(&request.first, &flag, sizeof flag);
    if (xqos_is_below(xqos))
        result = xqos_socket_keep(xqos);
    return result == XQOS_OK ? xqos_perform(xqos, WIRE_SET_ORIGIN, &request, sizeof request, NULL) : result;
}

int xqos_set_client_group(xqos_t *xqos, uint32_t client, const char *name)
{
    struct wire_named request = { .first = client };

    if (!xqos || !put_name(request.name, name))
        return XQOS_ERR_ARGUMENT;
    return xqos_perform(xqos, WIRE_SET_CLIENT_GROUP, &request, sizeof request, NULL);
}

int xqos_set_group_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths)
{
    struct wire_two request = { .first = client, .second = weight_hundredths };

    return xqos_perform(xqos, WIRE_SET_GROUP_WEIGHT, &request, sizeof request, NULL);
}

int xqos_set_group_cap(xqos_t *xqos, uint32_t client, uint32_t cap_ppm)
{
    struct wire_two request = { .first = client, .second = cap_ppm };

    return xqos_perform(xqos, WIRE_SET_GROUP_CAP, &request, sizeof request, NULL);
}

int xqos_set_group_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                               struct xqos_admission *refused)
{
    struct wire_reserve request = { .client = client, .budget_us = budget_us, .period_us = period_us, .flags = flags };
    struct xqos_admission admission = { 0 };
    int result;

    if (refused && !xqos_has_room(refused, sizeof *refused))
        return XQOS_ERR_ARGUMENT;
    result = xqos_perform(xqos, WIRE_SET_GROUP_RESERVATION, &request, sizeof request, &admission.failing_client);
    /* CheckAdmission asks for a client, not for its group: nothing more can be told. */
    if (result == XQOS_ERR_ADMISSION && refused)
        xqos_fill(refused, &admission, sizeof admission);
    return result;
}

int xqos_clear_group_reservation(xqos_t *xqos, uint32_t client)
{
    struct wire_one request = { .first = client };

    return xqos_perform(xqos, WIRE_CLEAR_GROUP_RESERVATION, &request, sizeof request, NULL);
}

int xqos_set_groups(xqos_t *xqos, uint32_t grouping, uint32_t user_limit_ppm)
{
    struct wire_set_groups request = { .grouping = (uint8_t)grouping, .user_limit_ppm = user_limit_ppm };

    if (xqos && grouping > UINT8_MAX)
        return XQOS_ERR_VALUE;
    return xqos_perform(xqos, WIRE_SET_GROUPS, &request, sizeof request, NULL);
}

int xqos_get_groups(xqos_t *xqos, struct xqos_groups *out)
{
    struct wire_plain request = { 0 };
    struct wire_groups *reply;
    struct xqos_groups groups;
    int result;

    if (!xqos_has_room(out, sizeof *out))
        return XQOS_ERR_ARGUMENT;
    result = xqos_receive(xqos, WIRE_GET_GROUPS, &request, sizeof request, sizeof *reply, &reply);
    if (result != XQOS_OK)
        return result;
    groups = (struct xqos_groups) {
        .grouping = reply->header.data,
        .user_limit_ppm = reply->user_limit_ppm,
        .groups = reply->groups,
    };
    free(reply);
    xqos_fill(out, &groups, sizeof groups);
    return XQOS_OK;
}
