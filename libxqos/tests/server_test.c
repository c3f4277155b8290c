/* SPDX-License-Identifier: MIT */
/* server_test.c: tests the library with the real X server of $DISPLAY.
 *
 * server_test         the server has xqos and runs as this user; the tests change its settings and restore them
 * server_test libc    the same tests over the control socket: the server has no extension
 * server_test stock   the server has no xqos
 *
 * Each test opens its own connections. run.sh starts the servers.
 */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/uio.h>

#include <xcb/xcbext.h>

#include "expect.h"
#include "live.h"
#include "xrt.h"

/* ---- the server -------------------------------------------------------------------------------------------- */

static void server_is_armed_and_reports_its_ranges(void)
{
    struct client c = connect_client();
    struct xqos_server_info info = server_info(&c);
    uint32_t major = 0;

    EXPECT_INT(xqos_query_version(c.xqos, &major, NULL), XQOS_OK);
    EXPECT_INT(major, XQOS_MAJOR_VERSION);
    EXPECT_INT(info.armed, 1);
    EXPECT_STRING(info.reason, "");
    EXPECT(info.server_pid > 0);
    EXPECT(info.clients >= 1);
    EXPECT(info.max_utilization_ppm > 0 && info.max_utilization_ppm <= 950000);
    EXPECT(info.min_budget_us > 0 && info.min_budget_us <= BUDGET_US);
    EXPECT(info.min_period_us > 0 && info.min_period_us <= PERIOD_US);
    EXPECT(info.max_period_us >= PERIOD_US);
    EXPECT(info.uptime_ns > 0);
    disconnect_client(&c);
}

static void policy_is_set_and_read_back(void)
{
    struct client c = connect_client();
    uint32_t before = server_info(&c).policy;
    struct xqos_policy_change change = { .size = sizeof change, .mask = XQOS_SET_POLICY };

    for (change.policy = XQOS_POLICY_STOCK; change.policy <= XQOS_POLICY_SMART_STRICT; change.policy++) {
        if (uses_socket && change.policy == XQOS_POLICY_CLASSIC) {
            EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_ERR_FROM_BELOW);
            continue;
        }
        EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
        EXPECT_INT(server_info(&c).policy, change.policy);
    }
    change.policy = before;
    EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
    EXPECT_INT(server_info(&c).policy, before);
    disconnect_client(&c);
}

static void settings_are_set_and_read_back(void)
{
    struct client c = connect_client();
    struct xqos_server_info before = server_info(&c), after;
    struct xqos_policy_change change = {
        .size = sizeof change,
        .mask = XQOS_SET_SLICE | XQOS_SET_TIMER_INTERVAL | XQOS_SET_MAXIMUM_SLICE | XQOS_SET_MAX_UTILIZATION,
        .slice_us = 7000, .timer_interval_us = 3000, .maximum_slice_us = 30000, .max_utilization_ppm = 800000,
    };

    EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
    after = server_info(&c);
    EXPECT_INT(after.slice_us, 7000);
    EXPECT_INT(after.timer_interval_us, 3000);
    EXPECT_INT(after.maximum_slice_us, 30000);
    EXPECT_INT(after.max_utilization_ppm, 800000);
    EXPECT_INT(after.policy, before.policy);
    EXPECT_INT(after.blocking_configured_us, before.blocking_configured_us);
    change.slice_us = before.slice_us;
    change.timer_interval_us = before.timer_interval_us;
    change.maximum_slice_us = before.maximum_slice_us;
    change.max_utilization_ppm = before.max_utilization_ppm;
    EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
    EXPECT_INT(server_info(&c).slice_us, before.slice_us);
    disconnect_client(&c);
}

static void bad_settings_change_nothing(void)
{
    static const struct xqos_policy_change bad[] = {
        { .mask = XQOS_SET_POLICY, .policy = 6 },
        { .mask = XQOS_SET_POLICY, .policy = 255 },
        { .mask = 64 },
        { .mask = XQOS_SET_SLICE, .slice_us = 99 },
        { .mask = XQOS_SET_SLICE, .slice_us = 1000001 },
        { .mask = XQOS_SET_TIMER_INTERVAL, .timer_interval_us = 99 },
        { .mask = XQOS_SET_MAXIMUM_SLICE, .maximum_slice_us = 1000001 },
        { .mask = XQOS_SET_MAX_UTILIZATION, .max_utilization_ppm = 950001 },
        { .mask = XQOS_SET_POLICY | XQOS_SET_SLICE, .policy = XQOS_POLICY_FIXED, .slice_us = 5 },
    };
    struct client c = connect_client();
    struct xqos_server_info before = server_info(&c), after;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xqos_policy_change change = bad[i];

        change.size = sizeof change;
        EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_ERR_VALUE);
        after = server_info(&c);
        EXPECT_INT(after.policy, before.policy);
        EXPECT_INT(after.slice_us, before.slice_us);
        EXPECT_INT(after.max_utilization_ppm, before.max_utilization_ppm);
    }
    disconnect_client(&c);
}

/* A server that does not answer for ten seconds counts as hung. If it answers later, that is not the answer to the next
 * request. Only requests of a context with an origin share a connection to the control socket. */
static void late_answer_is_not_taken_for_the_next_one(void)
{
    struct client c = connect_client();
    struct xqos_server_info info = server_info(&c);
    struct xqos_groups groups = { .size = sizeof groups };

    EXPECT_INT(xqos_set_origin(c.xqos, "rule test", 0), XQOS_OK);
    kill((pid_t)info.server_pid, SIGSTOP);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 0), XQOS_ERR_CONNECTION);
    kill((pid_t)info.server_pid, SIGCONT);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 200), XQOS_OK);
    EXPECT_INT(xqos_get_groups(c.xqos, &groups), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 0), XQOS_ERR_VALUE);
    EXPECT(server_info(&c).armed);
    disconnect_client(&c);
}

/* Sets B of the admission test, because the observed value depends on earlier load and must not affect the tests'
 * reservations. */
static void set_blocking(uint32_t blocking_us)
{
    struct client c = connect_client();
    struct xqos_policy_change change = { .size = sizeof change, .mask = XQOS_SET_BLOCKING, .blocking_us = blocking_us };

    EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
    EXPECT_INT(server_info(&c).blocking_configured_us, blocking_us);
    disconnect_client(&c);
}

/* ---- requests that no library sends ------------------------------------------------------------------------ */

static int send_raw(struct client *c, uint8_t opcode, size_t bytes)
{
    static xcb_extension_t extension = { .name = "XQOS", .global_id = 0 };
    xcb_protocol_request_t protocol = { .count = 1, .ext = &extension, .opcode = opcode, .isvoid = 1 };
    uint32_t words[16] = { 0 };
    struct iovec parts[3] = { { 0 }, { 0 }, { .iov_base = words, .iov_len = bytes } };
    xcb_void_cookie_t cookie = { xcb_send_request(c->connection, XCB_REQUEST_CHECKED, parts + 2, &protocol) };
    xcb_generic_error_t *error = xcb_request_check(c->connection, cookie);
    int code = error ? error->error_code : 0;

    free(error);
    return code;
}

static void wrong_lengths_and_opcodes_are_refused(void)
{
    static const struct {
        uint8_t opcode;
        size_t bytes;
    } requests[] = { { 0, 12 }, { 1, 4 }, { 2, 48 }, { 3, 16 }, { 4, 24 }, { 5, 8 }, { 6, 4 }, { 7, 4 }, { 8, 4 },
                     { 9, 4 }, { 10, 4 }, { 11, 4 }, { 12, 4 }, { 13, 32 }, { 14, 40 }, { 15, 12 }, { 16, 8 },
                     { 17, 12 }, { 18, 4 }, { 19, 4 }, { 20, 8 } };
    struct client c = connect_client();

    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        EXPECT_INT(send_raw(&c, requests[i].opcode, requests[i].bytes + 4), XCB_LENGTH);
        /* A request that is only a header cannot be shorter. */
        if (requests[i].bytes > 4)
            EXPECT_INT(send_raw(&c, requests[i].opcode, requests[i].bytes - 4), XCB_LENGTH);
    }
    EXPECT_INT(send_raw(&c, 21, 4), XCB_REQUEST);
    EXPECT_INT(send_raw(&c, 255, 4), XCB_REQUEST);
    disconnect_client(&c);
}

/* ---- xrt --------------------------------------------------------------------------------------------------- */

static void xrt_sets_reads_and_clears(void)
{
    Display *display = XOpenDisplay(NULL);
    RTProperty rt;

    EXPECT(display != NULL);
    if (!display)
        return;
    EXPECT_INT(XRTInitialize(display, &rt), XQOS_OK);
    rt.rt_maxcapacity = BUDGET_US;
    rt.rt_period = PERIOD_US;
    rt.rt_hard = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    memset(&rt, 0, sizeof rt);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(rt.rt_maxcapacity, BUDGET_US);
    EXPECT_INT(rt.rt_period, PERIOD_US);
    EXPECT_INT(rt.rt_hard, 1);
    EXPECT(rt.rt_capacity <= BUDGET_US);

    rt.rt_hard = 0;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(rt.rt_hard, 0);
    EXPECT_INT(rt.rt_best_effort, 0);
    rt.rt_best_effort = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(rt.rt_best_effort, 1);

    rt.rt_maxcapacity = rt.rt_period;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_ADMISSION);
    rt.rt_maxcapacity = rt.rt_period + 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_VALUE);
    rt.rt_maxcapacity = rt.rt_period = 0;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_INT(rt.rt_period, 0);
    XCloseDisplay(display);
}

/* ---- a server without xqos --------------------------------------------------------------------------------- */

static void stock_server_has_no_extension(void)
{
    xcb_connection_t *connection = xcb_connect(NULL, NULL);
    xqos_t *xqos = NULL;

    EXPECT_INT(xcb_connection_has_error(connection), 0);
    EXPECT_INT(xqos_open(connection, &xqos), XQOS_ERR_NO_EXTENSION);
    EXPECT(xqos == NULL);
    EXPECT_INT(xcb_connection_has_error(connection), 0);
    xcb_disconnect(connection);
}

static void stock_server_has_no_xrt(void)
{
    Display *display = XOpenDisplay(NULL);
    RTProperty rt;

    EXPECT(display != NULL);
    if (!display)
        return;
    EXPECT_INT(XRTInitialize(display, &rt), XQOS_ERR_NO_EXTENSION);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_ERR_NO_EXTENSION);
    XCloseDisplay(display);
}

static void run_stock(void)
{
    RUN(stock_server_has_no_extension);
    RUN(stock_server_has_no_xrt);
}

static void run_all(void)
{
    RUN(server_is_armed_and_reports_its_ranges);
    RUN(policy_is_set_and_read_back);
    RUN(settings_are_set_and_read_back);
    RUN(bad_settings_change_nothing);
    set_blocking(500);
    end_of_test("set_blocking");
    test_reservations();
    test_clients();
    test_events();
    if (uses_socket)
        RUN(late_answer_is_not_taken_for_the_next_one);
    else
        RUN(wrong_lengths_and_opcodes_are_refused);
    RUN(xrt_sets_reads_and_clears);
    set_blocking(0);
    end_of_test("set_blocking back");
}

int main(int argc, char **argv)
{
    /* End the program if a test waits too long for the server. */
    alarm(300);
    uses_socket = argc > 1 && strcmp(argv[1], "libc") == 0;
    if (argc > 1 && strcmp(argv[1], "stock") == 0)
        run_stock();
    else
        run_all();
    printf("server_test: %d failed\n", failed_tests);
    return failed_tests != 0;
}
