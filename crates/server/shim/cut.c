/* SPDX-License-Identifier: MIT */
/* What a request touches, and reading an image in parts; see cut.h. */
#include <xorg-server.h>
#include <string.h>
#include <X11/X.h>
#include <X11/Xproto.h>
#include <X11/extensions/bigreqsproto.h>
#include <X11/extensions/shmproto.h>
#include "misc.h"
#include "os.h"
#include "dixstruct.h"
#include "dix.h"
#include "gcstruct.h"
#include "pixmapstr.h"
#include "windowstr.h"
#include "scrnintstr.h"
#include "servermd.h"
#include "picturestr.h"

#include "cut.h"

typedef int (*look_up_drawable)(DrawablePtr *, XID, ClientPtr, Mask, Mask);
typedef int (*look_up_gc)(GCPtr *, XID, ClientPtr, Mask);
typedef int (*look_up_resource)(void **, XID, RESTYPE, ClientPtr, Mask);
typedef int (*write_to_client)(ClientPtr, int, const void *);
typedef void (*censor_image)(ClientPtr, RegionPtr, long, DrawablePtr, int, int, int, int, unsigned int, char *);

static ClientPtr server_client(const struct xqos_cut_server *server)
{
    return *(ClientPtr *) server->server_client;
}

static void use(const DrawableRec *drawable, struct xqos_used *used)
{
    ScreenPtr screen = drawable->pScreen;

    used->drawable = used->backing = drawable;
    used->is_window = drawable->type == DRAWABLE_WINDOW;
    if (used->is_window) {
        used->backing = screen->GetWindowPixmap((WindowPtr) drawable);
        used->is_redirected = used->backing != screen->GetScreenPixmap(screen);
    }
}

static VisualID visual_of(const DrawableRec *drawable)
{
    const WindowRec *window = (const WindowRec *) drawable;

    if (drawable->type != DRAWABLE_WINDOW)
        return None;
    while (!window->optional)
        window = window->parent;
    return window->optional->visual;
}

static GCPtr context_of(const struct xqos_cut_server *server, uint32_t id)
{
    GCPtr gc;

    return ((look_up_gc) server->look_up_gc)(&gc, id, server_client(server), DixGetAttrAccess) == Success ? gc : NULL;
}

int xqos_use_drawable(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used)
{
    DrawablePtr drawable;
    int found = ((look_up_drawable) server->look_up_drawable)(&drawable, id, server_client(server), M_WINDOW | M_DRAWABLE_PIXMAP, DixGetAttrAccess);

    if (found == Success)
        use(drawable, used);
    return found == Success;
}

int xqos_use_picture(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used)
{
    PicturePtr picture;
    RESTYPE type = server->picture_type;

    if (!type) {
        used->unknown = 1;
        return 1;
    }
    if (((look_up_resource) server->look_up_resource)((void **) &picture, id, type, server_client(server), DixGetAttrAccess) != Success)
        return 0;
    used->unknown = picture->alphaMap != NULL;
    if (picture->pDrawable)
        use(picture->pDrawable, used);
    used->has_inferiors = picture->subWindowMode == IncludeInferiors;
    return 1;
}

int xqos_use_background(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used)
{
    DrawablePtr drawable;
    const WindowRec *window;

    if (((look_up_drawable) server->look_up_drawable)(&drawable, id, server_client(server), M_WINDOW, DixGetAttrAccess) != Success)
        return 0;
    window = (const WindowRec *) drawable;
    used->unknown = window->backgroundState == ParentRelative;
    if (window->backgroundState == BackgroundPixmap)
        use(&window->background.pixmap->drawable, used);
    return 1;
}

int xqos_use_context(const struct xqos_cut_server *server, uint32_t id, struct xqos_context *context)
{
    GCPtr gc = context_of(server, id);

    if (!gc)
        return 0;
    if (gc->fillStyle == FillTiled && !gc->tileIsPixel)
        context->pattern = gc->tile.pixmap;
    else if (gc->fillStyle == FillStippled || gc->fillStyle == FillOpaqueStippled)
        context->pattern = gc->stipple;
    context->has_inferiors = gc->subWindowMode == IncludeInferiors;
    context->has_exposures = gc->graphicsExposures;
    context->is_thin = gc->lineWidth == 0 && gc->lineStyle == LineSolid;
    return 1;
}

void xqos_set_exposures(const struct xqos_cut_server *server, uint32_t id, int on)
{
    GCPtr gc = context_of(server, id);

    if (gc)
        gc->graphicsExposures = on;
}

int xqos_is_within(const void *of, const struct xqos_image *image)
{
    const DrawableRec *drawable = of;

    return drawable->type == DRAWABLE_PIXMAP && image->x >= 0 && image->y >= 0 &&
           image->x + image->width <= drawable->width && image->y + image->height <= drawable->height;
}

uint32_t xqos_row_bytes(const struct xqos_cut_server *server, void *client, const void *of,
                        const struct xqos_image *image)
{
    int x = image->x, y = image->y, width = image->width, height = image->height;
    DrawablePtr drawable;
    uint32_t all = ((const DrawableRec *) of)->depth >= 32 ? ~0u : (1u << ((const DrawableRec *) of)->depth) - 1;
    int found = ((look_up_drawable) server->look_up_drawable)(&drawable, ((const DrawableRec *) of)->id, client, M_WINDOW | M_DRAWABLE_PIXMAP, DixReadAccess);

    if (found != Success || drawable != of || (image->planes & all) != all)
        return 0;
    if (drawable->type == DRAWABLE_WINDOW) {
        WindowPtr window = (WindowPtr) drawable;
        const ScreenRec *screen = drawable->pScreen;
        const PixmapRec *pixmap = screen->GetWindowPixmap(window);
        int border = wBorderWidth(window), left = x + drawable->x - pixmap->screen_x,
            top = y + drawable->y - pixmap->screen_y;

        if (!window->realized || !window->viewable || x < -border || y < -border ||
            x + width > border + drawable->width || y + height > border + drawable->height || left < 0 || top < 0 ||
            left + width > pixmap->drawable.width || top + height > pixmap->drawable.height ||
            x + drawable->x < 0 || y + drawable->y < 0 || x + drawable->x + width > screen->width ||
            y + drawable->y + height > screen->height)
            return 0;
    } else if (!xqos_is_within(drawable, image)) {
        return 0;
    }
    /* Rows have whole words. */
    return ((uint32_t) width * drawable->bitsPerPixel + 31) / 32 * 4;
}

void xqos_read_rows(const struct xqos_cut_server *server, void *client, const void *of, const struct xqos_image *image,
                    uint32_t row_bytes, void *into)
{
    int x = image->x, y = image->y, width = image->width, height = image->height;
    DrawablePtr drawable = (DrawablePtr) of;
    ScreenPtr screen = drawable->pScreen;
    int is_window = drawable->type == DRAWABLE_WINDOW;

    if (is_window)
        screen->SourceValidate(drawable, x, y, width, height, IncludeInferiors);
    screen->GetImage(drawable, x, y, width, height, ZPixmap, image->planes, into);
    if (is_window)
        ((censor_image) server->censor_image)(client, &((WindowPtr) drawable)->borderClip, row_bytes, drawable, x, y,
                                              width, height, ZPixmap, into);
}

void xqos_send_image(const struct xqos_cut_server *server, void *to, const void *of, uint32_t bytes, const void *data)
{
    ClientPtr client = to;
    const DrawableRec *drawable = of;
    write_to_client write = (write_to_client) server->write_to_client;

    if (data) {
        xGetImageReply reply = { .type = X_Reply, .sequenceNumber = client->sequence, .depth = drawable->depth };

        reply.visual = visual_of(drawable);
        reply.length = bytes_to_int32(bytes);
        write(client, sizeof(reply), &reply);
        write(client, (int) bytes, data);
    } else {
        xShmGetImageReply reply = { .type = X_Reply, .sequenceNumber = client->sequence, .depth = drawable->depth };

        reply.visual = visual_of(drawable);
        reply.size = bytes;
        write(client, sizeof(reply), &reply);
    }
}

void xqos_client_set_request(void *to, void *request, uint32_t words)
{
    ClientPtr client = to;

    client->requestBuffer = request;
    client->req_len = words;
}

uint32_t xqos_client_request_words(const void *client)
{
    return ((const ClientRec *) client)->req_len;
}

void xqos_client_set_sequence(void *client, uint32_t sequence)
{
    ((ClientPtr) client)->sequence = (int) sequence;
}

int xqos_client_set_mute(void *to, int mute)
{
    ClientPtr client = to;
    int before = client->clientGone;

    client->clientGone = mute;
    return before;
}

void xqos_return_request(const struct xqos_cut_server *server, void *of)
{
    ClientPtr client = of;
    void *request = client->requestBuffer;
    int is_big = client->big_requests && !((const xReq *) request)->length;
    CARD32 words = client->req_len + bytes_to_int32(sizeof(xBigReq) - sizeof(xReq));

    ((void (*)(ClientPtr)) server->reset_request)(client);
    /* The server has moved the header of a request in BIG-REQUESTS form 4 bytes back, and written the long length where
     * the header was. The length lacks a word, except in a server with the patch 5 of docs/upstream.md. */
    if (is_big) {
        if (client->swapped)
            swapl(&words);
        memcpy(request, &words, sizeof(words));
    }
}
