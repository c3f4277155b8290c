/* SPDX-License-Identifier: MIT */
/* live.h: clients of a real server, for the tests in server_test.c. */
#ifndef XQOS_LIVE_H
#define XQOS_LIVE_H

#include "xqos.h"

enum {
    PERIOD_US = 100000,
    BUDGET_US = 10000,
    PATIENCE_MS = 60000 /* for asynchronous effects: events, the end of a client */
};

/* The server has no extension: the library uses its control socket. */
extern int uses_socket;

struct client {
    xcb_connection_t *connection;
    xqos_t *xqos;
    uint32_t base;
};

struct client connect_client(void);
void disconnect_client(struct client *c);
void pause_ms(int ms);
struct xqos_server_info server_info(struct client *c);
struct xqos_reservation reservation_of(struct client *c, uint32_t client);

void test_reservations(void);
void test_clients(void);
void test_events(void);

#endif
