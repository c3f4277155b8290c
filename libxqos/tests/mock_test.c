/* SPDX-License-Identifier: MIT */
/* mock_test.c: tests the library with the mock server: every byte sent, every field received, every error.
 *
 * Offsets are copied from proto/xqosproto.md and not taken from the library's headers, so that the tests find a mistake
 * in either of them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "fixture.h"
#include "xrt.h"

/* Core error codes. */
enum { BAD_REQUEST = 1, BAD_VALUE = 2, BAD_WINDOW = 3, BAD_ACCESS = 10, BAD_ALLOC = 11, BAD_LENGTH = 16 };

/* ---- opening ----------------------------------------------------------------------------------------------- */

static void stock_server_has_no_extension(void)
{
    struct mock *mock = mock_start(0, 1);
    xcb_connection_t *connection = mock_connect(mock);
    xqos_t *xqos = (xqos_t *)&mock;

    EXPECT_INT(xqos_open(connection, &xqos), XQOS_ERR_NO_EXTENSION);
    EXPECT(xqos == NULL);
    EXPECT_INT(xcb_connection_has_error(connection), 0);
    xcb_disconnect(connection);
    mock_stop(mock);
}

static void other_major_version_is_refused(void)
{
    struct mock *mock = mock_start(1, 2);
    xcb_connection_t *connection = mock_connect(mock);
    xqos_t *xqos = NULL;

    EXPECT_INT(xqos_open(connection, &xqos), XQOS_ERR_VERSION);
    EXPECT(xqos == NULL);
    xcb_disconnect(connection);
    mock_stop(mock);
}

static void broken_connection_is_reported(void)
{
    struct fixture f = open_fixture();
    struct xqos_reservation out = { .size = sizeof out };
    xqos_t *again;

    mock_hang_up(f.mock);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out), XQOS_ERR_CONNECTION);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out), XQOS_ERR_CONNECTION);
    EXPECT_INT(xqos_clear_reservation(f.xqos, 0), XQOS_ERR_CONNECTION);
    EXPECT_INT(xqos_open(f.connection, &again), XQOS_ERR_CONNECTION);
    close_fixture(&f);
}

static void connection_lost_in_a_void_request_is_reported(void)
{
    struct fixture f = open_fixture();

    mock_hang_up(f.mock);
    EXPECT_INT(xqos_clear_reservation(f.xqos, 0), XQOS_ERR_CONNECTION);
    close_fixture(&f);
}

static void version_is_read(void)
{
    struct fixture f = open_fixture();
    uint32_t major = 9, minor = 9;

    EXPECT_INT(xqos_query_version(f.xqos, &major, &minor), XQOS_OK);
    EXPECT_INT(major, 1);
    EXPECT_INT(minor, 0);
    EXPECT_INT(xqos_query_version(f.xqos, NULL, NULL), XQOS_OK);
    close_fixture(&f);
}

static void null_arguments_send_nothing(void)
{
    struct fixture f = open_fixture();
    struct xqos_reservation small = { .size = sizeof small - 4 };
    struct xqos_admission refused = { .size = sizeof refused - 4 };
    struct xqos_policy_change change = { .size = sizeof change };
    xqos_t *none = f.xqos;
    size_t bytes;

    EXPECT_INT(xqos_open(NULL, &none), XQOS_ERR_ARGUMENT);
    EXPECT(none == NULL);
    EXPECT_INT(xqos_open(f.connection, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_clear_reservation(NULL, 0), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_policy(NULL, &change), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &small), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_list_clients(f.xqos, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_client_list_next(NULL, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_group_reservation(NULL, 0, 5000, 16000, 0, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_group_reservation(f.xqos, 0, 5000, 16000, 0, &refused), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_clear_group_reservation(NULL, 0), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_client_list_count(NULL), 0);
    xqos_client_list_free(NULL);
    xqos_close(NULL);
    EXPECT(mock_seen(f.mock, 0, &bytes) == NULL);
    close_fixture(&f);
}

/* Writes a name, padded with zeros to 32 bytes, as words. */
static void put_name_words(uint32_t words[8], const char *name)
{
    char bytes[32] = { 0 };

    memcpy(bytes, name, strlen(name));
    memcpy(words, bytes, sizeof bytes);
}

/* ---- the requests without a reply -------------------------------------------------------------------------- */

static void void_requests_have_their_bytes(void)
{
    struct fixture f = open_fixture();
    struct xqos_policy_change change = {
        .size = sizeof change, .mask = 63, .policy = XQOS_POLICY_FAIR, .slice_us = 5000, .timer_interval_us = 1000,
        .maximum_slice_us = 20000, .max_utilization_ppm = 900000, .blocking_us = 7000,
    };
    uint32_t origin[9];

    put_name_words(origin, "rule players");
    origin[8] = 1;
    EXPECT_INT(xqos_clear_reservation(f.xqos, 0x600002), XQOS_OK);
    EXPECT_INT(xqos_clear_group_reservation(f.xqos, 0x600009), XQOS_OK);
    EXPECT_INT(xqos_set_policy(f.xqos, &change), XQOS_OK);
    EXPECT_INT(xqos_select_events(f.xqos, 15), XQOS_OK);
    EXPECT_INT(xqos_set_origin(f.xqos, "rule players", 1), XQOS_OK);

    EXPECT_REQUEST(&f, 0, 3, 0, 0x600002, 0);
    EXPECT_REQUEST(&f, 1, 3, 1, 0x600009, 0);
    EXPECT_REQUEST(&f, 2, 13, 63, XQOS_POLICY_FAIR, 5000, 1000, 20000, 900000, 7000);
    EXPECT_REQUEST(&f, 3, 16, 15);
    expect_request(&f, 4, 14, 9, origin);
    close_fixture(&f);
}

/* Subject 0 is a client, 1 its group, 2 the server. */
static void settings_have_their_bytes(void)
{
    struct fixture f = open_fixture();
    uint32_t group[11] = { 0, 0x600004, 5 };

    put_name_words(group + 3, ":app");
    EXPECT_INT(xqos_set_reservation(f.xqos, 0x600001, 3000, 10000, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(f.xqos, 0x600003, 250), XQOS_OK);
    EXPECT_INT(xqos_set_client_priority(f.xqos, XQOS_SELF, -7), XQOS_OK);
    EXPECT_INT(xqos_set_client_group(f.xqos, 0x600004, ":app"), XQOS_OK);
    EXPECT_INT(xqos_set_group_weight(f.xqos, 0x600005, 50), XQOS_OK);
    EXPECT_INT(xqos_set_group_cap(f.xqos, XQOS_SELF, 200000), XQOS_OK);
    EXPECT_INT(xqos_set_client_pacing(f.xqos, 0x600006, XQOS_PACING_NEVER), XQOS_OK);
    EXPECT_INT(xqos_set_client_group(f.xqos, 0x600007, NULL), XQOS_OK);
    EXPECT_INT(xqos_set_group_reservation(f.xqos, 0x600008, 5000, 16000, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT_INT(xqos_set_groups(f.xqos, XQOS_GROUPING_USER, 300000), XQOS_OK);
    EXPECT_INT(xqos_mark_exposing(f.xqos, 0x600009), XQOS_OK);

    EXPECT_SET(&f, 0, 0, 0x600001, 0, 3000, 10000, 1);
    EXPECT_SET(&f, 1, 0, 0x600003, 1, 250);
    EXPECT_SET(&f, 2, 0, 0, 2, (uint32_t)-7);
    expect_set(&f, 3, group);
    EXPECT_SET(&f, 4, 1, 0x600005, 1, 50);
    EXPECT_SET(&f, 5, 1, 0, 3, 200000);
    EXPECT_SET(&f, 6, 0, 0x600006, 4, 2);
    EXPECT_SET(&f, 7, 0, 0x600007, 5, 0);
    EXPECT_SET(&f, 8, 1, 0x600008, 0, 5000, 16000, 1);
    EXPECT_SET(&f, 9, 2, 0, 9, 300000);
    EXPECT_SET(&f, 10, 2, 0, 8, 2);
    EXPECT_REQUEST(&f, 11, 20, 0x600009);
    close_fixture(&f);
}

static void long_names_and_large_numbers_are_not_truncated(void)
{
    struct fixture f = open_fixture();
    struct xqos_policy_change change = { .size = sizeof change, .mask = XQOS_SET_POLICY, .policy = 256 + 2 };
    const char *longest = "1234567890123456789012345678901", *too_long = "12345678901234567890123456789012";
    size_t bytes;

    EXPECT_INT(xqos_set_origin(f.xqos, too_long, 0), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_client_group(f.xqos, 1, too_long), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_origin(NULL, NULL, 0), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_groups(NULL, 256, 0), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_set_client_group(NULL, 1, NULL), XQOS_ERR_ARGUMENT);
    EXPECT(mock_seen(f.mock, 0, &bytes) == NULL);
    EXPECT_INT(xqos_set_client_group(f.xqos, 1, longest), XQOS_OK);
    EXPECT(mock_seen(f.mock, 0, &bytes) != NULL);
    EXPECT_INT(xqos_set_client_pacing(f.xqos, 1, 257), XQOS_OK);
    EXPECT_SET(&f, 1, 0, 1, 4, 257);
    EXPECT_INT(xqos_set_policy(f.xqos, &change), XQOS_OK);
    EXPECT_REQUEST(&f, 2, 13, 1, 258, 0, 0, 0, 0, 0);
    close_fixture(&f);
}

static void errors_become_results(void)
{
    static const struct {
        uint8_t code;
        int result;
    } cases[] = {
        { BAD_REQUEST, XQOS_ERR_REQUEST }, { BAD_VALUE, XQOS_ERR_VALUE },   { BAD_WINDOW, XQOS_ERR_PROTOCOL },
        { BAD_ACCESS, XQOS_ERR_ACCESS },   { BAD_ALLOC, XQOS_ERR_MEMORY },  { BAD_LENGTH, XQOS_ERR_LENGTH },
        { MOCK_FIRST_ERROR, XQOS_ERR_ADMISSION },
    };
    struct fixture f = open_fixture();
    struct xqos_reservation out = { .size = sizeof out, .budget_us = 77 };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mock_answer_error(f.mock, cases[i].code, 5);
        EXPECT_INT(xqos_clear_reservation(f.xqos, 1), cases[i].result);
        mock_answer_error(f.mock, cases[i].code, 5);
        EXPECT_INT(xqos_get_reservation(f.xqos, 1, &out), cases[i].result);
        EXPECT_INT(out.budget_us, 77);
    }
    EXPECT(xcb_poll_for_event(f.connection) == NULL);
    close_fixture(&f);
}

static void every_result_has_a_text(void)
{
    for (int error = 0; error >= XQOS_ERR_FROM_BELOW; error--) {
        EXPECT(strcmp(xqos_strerror(error), "unknown error") != 0);
        for (int other = 0; other > error; other--)
            EXPECT(strcmp(xqos_strerror(error), xqos_strerror(other)) != 0);
    }
    EXPECT_STRING(xqos_strerror(XQOS_ERR_FROM_BELOW - 1), "unknown error");
    EXPECT_STRING(xqos_strerror(1), "unknown error");
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void event_bytes(uint8_t event[32])
{
    memset(event, 0, 32);
    event[0] = MOCK_FIRST_EVENT;
    event[1] = XQOS_EVENT_DEPLETED;
    put32(event + 4, 0x600000);
    put32(event + 8, 1234);
    put32(event + 12, 3000);
    put32(event + 16, 10000);
    put32(event + 20, 3);
    put32(event + 24, 8);
    put32(event + 28, 123456);
}

static void event_is_decoded(void)
{
    struct fixture f = open_fixture();
    struct xqos_event out = { .size = sizeof out };
    xcb_generic_event_t *event;
    uint8_t bytes[32];

    event_bytes(bytes);
    mock_send_event(f.mock, bytes);
    EXPECT_INT(xqos_select_events(f.xqos, 4), XQOS_OK);
    event = xcb_poll_for_event(f.connection);
    EXPECT(event != NULL);
    EXPECT_INT(xqos_decode_event(f.xqos, event, &out), XQOS_OK);
    EXPECT_INT(out.kind, XQOS_EVENT_DEPLETED);
    EXPECT_INT(out.client, 0x600000);
    EXPECT_INT(out.pid, 1234);
    EXPECT_INT(out.budget_us, 3000);
    EXPECT_INT(out.period_us, 10000);
    EXPECT_INT(out.flags, 3);
    EXPECT_INT(out.count, 8);
    EXPECT_INT(out.time_ms, 123456);
    free(event);
    close_fixture(&f);
}

static void foreign_events_are_rejected(void)
{
    struct fixture f = open_fixture();
    struct xqos_event out = { .size = sizeof out, .count = 99 };
    xcb_generic_event_t event = { .response_type = MOCK_FIRST_EVENT + 1 };

    EXPECT_INT(xqos_decode_event(f.xqos, &event, &out), XQOS_ERR_EVENT);
    event.response_type = 0x80 | MOCK_FIRST_EVENT; /* made with SendEvent */
    EXPECT_INT(xqos_decode_event(f.xqos, &event, &out), XQOS_ERR_EVENT);
    EXPECT_INT(out.count, 99);
    EXPECT_INT(xqos_decode_event(f.xqos, NULL, &out), XQOS_ERR_ARGUMENT);
    EXPECT_INT(xqos_decode_event(f.xqos, &event, NULL), XQOS_ERR_ARGUMENT);
    close_fixture(&f);
}

/* ---- xrt --------------------------------------------------------------------------------------------------- */

static void expect_group_of_self(struct fixture *f, int index, const char *name)
{
    uint32_t words[11] = { 0, XQOS_SELF, 5 };

    put_name_words(words + 3, name);
    expect_set(f, index, words);
}

static void xrt_reserves_and_reads_back(void)
{
    struct fixture f = { .mock = mock_start(1, 1) };
    Display *display = XOpenDisplay(mock_display(f.mock));
    RTProperty rt;

    EXPECT(display != NULL);
    if (!display)
        return;
    memset(&rt, 0xff, sizeof rt);
    EXPECT_INT(XRTInitialize(display, &rt), XQOS_OK);
    EXPECT_INT(rt.rt_period, 0);
    EXPECT_INT(rt.rt_capacity, 0);
    rt.rt_maxcapacity = 3000;
    rt.rt_period = 10000;
    rt.rt_hard = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_SET(&f, 0, 0, 0, 0, 3000, 10000, 1);

    answer_reservation(&f, 1);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_REQUEST(&f, 1, 5, 0);
    EXPECT_INT(rt.rt_period, 10000);
    EXPECT_INT(rt.rt_maxcapacity, 3000);
    EXPECT_INT(rt.rt_capacity, -2); /* -1500 ns, rounded down */
    EXPECT_INT(rt.rt_deadline, 5000000000);
    EXPECT_INT(rt.rt_hard, 1);

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_ADMISSION);
    rt.rt_period = rt.rt_maxcapacity = 0;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_REQUEST(&f, 3, 3, 0, 0, 0);
    EXPECT_INT(RTSetGroup(display, "film"), XQOS_OK);
    expect_group_of_self(&f, 4, "film");
    EXPECT_INT(RTSetGroup(NULL, "film"), XQOS_ERR_ARGUMENT);
    rt.rt_hard = 2;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_VALUE);
    rt.rt_hard = rt.rt_best_effort = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_VALUE);
    rt.rt_hard = rt.rt_best_effort = 0;
    rt.rt_reserved[7] = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_ARGUMENT);
    EXPECT_INT(RTSetProperty(display, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(RTGetProperty(NULL, &rt), XQOS_ERR_ARGUMENT);
    XCloseDisplay(display);
    mock_stop(f.mock);
}

/* The paper has hard and soft reservations; a program that sets rt_hard to 0 gets the paper's soft reservation. */
static void xrt_uses_the_papers_soft_rule_by_default(void)
{
    struct fixture f = { .mock = mock_start(1, 1) };
    Display *display = XOpenDisplay(mock_display(f.mock));
    RTProperty rt = { .rt_maxcapacity = 3000, .rt_period = 10000 };

    EXPECT(display != NULL);
    if (!display)
        return;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_SET(&f, 0, 0, 0, 0, 3000, 10000, XQOS_RESERVATION_SOFT_PAPER);
    rt.rt_best_effort = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_SET(&f, 1, 0, 0, 0, 3000, 10000, 0);
    XCloseDisplay(display);
    mock_stop(f.mock);
}

static void xrt_recognizes_a_stock_server(void)
{
    struct mock *mock = mock_start(0, 1);
    Display *display = XOpenDisplay(mock_display(mock));
    RTProperty rt = { .rt_period = 5 };

    EXPECT(display != NULL);
    if (!display)
        return;
    EXPECT_INT(XRTInitialize(display, &rt), XQOS_ERR_NO_EXTENSION);
    EXPECT_INT(rt.rt_period, 0);
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_NO_EXTENSION);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_ERR_NO_EXTENSION);
    XCloseDisplay(display);
    mock_stop(mock);
}

int main(void)
{
    /* End the program if a test waits too long for an answer. */
    alarm(300);
    RUN(stock_server_has_no_extension);
    RUN(other_major_version_is_refused);
    RUN(broken_connection_is_reported);
    RUN(connection_lost_in_a_void_request_is_reported);
    RUN(version_is_read);
    RUN(null_arguments_send_nothing);
    RUN(void_requests_have_their_bytes);
    RUN(settings_have_their_bytes);
    RUN(long_names_and_large_numbers_are_not_truncated);
    RUN(errors_become_results);
    RUN(every_result_has_a_text);
    test_replies();
    test_admission();
    test_list();
    RUN(event_is_decoded);
    RUN(foreign_events_are_rejected);
    RUN(xrt_reserves_and_reads_back);
    RUN(xrt_uses_the_papers_soft_rule_by_default);
    RUN(xrt_recognizes_a_stock_server);
    printf("mock_test: %d failed\n", failed_tests);
    return failed_tests != 0;
}
