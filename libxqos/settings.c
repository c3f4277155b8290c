/* SPDX-License-Identifier: MIT */
/* settings.c: functions that send the request to change a setting of a client, a group or the server, and the admission
 * test.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xqos.h"

#include <string.h>

#include "context.h"
#include "wire.h"

/* The request that changes a setting: subject, setting, and room for the longest value. */
struct set {
    uint32_t header;
    uint32_t subject;
    uint32_t client;
    uint32_t setting;
    union {
        uint32_t words[8];
        char name[XQOS_NAME_BYTES];
    } value;
};

static int set(xqos_t *xqos, struct set request, uint32_t *value)
{
    return xqos_perform(xqos, XQOS_REQUEST_SET, &request, sizeof request, value);
}

static int set_number(xqos_t *xqos, uint32_t subject, uint32_t client, uint32_t setting, uint32_t number)
{
    return set(xqos, (struct set) { 0, subject, client, setting, { { number } } }, NULL);
}

static int clear(xqos_t *xqos, uint32_t subject, uint32_t client, uint32_t setting)
{
    uint32_t request[] = { 0, subject, client, setting };

    return xqos_perform(xqos, XQOS_REQUEST_CLEAR, request, sizeof request, NULL);
}

/* Copies a name. Returns 0 if it is too long. Null means empty. */
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

/* ---- reservations ------------------------------------------------------------------------------------------ */

static int check(xqos_t *xqos, uint32_t subject, uint32_t client, const uint32_t reservation[3],
                 struct xqos_admission *out)
{
    uint32_t request[] = { 0, subject, client, reservation[0], reservation[1], reservation[2] };

    return xqos_ask(xqos, XQOS_REQUEST_CHECK_ADMISSION, request, sizeof request, out, sizeof *out);
}

/* If the request is refused, a second request asks for the failing term. If the test would now pass, only the failing
 * client is known. */
static int reserve(xqos_t *xqos, uint32_t subject, uint32_t client, const uint32_t reservation[3],
                   struct xqos_admission *refused)
{
    struct set request = { 0, subject, client, XQOS_SETTING_RESERVATION, { { reservation[0], reservation[1], reservation[2] } } };
    struct xqos_admission term = { .size = sizeof term };
    uint32_t failing;
    int result;

    if (refused && !xqos_has_room(refused, sizeof *refused))
        return XQOS_ERR_ARGUMENT;
    result = set(xqos, request, &failing);
    if (result != XQOS_ERR_ADMISSION || !refused)
        return result;
    if (check(xqos, subject, client, reservation, &term) != XQOS_OK || term.admitted)
        term = (struct xqos_admission) { .failing_client = failing };
    xqos_fill(refused, &term, sizeof term);
    return result;
}

int xqos_set_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                         struct xqos_admission *refused)
{
    uint32_t reservation[] = { budget_us, period_us, flags };

    return reserve(xqos, XQOS_SUBJECT_CLIENT, client, reservation, refused);
}

int xqos_set_group_reservation(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                               struct xqos_admission *refused)
{
    uint32_t reservation[] = { budget_us, period_us, flags };

    return reserve(xqos, XQOS_SUBJECT_GROUP, client, reservation, refused);
}

int xqos_check_admission(xqos_t *xqos, uint32_t client, uint32_t budget_us, uint32_t period_us, uint32_t flags,
                         struct xqos_admission *out)
{
    uint32_t reservation[] = { budget_us, period_us, flags };

    return check(xqos, XQOS_SUBJECT_CLIENT, client, reservation, out);
}

int xqos_get_reservation(xqos_t *xqos, uint32_t client, struct xqos_reservation *out)
{
    uint32_t request[] = { 0, client };
    int result = xqos_ask(xqos, XQOS_REQUEST_GET_RESERVATION, request, sizeof request, out, sizeof *out);

    if (result == XQOS_OK && !out->active)
        *out = (struct xqos_reservation) { .size = out->size };
    return result;
}

int xqos_clear_reservation(xqos_t *xqos, uint32_t client)
{
    return clear(xqos, XQOS_SUBJECT_CLIENT, client, XQOS_SETTING_RESERVATION);
}

int xqos_clear_group_reservation(xqos_t *xqos, uint32_t client)
{
    return clear(xqos, XQOS_SUBJECT_GROUP, client, XQOS_SETTING_RESERVATION);
}

/* ---- other settings ---------------------------------------------------------------------------------------- */

int xqos_set_client_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths)
{
    return set_number(xqos, XQOS_SUBJECT_CLIENT, client, XQOS_SETTING_WEIGHT, weight_hundredths);
}

int xqos_set_client_priority(xqos_t *xqos, uint32_t client, int32_t priority)
{
    return set_number(xqos, XQOS_SUBJECT_CLIENT, client, XQOS_SETTING_PRIORITY, (uint32_t)priority);
}

int xqos_set_client_slice(xqos_t *xqos, uint32_t client, uint32_t slice_us)
{
    return set_number(xqos, XQOS_SUBJECT_CLIENT, client, XQOS_SETTING_SLICE, slice_us);
}

int xqos_set_client_pacing(xqos_t *xqos, uint32_t client, uint32_t pacing)
{
    return set_number(xqos, XQOS_SUBJECT_CLIENT, client, XQOS_SETTING_PACED, pacing);
}

int xqos_mark_exposing(xqos_t *xqos, uint32_t client)
{
    uint32_t request[] = { 0, client };

    return xqos_perform(xqos, XQOS_REQUEST_MARK_EXPOSING, request, sizeof request, NULL);
}

int xqos_set_client_group(xqos_t *xqos, uint32_t client, const char *name)
{
    struct set request = { .subject = XQOS_SUBJECT_CLIENT, .client = client, .setting = XQOS_SETTING_GROUP };

    return put_name(request.value.name, name) ? set(xqos, request, NULL) : XQOS_ERR_ARGUMENT;
}

int xqos_set_group_weight(xqos_t *xqos, uint32_t client, uint32_t weight_hundredths)
{
    return set_number(xqos, XQOS_SUBJECT_GROUP, client, XQOS_SETTING_WEIGHT, weight_hundredths);
}

int xqos_set_group_cap(xqos_t *xqos, uint32_t client, uint32_t cap_ppm)
{
    return set_number(xqos, XQOS_SUBJECT_GROUP, client, XQOS_SETTING_CAP, cap_ppm);
}

int xqos_set_groups(xqos_t *xqos, uint32_t grouping, uint32_t user_limit_ppm)
{
    int result = set_number(xqos, XQOS_SUBJECT_SERVER, 0, XQOS_SETTING_USER_LIMIT, user_limit_ppm);

    return result == XQOS_OK ? set_number(xqos, XQOS_SUBJECT_SERVER, 0, XQOS_SETTING_GROUPING, grouping) : result;
}

int xqos_set_origin(xqos_t *xqos, const char *name, uint32_t lease)
{
    struct {
        uint32_t header;
        char name[XQOS_NAME_BYTES];
        uint32_t lease;
    } request = { .lease = lease };
    int result = XQOS_OK;

    if (!xqos || !put_name(request.name, name))
        return XQOS_ERR_ARGUMENT;
    if (xqos_uses_socket(xqos))
        result = xqos_socket_hold(xqos);
    return result == XQOS_OK ? xqos_perform(xqos, XQOS_REQUEST_SET_ORIGIN, &request, sizeof request, NULL) : result;
}
