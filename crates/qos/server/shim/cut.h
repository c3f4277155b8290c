/* SPDX-License-Identifier: MIT */
/*
 * Looks up the drawables that a request touches, and finishes rests before the server changes windows. The records are
 * those of server release 21.1. Only cut.c includes the server's headers.
 */
#ifndef XQOS_SHIM_CUT_H
#define XQOS_SHIM_CUT_H

#include <stdint.h>

/* The server's functions and variables, looked up by name. */
struct xqos_cut_server {
    const void *look_up_drawable, *look_up_gc, *look_up_resource, *reset_request, *queue_work, *is_asleep;
    const void *damage_create, *damage_register, *damage_unregister, *damage_destroy;
    const void *server_client, *screen_info;
    uint32_t picture_type; /* of resources; 0: not known */
};

/* A drawable that a request reads or writes. `backing` is the pixmap that holds its pixels. */
struct xqos_used {
    const void *drawable, *backing;
    uint32_t id; /* 0: no request can name it */
    uint8_t is_window, has_inferiors, unknown;
    /* Only requests touch its pixels: its memory is the server's, and the server copies it nowhere by itself. */
    uint8_t is_private;
    uint8_t is_backing; /* a pixmap that holds the pixels of a window */
    /* A picture without a transformation, a convolution or an alpha map. */
    uint8_t is_plain;
    /* A picture whose format uses all bits of the drawable's pixels. */
    uint8_t has_all_bits;
};

/* All functions return 0 if the id names no resource. The request then ends with an error. */
int xqos_use_drawable(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);
/* The drawable of a picture; `drawable` is NULL for a picture without one. */
int xqos_use_picture(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);
/* The pixmap of a window's background; `drawable` is NULL if it has none, or if the id names a pixmap. */
int xqos_use_background(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);

struct xqos_context {
    struct xqos_used pattern; /* the pixmap of its tile or stipple, if it draws with one */
    uint8_t has_inferiors, has_exposures;
    uint8_t is_thin; /* lines have the width 0 and no dashes */
};
int xqos_use_context(const struct xqos_cut_server *server, uint32_t id, struct xqos_context *context);
/* Turns the exposure events of a graphics context on or off. */
void xqos_set_exposures(const struct xqos_cut_server *server, uint32_t id, int on);

/* Nonzero if all of this rectangle has pixels: in a pixmap, or in a window that is not covered. */
int xqos_is_there(const void *drawable, int x, int y, int width, int height);

/* Nonzero if each drawing operation on this drawable, or on one with the same pixels, is reported to a client. */
int xqos_is_watched(const struct xqos_cut_server *server, const void *drawable);

/* Replaces the request being dispatched with another one of this many words. */
void xqos_client_set_request(void *client, void *request, uint32_t words);
uint32_t xqos_client_request_words(const void *client);
void xqos_client_set_sequence(void *client, uint32_t sequence);
/* Nonzero if the client waits for a font and will draw text later, outside of a request. */
int xqos_client_owes_text(const struct xqos_cut_server *server, void *client);
/* Hands the request back to the server, which dispatches it again. */
void xqos_return_request(const struct xqos_cut_server *server, void *client);
/* The server calls `work` between slices, and before it frees the requests of a disconnected client, until it returns
 * nonzero. */
int xqos_queue_work(const struct xqos_cut_server *server, void *client, int (*work)(void *client, void *closure));
/* `changes` is called before the visible parts of windows change, or NULL. */
void xqos_watch_windows(const struct xqos_cut_server *server, void (*changes)(void));
/* The server has new screens after a reset. */
void xqos_forget_windows(void);

#endif
