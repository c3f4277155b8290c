/* server_test.c: the library against a real X server, of $DISPLAY.
 *
 * server_test         the server carries xqos and is of this user; the tests set it up and leave it as it was
 * server_test stock   the server does not
 *
 * Each test opens its own connections. run.sh starts the servers.
 */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/uio.h>

#include <xcb/xcbext.h>

#include "expect.h"
#include "xqos.h"
#include "xrt.h"

enum {
    PERIOD_US = 100000,
    BUDGET_US = 10000,
    PATIENCE_MS = 2000 /* for what the server does in its own time: events, the end of a client */
};

struct client {
    xcb_connection_t *connection;
    xqos_t *xqos;
    uint32_t base;
};

static struct client connect_client(void)
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

static void disconnect_client(struct client *c)
{
    xqos_close(c->xqos);
    xcb_disconnect(c->connection);
}

static void pause_ms(int ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

static struct xqos_server_info server_info(struct client *c)
{
    struct xqos_server_info info = { .size = sizeof info };

    EXPECT_INT(xqos_get_server_info(c->xqos, &info), XQOS_OK);
    return info;
}

static struct xqos_reservation reservation_of(struct client *c, uint32_t client)
{
    struct xqos_reservation reservation = { .size = sizeof reservation };

    EXPECT_INT(xqos_get_reservation(c->xqos, client, &reservation), XQOS_OK);
    return reservation;
}

/* Returns 0 where the list does not have it. */
static int find_client(struct client *c, uint32_t base, struct xqos_client *out)
{
    xqos_client_list_t *list = NULL;
    int found = 0;

    out->size = sizeof *out;
    EXPECT_INT(xqos_list_clients(c->xqos, &list), XQOS_OK);
    while (!found && xqos_client_list_next(list, out) > 0)
        found = out->client == base;
    xqos_client_list_free(list);
    return found;
}

/* ---- the server -------------------------------------------------------------------------------------------- */

static void server_is_armed_and_says_its_ranges(void)
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

    for (change.policy = XQOS_POLICY_STOCK; change.policy <= XQOS_POLICY_FIXED; change.policy++) {
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
        { .mask = XQOS_SET_POLICY, .policy = 5 },
        { .mask = XQOS_SET_POLICY, .policy = 255 },
        { .mask = 64 },
        { .mask = XQOS_SET_SLICE, .slice_us = 99 },
        { .mask = XQOS_SET_SLICE, .slice_us = 1000001 },
        { .mask = XQOS_SET_TIMER_INTERVAL, .timer_interval_us = 99 },
        { .mask = XQOS_SET_MAXIMUM_SLICE, .maximum_slice_us = 1000001 },
        { .mask = XQOS_SET_MAX_UTILIZATION, .max_utilization_ppm = 950001 },
        { .mask = XQOS_SET_POLICY | XQOS_SET_SLICE, .policy = XQOS_POLICY_CLASSIC, .slice_us = 5 },
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

/* B of the admission test: what this server was seen to take so far depends on what ran on it, and must not decide
 * whether the tests' reservations are admitted. */
static void set_blocking(uint32_t blocking_us)
{
    struct client c = connect_client();
    struct xqos_policy_change change = { .size = sizeof change, .mask = XQOS_SET_BLOCKING, .blocking_us = blocking_us };

    EXPECT_INT(xqos_set_policy(c.xqos, &change), XQOS_OK);
    EXPECT_INT(server_info(&c).blocking_configured_us, blocking_us);
    disconnect_client(&c);
}

/* ---- reservations ------------------------------------------------------------------------------------------ */

static void reservation_of_self_is_read_back(void)
{
    struct client c = connect_client();
    struct xqos_reservation mine = reservation_of(&c, XQOS_SELF);

    EXPECT_INT(mine.active, 0);
    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    mine = reservation_of(&c, XQOS_SELF);
    EXPECT_INT(mine.active, 1);
    EXPECT_INT(mine.budget_us, BUDGET_US);
    EXPECT_INT(mine.period_us, PERIOD_US);
    EXPECT_INT(mine.flags & XQOS_RESERVATION_HARD, XQOS_RESERVATION_HARD);
    EXPECT(mine.budget_left_ns <= BUDGET_US * 1000LL);
    EXPECT_INT(reservation_of(&c, c.base).budget_us, BUDGET_US);

    EXPECT_INT(xqos_set_reservation(c.xqos, c.base, BUDGET_US / 2, PERIOD_US, 0, NULL), XQOS_OK);
    mine = reservation_of(&c, XQOS_SELF);
    EXPECT_INT(mine.budget_us, BUDGET_US / 2);
    EXPECT_INT(mine.flags & XQOS_RESERVATION_HARD, 0);

    EXPECT_INT(xqos_clear_reservation(c.xqos, XQOS_SELF), XQOS_OK);
    EXPECT_INT(reservation_of(&c, XQOS_SELF).active, 0);
    EXPECT_INT(xqos_clear_reservation(c.xqos, XQOS_SELF), XQOS_OK);
    disconnect_client(&c);
}

static void any_resource_id_means_its_client(void)
{
    struct client a = connect_client(), b = connect_client();

    EXPECT_INT(xqos_set_reservation(a.xqos, b.base + 5, BUDGET_US, PERIOD_US, 0, NULL), XQOS_OK);
    EXPECT_INT(reservation_of(&b, XQOS_SELF).budget_us, BUDGET_US);
    EXPECT_INT(reservation_of(&a, XQOS_SELF).active, 0);
    EXPECT_INT(xqos_clear_reservation(a.xqos, b.base), XQOS_OK);
    EXPECT_INT(reservation_of(&b, XQOS_SELF).active, 0);
    disconnect_client(&a);
    disconnect_client(&b);
}

static void refusal_names_the_failing_term(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_admission refused = { .size = sizeof refused };
    uint32_t limit = server_info(&a).max_utilization_ppm;
    uint32_t most = (uint32_t)((uint64_t)PERIOD_US * limit / 1000000);

    EXPECT_INT(xqos_set_reservation(a.xqos, XQOS_SELF, most / 2, PERIOD_US, 0, NULL), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(b.xqos, XQOS_SELF, most / 2 + most / 10, PERIOD_US, 0, &refused),
               XQOS_ERR_ADMISSION);
    EXPECT_INT(refused.admitted, 0);
    EXPECT(refused.failing_client == a.base || refused.failing_client == b.base);
    EXPECT_INT(refused.failing_period_us, PERIOD_US);
    EXPECT_INT(refused.limit_ppm, limit);
    EXPECT(refused.sum_ppm + refused.blocking_ppm > refused.limit_ppm);
    /* Rounded either way. */
    EXPECT(refused.blocking_ppm - (uint64_t)refused.blocking_us * 1000000 / PERIOD_US <= 1);
    EXPECT_INT(reservation_of(&b, XQOS_SELF).active, 0);
    EXPECT_INT(reservation_of(&a, XQOS_SELF).budget_us, most / 2);
    disconnect_client(&a);
    disconnect_client(&b);
}

/* A refused change leaves the reservation that there was. */
static void refused_change_keeps_the_old_reservation(void)
{
    struct client c = connect_client();
    struct xqos_reservation mine;

    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, NULL), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, PERIOD_US, PERIOD_US, 0, NULL), XQOS_ERR_ADMISSION);
    mine = reservation_of(&c, XQOS_SELF);
    EXPECT_INT(mine.active, 1);
    EXPECT_INT(mine.budget_us, BUDGET_US);
    disconnect_client(&c);
}

static void check_says_what_set_would_and_changes_nothing(void)
{
    struct client c = connect_client();
    struct xqos_admission answer = { .size = sizeof answer };

    EXPECT_INT(xqos_check_admission(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, &answer), XQOS_OK);
    EXPECT_INT(answer.admitted, 1);
    EXPECT_INT(answer.sum_ppm, 100000);
    EXPECT(answer.sum_ppm + answer.blocking_ppm <= answer.limit_ppm);
    EXPECT_INT(answer.failing_client, c.base);
    EXPECT_INT(xqos_check_admission(c.xqos, XQOS_SELF, PERIOD_US, PERIOD_US, 0, &answer), XQOS_OK);
    EXPECT_INT(answer.admitted, 0);
    EXPECT_INT(answer.sum_ppm, 1000000);
    EXPECT_INT(reservation_of(&c, XQOS_SELF).active, 0);
    disconnect_client(&c);
}

static void bad_values_are_refused(void)
{
    struct client c = connect_client();
    struct xqos_server_info info = server_info(&c);
    struct xqos_admission untouched = { .size = sizeof untouched, .limit_ppm = 7 };
    const struct {
        uint32_t budget_us, period_us, flags;
    } bad[] = {
        { 0, PERIOD_US, 0 },
        { info.min_budget_us - 1, PERIOD_US, 0 },
        { PERIOD_US + 1, PERIOD_US, 0 },
        { info.min_budget_us, info.min_period_us - 1, 0 },
        { BUDGET_US, info.max_period_us + 1, 0 },
        { BUDGET_US, 0, 0 },
        { BUDGET_US, PERIOD_US, XQOS_RESERVATION_HELD_BACK },
        { BUDGET_US, PERIOD_US, 0x80000000 },
        { UINT32_MAX, UINT32_MAX, 0 },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, bad[i].budget_us, bad[i].period_us, bad[i].flags,
                                        &untouched),
                   XQOS_ERR_VALUE);
    EXPECT_INT(untouched.limit_ppm, 7);
    EXPECT_INT(reservation_of(&c, XQOS_SELF).active, 0);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 0), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 10001), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_priority(c.xqos, XQOS_SELF, 1001), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_priority(c.xqos, XQOS_SELF, -1001), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_select_events(c.xqos, 32), XQOS_ERR_VALUE);
    disconnect_client(&c);
}

static void dead_client_is_a_bad_value(void)
{
    struct client c = connect_client(), gone = connect_client();
    struct xqos_reservation out = { .size = sizeof out };
    struct xqos_admission answer = { .size = sizeof answer };
    uint32_t id = gone.base;
    int result = XQOS_OK;

    EXPECT_INT(xqos_set_reservation(gone.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, NULL), XQOS_OK);
    EXPECT_INT(server_info(&c).reservations, 1);
    disconnect_client(&gone);
    for (int waited = 0; result == XQOS_OK && waited < PATIENCE_MS; waited += 20) {
        pause_ms(20);
        result = xqos_get_reservation(c.xqos, id, &out);
    }
    EXPECT_INT(result, XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_reservation(c.xqos, id, BUDGET_US, PERIOD_US, 0, NULL), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_clear_reservation(c.xqos, id), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_check_admission(c.xqos, id, BUDGET_US, PERIOD_US, 0, &answer), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_weight(c.xqos, id, 100), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_priority(c.xqos, id, 0), XQOS_ERR_VALUE);
    EXPECT_INT(server_info(&c).reservations, 0);
    disconnect_client(&c);
}

/* ---- clients ----------------------------------------------------------------------------------------------- */

static void list_has_this_process(void)
{
    struct client c = connect_client();
    struct xqos_client entry;

    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT(find_client(&c, c.base, &entry));
    EXPECT_INT(entry.pid, getpid());
    EXPECT_INT(entry.uid, getuid());
    EXPECT_INT(entry.flags & XQOS_CLIENT_YOU, XQOS_CLIENT_YOU);
    EXPECT_INT(entry.flags & XQOS_CLIENT_LOCAL, XQOS_CLIENT_LOCAL);
    EXPECT_INT(entry.flags & XQOS_CLIENT_RESERVED, XQOS_CLIENT_RESERVED);
    EXPECT_INT(entry.flags & XQOS_CLIENT_HARD, XQOS_CLIENT_HARD);
    EXPECT_INT(entry.budget_us, BUDGET_US);
    EXPECT_INT(entry.period_us, PERIOD_US);
    EXPECT(strstr(entry.name, "server_test") != NULL);
    EXPECT(entry.requests > 0);
    EXPECT(entry.connected_ns > 0);
    disconnect_client(&c);
}

static void only_one_entry_is_you(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_client entry = { .size = sizeof entry };
    xqos_client_list_t *list = NULL;
    uint32_t you = 0;
    int count = 0;

    EXPECT_INT(xqos_list_clients(a.xqos, &list), XQOS_OK);
    while (xqos_client_list_next(list, &entry) > 0) {
        if (entry.flags & XQOS_CLIENT_YOU) {
            you = entry.client;
            count++;
        }
        EXPECT(entry.connected_ns <= xqos_client_list_now_ns(list));
    }
    EXPECT_INT(count, 1);
    EXPECT_INT(you, a.base);
    EXPECT(xqos_client_list_count(list) >= 2);
    xqos_client_list_free(list);
    disconnect_client(&a);
    disconnect_client(&b);
}

static void weight_and_priority_are_listed(void)
{
    struct client c = connect_client();
    struct xqos_client entry;

    EXPECT(find_client(&c, c.base, &entry));
    EXPECT_INT(entry.weight, 100);
    EXPECT_INT(entry.fixed_priority, 0);
    EXPECT_INT(xqos_set_client_weight(c.xqos, XQOS_SELF, 10000), XQOS_OK);
    EXPECT_INT(xqos_set_client_priority(c.xqos, XQOS_SELF, -1000), XQOS_OK);
    EXPECT(find_client(&c, c.base, &entry));
    EXPECT_INT(entry.weight, 10000);
    EXPECT_INT(entry.fixed_priority, -1000);
    disconnect_client(&c);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

/* The next event of this kind about this client; the others are passed over. */
static int wait_for(struct client *c, uint32_t kind, uint32_t about, struct xqos_event *out)
{
    struct pollfd fd = { .fd = xcb_get_file_descriptor(c->connection), .events = POLLIN };

    out->size = sizeof *out;
    for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
        xcb_generic_event_t *event;

        while ((event = xcb_poll_for_event(c->connection))) {
            int result = xqos_decode_event(c->xqos, event, out);
            free(event);
            if (result == XQOS_OK && out->kind == kind && out->client == about)
                return 1;
        }
        poll(&fd, 1, 20);
    }
    printf("    no event of kind %" PRIu32 " about client 0x%" PRIx32 " came within %d ms\n", kind, about, PATIENCE_MS);
    return 0;
}

static void reservations_are_told(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_event event;

    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_RESERVATIONS), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(a.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_RESERVATION_SET, a.base, &event));
    EXPECT_INT(event.pid, getpid());
    EXPECT_INT(event.budget_us, BUDGET_US);
    EXPECT_INT(event.period_us, PERIOD_US);
    EXPECT_INT(event.flags & XQOS_RESERVATION_HARD, XQOS_RESERVATION_HARD);
    EXPECT_INT(xqos_clear_reservation(a.xqos, XQOS_SELF), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_RESERVATION_CLEARED, a.base, &event));
    disconnect_client(&a);
    disconnect_client(&b);
}

static void clients_are_told(void)
{
    struct client listener = connect_client(), other;
    struct xqos_event event;
    uint32_t id;

    EXPECT_INT(xqos_select_events(listener.xqos, XQOS_EVENTS_CLIENTS), XQOS_OK);
    other = connect_client();
    id = other.base;
    EXPECT(wait_for(&listener, XQOS_EVENT_CLIENT_CONNECTED, id, &event));
    EXPECT_INT(event.pid, getpid());
    disconnect_client(&other);
    EXPECT(wait_for(&listener, XQOS_EVENT_CLIENT_GONE, id, &event));
    disconnect_client(&listener);
}

static void deselected_events_do_not_come(void)
{
    struct client a = connect_client(), b = connect_client();
    xcb_generic_event_t *event;

    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_RESERVATIONS), XQOS_OK);
    EXPECT_INT(xqos_select_events(b.xqos, 0), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(a.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, NULL), XQOS_OK);
    pause_ms(100);
    EXPECT_INT(xqos_query_version(b.xqos, NULL, NULL), XQOS_OK);
    event = xcb_poll_for_event(b.connection);
    EXPECT(event == NULL);
    free(event);
    disconnect_client(&a);
    disconnect_client(&b);
}

/* Work for the server: copies of the whole root, through a pixmap of the same size. */
static void keep_server_busy(struct client *c, int copies)
{
    xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(c->connection)).data;
    uint16_t width = screen->width_in_pixels, height = screen->height_in_pixels;
    xcb_pixmap_t pixmap = xcb_generate_id(c->connection);
    xcb_gcontext_t gc = xcb_generate_id(c->connection);

    xcb_create_pixmap(c->connection, screen->root_depth, pixmap, screen->root, width, height);
    xcb_create_gc(c->connection, gc, pixmap, 0, NULL);
    for (int i = 0; i < copies; i++)
        xcb_copy_area(c->connection, pixmap, pixmap, gc, 0, 0, 1, 1, width, height);
    xcb_free_gc(c->connection, gc);
    xcb_free_pixmap(c->connection, pixmap);
    EXPECT_INT(xqos_query_version(c->xqos, NULL, NULL), XQOS_OK);
}

static void depletions_are_told_and_counted(void)
{
    struct client worker = connect_client(), listener = connect_client();
    uint32_t budget = server_info(&worker).min_budget_us;
    struct xqos_event event;

    EXPECT_INT(xqos_select_events(listener.xqos, XQOS_EVENTS_DEPLETIONS), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(worker.xqos, XQOS_SELF, budget, PERIOD_US, 0, NULL), XQOS_OK);
    keep_server_busy(&worker, 400);
    EXPECT(wait_for(&listener, XQOS_EVENT_DEPLETED, worker.base, &event));
    EXPECT(event.count >= 1);
    EXPECT(reservation_of(&worker, XQOS_SELF).depletions >= 1);
    disconnect_client(&worker);
    disconnect_client(&listener);
}

/* ---- requests as no library sends them --------------------------------------------------------------------- */

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
    } requests[] = { { 0, 12 }, { 1, 4 }, { 2, 20 }, { 3, 8 }, { 4, 8 }, { 5, 20 }, { 6, 4 }, { 7, 32 }, { 8, 12 },
                     { 9, 12 }, { 10, 8 }, { 11, 12 }, { 12, 4 }, { 13, 4 } };
    struct client c = connect_client();

    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        EXPECT_INT(send_raw(&c, requests[i].opcode, requests[i].bytes + 4), XCB_LENGTH);
        /* A request of nothing but its header cannot be shorter. */
        if (requests[i].bytes > 4)
            EXPECT_INT(send_raw(&c, requests[i].opcode, requests[i].bytes - 4), XCB_LENGTH);
    }
    EXPECT_INT(send_raw(&c, 20, 4), XCB_REQUEST);
    EXPECT_INT(send_raw(&c, 255, 4), XCB_REQUEST);
    disconnect_client(&c);
}

/* ---- xrt --------------------------------------------------------------------------------------------------- */

static void xrt_goes_round(void)
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

#define RUN(test) (test(), end_of_test(#test))

static void run_stock(void)
{
    RUN(stock_server_has_no_extension);
    RUN(stock_server_has_no_xrt);
}

static void run_all(void)
{
    RUN(server_is_armed_and_says_its_ranges);
    RUN(policy_is_set_and_read_back);
    RUN(settings_are_set_and_read_back);
    RUN(bad_settings_change_nothing);
    set_blocking(500);
    end_of_test("set_blocking");
    RUN(reservation_of_self_is_read_back);
    RUN(any_resource_id_means_its_client);
    RUN(refusal_names_the_failing_term);
    RUN(refused_change_keeps_the_old_reservation);
    RUN(check_says_what_set_would_and_changes_nothing);
    RUN(bad_values_are_refused);
    RUN(dead_client_is_a_bad_value);
    RUN(list_has_this_process);
    RUN(only_one_entry_is_you);
    RUN(weight_and_priority_are_listed);
    RUN(reservations_are_told);
    RUN(clients_are_told);
    RUN(deselected_events_do_not_come);
    RUN(depletions_are_told_and_counted);
    RUN(wrong_lengths_and_opcodes_are_refused);
    RUN(xrt_goes_round);
    set_blocking(0);
    end_of_test("set_blocking back");
}

int main(int argc, char **argv)
{
    /* A server that does not answer must not hold the test for ever. */
    alarm(60);
    if (argc > 1 && strcmp(argv[1], "stock") == 0)
        run_stock();
    else
        run_all();
    printf("server_test: %d failed\n", failed_tests);
    return failed_tests != 0;
}
