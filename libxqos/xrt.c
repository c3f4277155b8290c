/* SPDX-License-Identifier: MIT */
/* xrt.c: the three calls of the RTAS 2008 paper, and one for groups, on an Xlib display.
 *
 * There is no state per display: XCB caches the extension, so each call attaches again at no cost.
 *
 * SPDX-License-Identifier: MIT
 */
#include "xrt.h"

#include <string.h>

#include <X11/Xlib-xcb.h>

#include "context.h"

/* Programs are compiled with this layout: new fields must come out of rt_reserved. */
_Static_assert(sizeof(RTProperty) == 64, "the layout that programs know");

static int attach(struct xqos *xqos, Display *display)
{
    return display ? xqos_attach(xqos, XGetXCBConnection(display)) : XQOS_ERR_ARGUMENT;
}

int XRTInitialize(Display *display, RTProperty *rt)
{
    struct xqos xqos;
    int result;

    if (!rt)
        return XQOS_ERR_ARGUMENT;
    memset(rt, 0, sizeof *rt);
    result = attach(&xqos, display);
    return result == XQOS_OK ? xqos_check_version(&xqos) : result;
}

static int reserved_is_zero(const RTProperty *rt)
{
    static const RTProperty zero;

    return memcmp(rt->rt_reserved, zero.rt_reserved, sizeof zero.rt_reserved) == 0;
}

static uint32_t flags_of(const RTProperty *rt)
{
    if (rt->rt_hard)
        return XQOS_RESERVATION_HARD;
    return rt->rt_best_effort ? 0 : XQOS_RESERVATION_SOFT_PAPER;
}

int RTSetProperty(Display *display, const RTProperty *rt)
{
    struct xqos xqos;
    int result;

    if (!rt || !reserved_is_zero(rt))
        return XQOS_ERR_ARGUMENT;
    if (rt->rt_hard > 1 || rt->rt_best_effort > 1 || (rt->rt_hard && rt->rt_best_effort))
        return XQOS_ERR_VALUE;
    result = attach(&xqos, display);
    if (result != XQOS_OK)
        return result;
    if (rt->rt_period == 0 && rt->rt_maxcapacity == 0)
        return xqos_clear_reservation(&xqos, XQOS_SELF);
    return xqos_set_reservation(&xqos, XQOS_SELF, rt->rt_maxcapacity, rt->rt_period,
                                flags_of(rt), NULL);
}

int RTSetGroup(Display *display, const char *name)
{
    struct xqos xqos;
    int result = attach(&xqos, display);

    return result == XQOS_OK ? xqos_set_client_group(&xqos, XQOS_SELF, name) : result;
}

/* Rounds down, so that a negative budget is never shown as 0. */
static int64_t us_from_ns(int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

int RTGetProperty(Display *display, RTProperty *rt)
{
    struct xqos_reservation reservation = { .size = sizeof reservation };
    struct xqos xqos;
    int result;

    if (!rt)
        return XQOS_ERR_ARGUMENT;
    result = attach(&xqos, display);
    if (result == XQOS_OK)
        result = xqos_get_reservation(&xqos, XQOS_SELF, &reservation);
    if (result != XQOS_OK)
        return result;
    *rt = (RTProperty) {
        .rt_period = reservation.period_us,
        .rt_maxcapacity = reservation.budget_us,
        .rt_capacity = us_from_ns(reservation.budget_left_ns),
        .rt_deadline = reservation.deadline_ns / 1000,
        .rt_hard = (reservation.flags & XQOS_RESERVATION_HARD) != 0,
        .rt_best_effort =
            reservation.active && !(reservation.flags & (XQOS_RESERVATION_HARD | XQOS_RESERVATION_SOFT_PAPER)),
    };
    return XQOS_OK;
}
