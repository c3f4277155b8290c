/* SPDX-License-Identifier: MIT */
/*
 * Accessors for the server's structures in plain C types. Only client.c includes the server's headers. No function here
 * allocates, blocks or keeps a pointer.
 */
#ifndef XQOS_SHIM_CLIENT_H
#define XQOS_SHIM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

/* A node in one of the server's rings of ready clients. */
struct xqos_ring {
    struct xqos_ring *next, *prev;
};

int xqos_client_index(const void *client);
uint32_t xqos_client_base(const void *client);
uint32_t xqos_client_sequence(const void *client);
/* Major opcode + 65536 x minor opcode of the last request. */
uint32_t xqos_client_last_request(const void *client);
bool xqos_client_swapped(const void *client);
/* True if the client's connection is closed or about to be closed. */
bool xqos_client_gone(const void *client);
/* 0 connecting, 1 running, 2 retained, 3 gone. */
int xqos_client_state(const void *client);
int xqos_client_priority(const void *client);
void xqos_client_set_priority(void *client, int priority);
/* The request being dispatched, and its length in bytes. */
const void *xqos_client_request(const void *client);
uint32_t xqos_client_request_bytes(const void *client);
/* All values needed for each request while requests are timed, read in a single call. */
struct xqos_head {
    uint32_t index, sequence, request, bytes, swapped;
};
void xqos_client_head(const void *client, struct xqos_head *head);
void xqos_client_set_error_value(void *client, uint32_t value);
const void *xqos_client_request_vector(const void *client);

struct xqos_ring *xqos_client_ring(void *client);
void *xqos_ring_client(struct xqos_ring *node);

/* The clients named in callback arguments. */
void *xqos_state_client(void *info);
void *xqos_grab_client(void *info);
/* 1 grabbed, 0 ungrabbed, -1 neither. */
int xqos_grab_state(void *info);
void *xqos_event_client(void *info);
/* 1 if user input was delivered, 2 if an Expose was delivered, 0 if neither. */
int xqos_event_kind(void *info, int xinput_opcode);

/* The selection's atom and its new owner, from a SelectionCallback. The owner is NULL if there is none. */
uint32_t xqos_selection_atom(void *info);
void *xqos_selection_owner(void *info);

/* The id of a screen's root window, from the connection setup; 0 if there is no such screen. */
uint32_t xqos_setup_root(const void *setup, int screen);
/* A resource id of the client that redirects the children of this root window (WindowPtr); 0 if no client does or if
 * `root` is not the window `id`. */
uint32_t xqos_redirector(const void *root, uint32_t id);

/* A resource id of the client that has grabbed the keyboard or the pointer (the core device); 0 if the device is not
 * grabbed. `input` is the server's inputInfo. */
uint32_t xqos_device_grab(const void *input, int of_keyboard);

/* The vendor and release, from the connection setup that the server sends. */
const char *xqos_setup_vendor(const void *setup, uint32_t *length, uint32_t *release);

#endif
