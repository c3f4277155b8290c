/* SPDX-License-Identifier: MIT */
/*
 * The server's structures as plain C types. Only client.c includes server headers, only Rust includes this world:
 * nobody sees both. No function here allocates, blocks or keeps a pointer.
 */
#ifndef XQOS_SHIM_CLIENT_H
#define XQOS_SHIM_CLIENT_H

#include <stdint.h>

/* A node of one of the server's rings of ready clients. */
struct xqos_ring {
    struct xqos_ring *next, *prev;
};

int xqos_client_index(const void *client);
uint32_t xqos_client_base(const void *client);
uint32_t xqos_client_sequence(const void *client);
/* Major opcode + 65536 x minor opcode of the last request. */
uint32_t xqos_client_last_request(const void *client);
int xqos_client_swapped(const void *client);
/* Its connection is closed, or about to be. */
int xqos_client_gone(const void *client);
/* 0 connecting, 1 running, 2 retained, 3 gone. */
int xqos_client_state(const void *client);
int xqos_client_priority(const void *client);
void xqos_client_set_priority(void *client, int priority);
/* The request that is being dispatched, and its length in bytes. */
const void *xqos_client_request(const void *client);
uint32_t xqos_client_request_bytes(const void *client);
/* All that is asked at each request while requests are timed, in one call. */
struct xqos_head {
    uint32_t index, sequence, request, bytes, swapped;
};
void xqos_client_head(const void *client, struct xqos_head *head);
void xqos_client_set_error_value(void *client, uint32_t value);
const void *xqos_client_request_vector(const void *client);

struct xqos_ring *xqos_client_ring(void *client);
void *xqos_ring_client(struct xqos_ring *node);

/* Clients of the callbacks' arguments. */
void *xqos_state_client(void *info);
void *xqos_grab_client(void *info);
/* 1 grabbed, 0 ungrabbed, -1 neither. */
int xqos_grab_state(void *info);
void *xqos_event_client(void *info);
/* 1 user input, 2 Expose, 0 anything else among the events delivered. */
int xqos_event_kind(void *info, int xinput_opcode);

/* What a SelectionCallback tells: the selection's atom, and who owns it from now on; NULL: nobody. */
uint32_t xqos_selection_atom(void *info);
void *xqos_selection_owner(void *info);

/* The id of the root window of a screen out of the connection setup; 0 where there is no such screen. */
uint32_t xqos_setup_root(const void *setup, int screen);
/* A resource id of the client that redirects the children of this root window (WindowPtr); 0: nobody, or not that root. */
uint32_t xqos_redirector(const void *root, uint32_t id);

/* A resource id of the client that has grabbed the keyboard, or else the pointer, all devices together; 0: nobody. `input` is
 * the server's inputInfo. */
uint32_t xqos_device_grab(const void *input, int of_keyboard);

/* Vendor and release out of the connection setup that the server sends. */
const char *xqos_setup_vendor(const void *setup, uint32_t *length, uint32_t *release);

#endif
