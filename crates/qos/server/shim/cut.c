/* SPDX-License-Identifier: MIT */
/* Looks up the drawables that a request touches, and finishes rests before windows change; see cut.h. */
#include <xorg-server.h>
#include <string.h>
#include <X11/X.h>
#include <X11/Xproto.h>
#include <X11/extensions/bigreqsproto.h>
#include "misc.h"
#include "os.h"
#include "dixstruct.h"
#include "dix.h"
#include "gcstruct.h"
#include "pixmapstr.h"
#include "windowstr.h"
#include "scrnintstr.h"
#include "picturestr.h"
#include "damage.h"
#include "damagestr.h"

#include "cut.h"

typedef int (*look_up_drawable)(DrawablePtr *, XID, ClientPtr, Mask, Mask);
typedef int (*look_up_gc)(GCPtr *, XID, ClientPtr, Mask);
typedef int (*look_up_resource)(void **, XID, RESTYPE, ClientPtr, Mask);
typedef DamagePtr (*damage_create)(DamageReportFunc, DamageDestroyFunc, DamageReportLevel, Bool, ScreenPtr, void *);
typedef void (*damage_register)(DrawablePtr, DamagePtr);
typedef void (*damage_change)(DamagePtr);
typedef Bool (*queue_work)(Bool (*)(ClientPtr, void *), ClientPtr, void *);

static ClientPtr server_client(const struct xqos_cut_server *server)
{
    return *(ClientPtr *) server->server_client;
}

/* The memory of an ordinary pixmap follows its record (fbCreatePixmap). Other memory may belong to a client, as in
 * MIT-SHM and DRI3, or to a graphics card. */
static int has_own_memory(const PixmapRec *pixmap)
{
    ScreenPtr screen = pixmap->drawable.pScreen;
    const char *after = (const char *) pixmap + screen->totalPixmapSize, *memory = pixmap->devPrivate.ptr;

    return pixmap == screen->GetScreenPixmap(screen) ? memory != NULL : memory >= after && memory < after + 8;
}

/* The server copies an automatically redirected window into its parent whenever it is about to wait. */
static int is_copied(const WindowRec *window)
{
    for (; window; window = window->parent)
        if (window->redirectDraw != RedirectDrawNone)
            return window->redirectDraw == RedirectDrawAutomatic;
    return 0;
}

static void use(const struct xqos_cut_server *server, const DrawableRec *drawable, struct xqos_used *used)
{
    ScreenPtr screen = drawable->pScreen;
    const PixmapRec *pixmap = (const PixmapRec *) drawable;
    DrawablePtr named;
    int found = ((look_up_drawable) server->look_up_drawable)(&named, drawable->id, server_client(server), M_WINDOW | M_DRAWABLE_PIXMAP, DixGetAttrAccess);

    used->drawable = drawable;
    used->id = found == Success && named == drawable ? drawable->id : 0;
    used->is_window = drawable->type == DRAWABLE_WINDOW;
    if (used->is_window) {
        pixmap = screen->GetWindowPixmap((WindowPtr) drawable);
        used->is_private = has_own_memory(pixmap) && !is_copied((const WindowRec *) drawable);
    } else {
        used->is_backing = pixmap->usage_hint == CREATE_PIXMAP_USAGE_BACKING_PIXMAP;
        used->is_private = has_own_memory(pixmap) && !used->is_backing;
    }
    used->backing = pixmap;
}

/* A picture of x8r8g8b8 leaves 8 bits of a drawable of depth 32 unused. */
static int has_all_bits(const PictureRec *picture)
{
    uint32_t format = picture->format;

    return PICT_FORMAT_A(format) + PICT_FORMAT_R(format) + PICT_FORMAT_G(format) + PICT_FORMAT_B(format) ==
           picture->pDrawable->depth;
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
        use(server, drawable, used);
    return found == Success;
}

int xqos_use_picture(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used)
{
    PicturePtr picture;
    RESTYPE type = server->picture_type;
    int is_gradient = 0;

    if (!type) {
        used->unknown = 1;
        return 1;
    }
    if (((look_up_resource) server->look_up_resource)((void **) &picture, id, type, server_client(server), DixGetAttrAccess) != Success)
        return 0;
    used->unknown = picture->alphaMap != NULL;
    used->has_inferiors = picture->subWindowMode == IncludeInferiors;
    if (picture->pDrawable) {
        use(server, picture->pDrawable, used);
        used->has_all_bits = has_all_bits(picture);
    } else {
        used->is_private = 1;
        is_gradient = !picture->pSourcePict || picture->pSourcePict->type != SourcePictTypeSolidFill;
    }
    /* Pixman draws nothing if a transformation, even of a solid colour, gives a coordinate beyond 16 bits. */
    used->is_plain = !is_gradient && !picture->transform && !picture->filter_nparams;
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
        use(server, &window->background.pixmap->drawable, used);
    return 1;
}

int xqos_use_context(const struct xqos_cut_server *server, uint32_t id, struct xqos_context *context)
{
    GCPtr gc = context_of(server, id);

    if (!gc)
        return 0;
    if (gc->fillStyle == FillTiled && !gc->tileIsPixel)
        use(server, &gc->tile.pixmap->drawable, &context->pattern);
    else if (gc->fillStyle == FillStippled || gc->fillStyle == FillOpaqueStippled)
        use(server, &gc->stipple->drawable, &context->pattern);
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

int xqos_is_there(const void *of, int x, int y, int width, int height)
{
    const DrawableRec *drawable = of;
    const BoxRec *box;

    /* The server reports an empty rectangle of a window as exposed (miHandleExposures). */
    if (width == 0)
        return 0;
    if (drawable->type != DRAWABLE_WINDOW)
        return x >= 0 && y >= 0 && x + width <= drawable->width && y + height <= drawable->height;
    /* A region without a list of boxes consists of one box, its extents. */
    box = &((const WindowRec *) drawable)->clipList.extents;
    x += drawable->x;
    y += drawable->y;
    return !((const WindowRec *) drawable)->clipList.data && x >= box->x1 && y >= box->y1 && x + width <= box->x2 &&
           y + height <= box->y2;
}

/* All Damage objects of one pixmap and of its windows are in one list, and a new one comes first. */
int xqos_is_watched(const struct xqos_cut_server *server, const void *of)
{
    DrawablePtr drawable = (DrawablePtr) of;
    DamagePtr own = ((damage_create) server->damage_create)(NULL, NULL, DamageReportNone, TRUE, drawable->pScreen, NULL);
    int is_watched = 0;

    if (!own)
        return 1;
    ((damage_register) server->damage_register)(drawable, own);
    for (const DamageRec *other = own->pNext; other; other = other->pNext)
        is_watched |= !other->isInternal && other->damageLevel != DamageReportNonEmpty;
    ((damage_change) server->damage_unregister)(own);
    ((damage_change) server->damage_destroy)(own);
    return is_watched;
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

int xqos_client_owes_text(const struct xqos_cut_server *server, void *of)
{
    const ClientRec *client = of;

    return client->majorOp >= X_PolyText8 && client->majorOp <= X_ImageText16 &&
           ((Bool (*)(ClientPtr)) server->is_asleep)(of);
}

int xqos_queue_work(const struct xqos_cut_server *server, void *client, int (*work)(void *, void *))
{
    return ((queue_work) server->queue_work)((Bool (*)(ClientPtr, void *)) work, client, NULL);
}

/* Each change of the visible parts of windows begins with one of these functions, also without a request: a
 * screen saver, a new screen size, a switch of the virtual terminal. */
static void (*changes)(void);
static struct {
    MarkWindowProcPtr mark;
    MarkOverlappedWindowsProcPtr mark_overlapped;
} original[MAXSCREENS];

static int is_wrapped; /* Other code has wrapped our functions meanwhile, and calls them from now on. */

static void mark(WindowPtr window)
{
    MarkWindowProcPtr next = original[window->drawable.pScreen->myNum].mark;

    if (changes)
        changes();
    next(window);
}

static Bool mark_overlapped(WindowPtr window, WindowPtr first, WindowPtr *layer)
{
    MarkOverlappedWindowsProcPtr next = original[window->drawable.pScreen->myNum].mark_overlapped;

    if (changes)
        changes();
    return next(window, first, layer);
}

void xqos_watch_windows(const struct xqos_cut_server *server, void (*call)(void))
{
    const ScreenInfo *screens = server->screen_info;

    if (!changes == !call)
        return;
    changes = call;
    if (is_wrapped)
        return;
    for (int i = 0; i < screens->numScreens && i < MAXSCREENS; i++) {
        ScreenPtr screen = screens->screens[i];

        if (call) {
            original[i].mark = screen->MarkWindow;
            original[i].mark_overlapped = screen->MarkOverlappedWindows;
            screen->MarkWindow = mark;
            screen->MarkOverlappedWindows = mark_overlapped;
        } else if (screen->MarkWindow == mark && screen->MarkOverlappedWindows == mark_overlapped) {
            screen->MarkWindow = original[i].mark;
            screen->MarkOverlappedWindows = original[i].mark_overlapped;
        } else {
            is_wrapped = 1;
        }
    }
}

void xqos_forget_windows(void)
{
    is_wrapped = 0;
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
