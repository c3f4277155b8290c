/* SPDX-License-Identifier: MIT */
/* live.c: see live.h. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <time.h>

#include "expect.h"
#include "live.h"

int uses_socket;

struct client connect_client(void)
{
    struct client c = { .connection = xcb_connect(NULL, NULL) };
    int result = xqos_open(c.connection, &c.xqos);

    if (result != XQOS_OK) {
        printf("FAILED to open a client: %s\n", xqos_strerror(result));
        exit(1);
    }
    c.base = xcb_get_setup(c.connection)->resource_id_base;
    return c;
}

void disconnect_client(struct client *c)
{
    xqos_close(c->xqos);
    xcb_disconnect(c->connection);
}

void pause_ms(int ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

struct xqos_server_info server_info(struct client *c)
{
    struct xqos_server_info info = { .size = sizeof info };

    EXPECT_INT(xqos_get_server_info(c->xqos, &info), XQOS_OK);
    return info;
}

struct xqos_reservation reservation_of(struct client *c, uint32_t client)
{
    struct xqos_reservation reservation = { .size = sizeof reservation };

    EXPECT_INT(xqos_get_reservation(c->xqos, client, &reservation), XQOS_OK);
    return reservation;
}
