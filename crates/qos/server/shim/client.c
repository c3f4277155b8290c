/* SPDX-License-Identifier: MIT */
/*
 * Accessors for the server's structures; see client.h. xorg-server.h must be included first. Without it, dixstruct.h
 * lays out the client record differently, which the assertions below would catch.
 */
#include <xorg-server.h>
#include <X11/X.h>
#include <X11/Xproto.h>
#include <X11/extensions/XI2.h>
#include <X11/extensions/XI2proto.h>
#include "misc.h"
#include "os.h"
#include "dixstruct.h"
#include "dix.h"
#include "selection.h"
#include "windowstr.h"
#include "inputstr.h"
#include <stddef.h>

#include "client.h"

#if defined(__x86_64__) || defined(__aarch64__)
_Static_assert(offsetof(ClientRec, ready) == 16, "client record: ready");
_Static_assert(offsetof(ClientRec, priority) == 60, "client record: priority");
_Static_assert(offsetof(ClientRec, requestVector) == 96, "client record: requestVector");
#endif
_Static_assert(sizeof(struct xorg_list) == sizeof(struct xqos_ring), "a ring node is two pointers");

int xqos_client_index(const void *client)
{
    return ((const ClientRec *) client)->index;
}

uint32_t xqos_client_base(const void *client)
{
    return (uint32_t) ((const ClientRec *) client)->clientAsMask;
}

uint32_t xqos_client_sequence(const void *client)
{
    return (uint32_t) ((const ClientRec *) client)->sequence;
}

uint32_t xqos_client_last_request(const void *client)
{
    const ClientRec *record = client;

    return record->majorOp | (uint32_t) record->minorOp << 16;
}

bool xqos_client_swapped(const void *client)
{
    return ((const ClientRec *) client)->swapped;
}

bool xqos_client_gone(const void *client)
{
    const ClientRec *record = client;

    return record->clientGone || record->osPrivate == NULL;
}

int xqos_client_state(const void *client)
{
    return ((const ClientRec *) client)->clientState;
}

int xqos_client_priority(const void *client)
{
    return ((const ClientRec *) client)->priority;
}

void xqos_client_set_priority(void *client, int priority)
{
    ((ClientRec *) client)->priority = priority;
}

const void *xqos_client_request(const void *client)
{
    return ((const ClientRec *) client)->requestBuffer;
}

uint32_t xqos_client_request_bytes(const void *client)
{
    return ((const ClientRec *) client)->req_len << 2;
}

void xqos_client_head(const void *client, struct xqos_head *head)
{
    const ClientRec *record = client;

    head->index = (uint32_t) record->index;
    head->sequence = (uint32_t) record->sequence;
    head->request = record->majorOp | (uint32_t) record->minorOp << 16;
    head->bytes = record->req_len << 2;
    head->swapped = record->swapped;
}

void xqos_client_set_error_value(void *client, uint32_t value)
{
    ((ClientRec *) client)->errorValue = value;
}

const void *xqos_client_request_vector(const void *client)
{
    return ((const ClientRec *) client)->requestVector;
}

struct xqos_ring *xqos_client_ring(void *client)
{
    return (struct xqos_ring *) &((ClientRec *) client)->ready;
}

void *xqos_ring_client(struct xqos_ring *node)
{
    return (char *) node - offsetof(ClientRec, ready);
}

void *xqos_state_client(void *info)
{
    return ((NewClientInfoRec *) info)->client;
}

void *xqos_grab_client(void *info)
{
    return ((ServerGrabInfoRec *) info)->client;
}

int xqos_grab_state(void *info)
{
    switch (((ServerGrabInfoRec *) info)->grabstate) {
    case SERVER_GRABBED:
        return 1;
    case SERVER_UNGRABBED:
        return 0;
    default:
        return -1;
    }
}

void *xqos_event_client(void *info)
{
    return ((EventInfoRec *) info)->client;
}

int xqos_event_kind(void *info, int xinput_opcode)
{
    const EventInfoRec *delivered = info;
    const xEvent *event = delivered->events;
    int i;

    for (i = 0; i < delivered->count; i++, event++) {
        int type = event->u.u.type & 0x7f;

        if (type >= KeyPress && type <= LeaveNotify)
            return 1;
        if (type == Expose || type == GraphicsExpose)
            return 2;
        if (type == GenericEvent) {
            const xXIGenericDeviceEvent *generic = (const xXIGenericDeviceEvent *) event;

            if (generic->extension == xinput_opcode && generic->evtype >= XI_KeyPress &&
                generic->evtype <= XI_LASTEVENT)
                return 1;
            /* A long event occupies more elements than `count` says. */
            return 0;
        }
    }
    return 0;
}

uint32_t xqos_selection_atom(void *info)
{
    return ((SelectionInfoRec *) info)->selection->selection;
}

void *xqos_selection_owner(void *info)
{
    const SelectionInfoRec *change = info;

    /* The server sends the other two kinds of notification before it removes the owner. */
    return change->kind == SelectionSetOwner ? change->selection->client : NULL;
}

uint32_t xqos_setup_root(const void *setup, int screen)
{
    const xConnSetup *fixed = setup;
    const char *at = (const char *) (fixed + 1) + ((fixed->nbytesVendor + 3) & ~3u);
    int i, depth;

    at += fixed->numFormats * sz_xPixmapFormat;
    if (screen < 0 || screen >= fixed->numRoots)
        return 0;
    for (i = 0; i < screen; i++) {
        int depths = ((const xWindowRoot *) at)->nDepths;

        at += sz_xWindowRoot;
        for (depth = 0; depth < depths; depth++)
            at += sz_xDepth + ((const xDepth *) at)->nVisuals * sz_xVisualType;
    }
    return ((const xWindowRoot *) at)->windowId;
}

uint32_t xqos_redirector(const void *root, uint32_t id)
{
    const WindowRec *window = root;
    const OtherClients *selected;

    if (window->drawable.id != id || window->parent || !window->optional)
        return 0;
    for (selected = window->optional->otherClients; selected; selected = selected->next) {
        if (selected->mask & SubstructureRedirectMask)
            return selected->resource;
    }
    return 0;
}

const char *xqos_setup_vendor(const void *setup, uint32_t *length, uint32_t *release)
{
    const xConnSetup *fixed = setup;

    *length = fixed->nbytesVendor;
    *release = fixed->release;
    return (const char *) (fixed + 1);
}

uint32_t xqos_device_grab(const void *input, int of_keyboard)
{
    const InputInfo *info = input;
    const DeviceIntRec *device = of_keyboard ? info->keyboard : info->pointer;

    return device && device->deviceGrab.grab ? device->deviceGrab.grab->resource : 0;
}
