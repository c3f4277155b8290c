/* SPDX-License-Identifier: MIT */
/*
 * What a request touches, and reading an image in parts. For servers of release 21.1, whose records these are. Only
 * cut.c includes the server's headers.
 */
#ifndef XQOS_SHIM_CUT_H
#define XQOS_SHIM_CUT_H

#include <stdint.h>

/* The server's functions and variables, looked up by name. */
struct xqos_cut_server {
    void *look_up_drawable, *look_up_gc, *look_up_resource, *write_to_client, *censor_image, *reset_request;
    const void *server_client;
    uint32_t picture_type; /* of resources; 0: not known */
};

/* A drawable that a request reads or writes. `backing` is the pixmap that holds its pixels. */
struct xqos_used {
    const void *drawable, *backing;
    uint8_t is_window, is_redirected, has_inferiors, unknown;
};

/* All functions return 0 if the id names nothing, so that the request ends with an error. */
int xqos_use_drawable(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);
/* The drawable of a picture; `drawable` is NULL for a picture without one. */
int xqos_use_picture(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);
/* The pixmap of a window's background; `drawable` is NULL if it has none. */
int xqos_use_background(const struct xqos_cut_server *server, uint32_t id, struct xqos_used *used);

struct xqos_context {
    const void *pattern; /* the pixmap of its tile or stipple, if it draws with one */
    uint8_t has_inferiors, has_exposures, is_thin;
};
int xqos_use_context(const struct xqos_cut_server *server, uint32_t id, struct xqos_context *context);
/* Turns the exposure events of a graphics context on or off. */
void xqos_set_exposures(const struct xqos_cut_server *server, uint32_t id, int on);

/* A rectangle of an image that is read. */
struct xqos_image {
    int16_t x, y;
    uint16_t width, height;
    uint32_t planes;
};
/* Nonzero if this rectangle lies within the pixmap. */
int xqos_is_within(const void *drawable, const struct xqos_image *image);
/* Bytes for a row of an image of this drawable in ZPixmap form; 0 if the image must be read by the server itself. */
uint32_t xqos_row_bytes(const struct xqos_cut_server *server, void *client, const void *drawable,
                        const struct xqos_image *image);
void xqos_read_rows(const struct xqos_cut_server *server, void *client, const void *drawable,
                    const struct xqos_image *image, uint32_t row_bytes, void *into);
/* Sends the reply of GetImage (`data`), or of ShmGetImage (`data` is NULL). */
void xqos_send_image(const struct xqos_cut_server *server, void *client, const void *drawable, uint32_t bytes,
                     const void *data);

/* Exchanges the request being dispatched for another one of this many words. */
void xqos_client_set_request(void *client, void *request, uint32_t words);
uint32_t xqos_client_request_words(const void *client);
void xqos_client_set_sequence(void *client, uint32_t sequence);
/* Makes the server drop what is written to this client. Returns the state before. */
int xqos_client_set_mute(void *client, int mute);
/* Hands the request back to the server, which dispatches it again. The sequence number stays that of the request. */
void xqos_return_request(const struct xqos_cut_server *server, void *client);

#endif
