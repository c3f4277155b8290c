/* SPDX-License-Identifier: MIT */
/* live_clients.c: tests the list of clients and the events of a real server. */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "context.h"
#include "expect.h"
#include "live.h"

/* Returns 0 if the list does not contain the client. */
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

static void list_has_this_process(void)
{
    struct client c = connect_client(), other;
    struct xqos_client entry;

    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    /* The requests of a slice are counted when it ends, because another client is served. */
    other = connect_client();
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
    disconnect_client(&other);
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

static void groups_and_their_settings_are_listed(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_client entry;

    EXPECT_INT(xqos_set_client_group(a.xqos, XQOS_SELF, "film"), XQOS_OK);
    EXPECT_INT(xqos_set_client_group(a.xqos, b.base, "film"), XQOS_OK);
    EXPECT_INT(xqos_set_group_weight(a.xqos, b.base, 50), XQOS_OK);
    EXPECT_INT(xqos_set_group_cap(b.xqos, XQOS_SELF, 900000), XQOS_OK);
    EXPECT_INT(xqos_set_client_pacing(a.xqos, XQOS_SELF, XQOS_PACING_NEVER), XQOS_OK);
    EXPECT(find_client(&b, a.base, &entry));
    EXPECT_STRING(entry.group_name, "film");
    EXPECT_STRING(entry.settings_origin, "itself");
    EXPECT_STRING(entry.host, "");
    EXPECT_INT(entry.group_weight, 50);
    EXPECT_INT(entry.group_cap_ppm, 900000);
    EXPECT(entry.group > 0);
    EXPECT_INT(entry.flags & XQOS_CLIENT_NEVER_PACED, XQOS_CLIENT_NEVER_PACED);
    EXPECT_INT(xqos_set_client_group(a.xqos, XQOS_SELF, ":none"), XQOS_OK);
    EXPECT(find_client(&b, a.base, &entry));
    EXPECT_INT(entry.group, 0);
    EXPECT_INT(xqos_set_group_cap(a.xqos, XQOS_SELF, 900000), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_client_group(a.xqos, XQOS_SELF, ":all"), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_group_cap(b.xqos, XQOS_SELF, 9999), XQOS_ERR_VALUE);
    disconnect_client(&a);
    disconnect_client(&b);
}

static void the_reservation_of_a_group_is_listed_for_its_clients(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_admission refused = { .size = sizeof refused, .limit_ppm = 7 };
    struct xqos_client entry;

    EXPECT_INT(xqos_set_client_group(a.xqos, XQOS_SELF, "film"), XQOS_OK);
    EXPECT_INT(xqos_set_client_group(a.xqos, b.base, "film"), XQOS_OK);
    EXPECT_INT(xqos_set_group_reservation(a.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT(find_client(&a, b.base, &entry));
    EXPECT_INT(entry.group_budget_us, BUDGET_US);
    EXPECT_INT(entry.group_period_us, PERIOD_US);
    EXPECT_INT(entry.flags & (XQOS_CLIENT_GROUP_HARD | XQOS_CLIENT_RESERVED), XQOS_CLIENT_GROUP_HARD);
    EXPECT_INT(reservation_of(&b, XQOS_SELF).active, 0);

    EXPECT_INT(xqos_set_group_reservation(b.xqos, XQOS_SELF, PERIOD_US, PERIOD_US, 0, &refused), XQOS_ERR_ADMISSION);
    EXPECT(refused.failing_client == a.base || refused.failing_client == b.base);
    EXPECT(refused.sum_ppm + refused.blocking_ppm > refused.limit_ppm && refused.limit_ppm > 0);
    EXPECT_INT(xqos_set_group_reservation(b.xqos, XQOS_SELF, PERIOD_US + 1, PERIOD_US, 0, NULL), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_group_reservation(b.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 2, NULL), XQOS_ERR_VALUE);
    EXPECT(find_client(&a, b.base, &entry));
    EXPECT_INT(entry.group_budget_us, BUDGET_US);

    EXPECT_INT(xqos_clear_group_reservation(b.xqos, XQOS_SELF), XQOS_OK);
    EXPECT_INT(xqos_clear_group_reservation(b.xqos, a.base), XQOS_OK);
    EXPECT(find_client(&a, b.base, &entry));
    EXPECT_INT(entry.group_budget_us, 0);
    EXPECT_INT(entry.group_period_us, 0);
    EXPECT_INT(entry.flags & XQOS_CLIENT_GROUP_HARD, 0);
    disconnect_client(&a);
    disconnect_client(&b);
}

static void a_client_without_a_group_cannot_reserve_for_it(void)
{
    struct client c = connect_client();

    EXPECT_INT(xqos_set_client_group(c.xqos, XQOS_SELF, ":none"), XQOS_OK);
    EXPECT_INT(xqos_set_group_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, NULL), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_clear_group_reservation(c.xqos, XQOS_SELF), XQOS_ERR_VALUE);
    disconnect_client(&c);
}

/* Each wait is counted once, in the class for its length, at the end of the slice. A quick client's requests can all be
 * in one slice, so another client asks. */
static void waits_are_counted(void)
{
    struct client c = connect_client(), other = connect_client();
    struct xqos_client entry;
    uint64_t before = 0, after = 0;

    EXPECT(find_client(&other, c.base, &entry));
    for (int i = 0; i < XQOS_WAITS; i++)
        before += entry.waits[i];
    for (int i = 0; i < 20; i++)
        EXPECT_INT(xqos_query_version(c.xqos, NULL, NULL), XQOS_OK);
    free(xcb_get_input_focus_reply(c.connection, xcb_get_input_focus(c.connection), NULL));
    EXPECT(find_client(&other, c.base, &entry));
    for (int i = 0; i < XQOS_WAITS; i++)
        after += entry.waits[i];
    EXPECT(after > before);
    EXPECT(after <= entry.slices);
    EXPECT_INT(entry.long_grabs, 0);
    disconnect_client(&c);
    disconnect_client(&other);
}

static void grouping_and_user_limit_are_set_and_read_back(void)
{
    struct client c = connect_client();
    struct xqos_groups before = { .size = sizeof before }, after = { .size = sizeof after };

    EXPECT_INT(xqos_get_groups(c.xqos, &before), XQOS_OK);
    EXPECT_INT(xqos_set_groups(c.xqos, XQOS_GROUPING_USER, 300000), XQOS_OK);
    EXPECT_INT(xqos_get_groups(c.xqos, &after), XQOS_OK);
    EXPECT_INT(after.grouping, XQOS_GROUPING_USER);
    EXPECT_INT(after.user_limit_ppm, 300000);
    EXPECT_INT(xqos_set_groups(c.xqos, 3, 0), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_groups(c.xqos, XQOS_GROUPING_USER, 950001), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_set_groups(c.xqos, before.grouping, before.user_limit_ppm), XQOS_OK);
    disconnect_client(&c);
}

/* A leased setting ends with its client's connection, and never replaces a setting made without a lease. */
static void leases_end_with_their_connection(void)
{
    struct client maker = connect_client(), other = connect_client();
    struct xqos_client entry;
    int waited = 0;

    EXPECT_INT(xqos_set_origin(maker.xqos, "rule test", 1), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(maker.xqos, other.base, 300), XQOS_OK);
    EXPECT_INT(xqos_set_client_group(maker.xqos, other.base, "film"), XQOS_OK);
    EXPECT_INT(xqos_set_client_priority(other.xqos, XQOS_SELF, 7), XQOS_OK);
    EXPECT_INT(xqos_set_client_priority(maker.xqos, other.base, 8), XQOS_ERR_ACCESS);
    EXPECT(find_client(&other, other.base, &entry));
    EXPECT_INT(entry.weight, 300);
    EXPECT_STRING(entry.group_name, "film");
    disconnect_client(&maker);
    do {
        EXPECT(find_client(&other, other.base, &entry));
        pause_ms(20);
        waited += 20;
    } while (entry.weight != 100 && waited < PATIENCE_MS);
    EXPECT_INT(entry.weight, 100);
    EXPECT_INT(entry.fixed_priority, 7);
    EXPECT(strcmp(entry.group_name, "film") != 0);
    EXPECT_STRING(entry.settings_origin, "itself");
    disconnect_client(&other);
}

void test_clients(void)
{
    RUN(groups_and_their_settings_are_listed);
    RUN(the_reservation_of_a_group_is_listed_for_its_clients);
    RUN(a_client_without_a_group_cannot_reserve_for_it);
    RUN(waits_are_counted);
    RUN(grouping_and_user_limit_are_set_and_read_back);
    RUN(leases_end_with_their_connection);
    RUN(list_has_this_process);
    RUN(only_one_entry_is_you);
    RUN(weight_and_priority_are_listed);
}

/* Gets an event from either transport. */
static int take_event(struct client *c, struct xqos_event *out)
{
    xcb_generic_event_t *event;
    int result = 0;

    while (!result && (event = xcb_poll_for_event(c->connection))) {
        result = xqos_decode_event(c->xqos, event, out) == XQOS_OK;
        free(event);
    }
    return result ? result : xqos_next_event(c->xqos, out);
}

/* Waits for an event of this kind about this client, and skips all others. */
static int wait_for(struct client *c, uint32_t kind, uint32_t about, struct xqos_event *out)
{
    struct pollfd fds[2] = {
        { .fd = xcb_get_file_descriptor(c->connection), .events = POLLIN },
        { .fd = xqos_event_descriptor(c->xqos), .events = POLLIN },
    };

    EXPECT_INT(xqos_event_descriptor(c->xqos) >= 0, uses_socket);
    out->size = sizeof *out;
    for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
        while (take_event(c, out) > 0)
            if (out->kind == kind && out->client == about)
                return 1;
        poll(fds, 2, 20);
    }
    printf("    no event of kind %" PRIu32 " about client 0x%" PRIx32 " came within %d ms\n", kind, about, PATIENCE_MS);
    return 0;
}

static void reservations_cause_events(void)
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

static void settings_cause_events(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_event event;

    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_SETTINGS), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(a.xqos, XQOS_SELF, 200), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_SETTINGS, a.base, &event));
    EXPECT_INT(xqos_set_client_group(a.xqos, XQOS_SELF, "film"), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_SETTINGS, a.base, &event));
    disconnect_client(&a);
    disconnect_client(&b);
}

static void a_mark_has_the_effect_of_an_expose(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_event event;

    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_EXPOSES), XQOS_OK);
    EXPECT_INT(xqos_mark_exposing(a.xqos, XQOS_SELF), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_EXPOSING, a.base, &event));
    free(xcb_get_input_focus_reply(a.connection, xcb_get_input_focus(a.connection), NULL));
    EXPECT(wait_for(&b, XQOS_EVENT_ANSWERED, a.base, &event));
    EXPECT_INT(xqos_mark_exposing(a.xqos, 0x7fe00000), XQOS_ERR_VALUE);
    EXPECT_INT(xqos_mark_exposing(NULL, XQOS_SELF), XQOS_ERR_ARGUMENT);
    disconnect_client(&a);
    disconnect_client(&b);
}

static void clients_cause_events(void)
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

static void deselected_events_are_not_sent(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_event event = { .size = sizeof event };

    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_RESERVATIONS), XQOS_OK);
    EXPECT_INT(xqos_select_events(b.xqos, 0), XQOS_OK);
    EXPECT_INT(xqos_set_reservation(a.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, NULL), XQOS_OK);
    pause_ms(100);
    EXPECT_INT(xqos_query_version(b.xqos, NULL, NULL), XQOS_OK);
    EXPECT_INT(take_event(&b, &event), 0);
    disconnect_client(&a);
    disconnect_client(&b);
}

/* A context with an origin has a connection for requests, besides the one for events. */
static void events_arrive_over_their_own_connection_only(void)
{
    struct client a = connect_client(), b = connect_client();
    struct xqos_event event;
    int unread = -1;

    EXPECT_INT(xqos_set_origin(b.xqos, "rule test", 0), XQOS_OK);
    EXPECT_INT(xqos_select_events(b.xqos, XQOS_EVENTS_SETTINGS), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(a.xqos, XQOS_SELF, 200), XQOS_OK);
    EXPECT(wait_for(&b, XQOS_EVENT_SETTINGS, a.base, &event));
    if (uses_socket) {
        EXPECT_INT(ioctl(atomic_load(&b.xqos->requests), FIONREAD, &unread), 0);
        EXPECT_INT(unread, 0);
    }
    disconnect_client(&a);
    disconnect_client(&b);
}

/* Keeps the server busy with copies of the whole root window through a pixmap of the same size. */
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
    /* The answer arrives only after the copies are made. */
    free(xcb_get_input_focus_reply(c->connection, xcb_get_input_focus(c->connection), NULL));
}

static void depletions_cause_events_and_are_counted(void)
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

void test_events(void)
{
    RUN(reservations_cause_events);
    RUN(settings_cause_events);
    RUN(a_mark_has_the_effect_of_an_expose);
    RUN(clients_cause_events);
    RUN(deselected_events_are_not_sent);
    RUN(events_arrive_over_their_own_connection_only);
    RUN(depletions_cause_events_and_are_counted);
}
