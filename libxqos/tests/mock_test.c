/* mock_test.c: the library against the mock server: every byte out, every field in, every error.
 *
 * Offsets are written here as in proto/xqosproto.md, not taken from the library's wire.h, so that a slip in one of
 * the two shows.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "mock.h"
#include "xqos.h"
#include "xrt.h"

/* Core error codes. */
enum { BAD_REQUEST = 1, BAD_VALUE = 2, BAD_WINDOW = 3, BAD_ACCESS = 10, BAD_ALLOC = 11, BAD_LENGTH = 16 };

struct fixture {
    struct mock *mock;
    xcb_connection_t *connection;
    xqos_t *xqos;
};

static struct fixture open_fixture(void)
{
    struct fixture f = { .mock = mock_start(1, 1) };

    f.connection = mock_connect(f.mock);
    EXPECT_INT(xqos_open(f.connection, &f.xqos), XQOS_OK);
    if (!f.xqos)
        exit(1);
    return f;
}

static void close_fixture(struct fixture *f)
{
    xqos_close(f->xqos);
    xcb_disconnect(f->connection);
    mock_stop(f->mock);
}

static void put16(uint8_t *to, uint16_t value) { memcpy(to, &value, sizeof value); }
static void put32(uint8_t *to, uint32_t value) { memcpy(to, &value, sizeof value); }
static void put64(uint8_t *to, uint64_t value) { memcpy(to, &value, sizeof value); }

/* The request seen is the header and these words. */
static void expect_request(struct fixture *f, int index, uint8_t minor, int count, const uint32_t *words)
{
    size_t bytes = 0;
    const uint8_t *seen = mock_seen(f->mock, index, &bytes);
    uint16_t length = 0;

    EXPECT(seen != NULL);
    if (!seen)
        return;
    memcpy(&length, seen + 2, sizeof length);
    EXPECT_INT(seen[0], MOCK_OPCODE);
    EXPECT_INT(seen[1], minor);
    EXPECT_INT(length, 1 + count);
    EXPECT_INT(bytes, 4 * (1 + count));
    EXPECT(memcmp(seen + 4, words, (size_t)count * 4) == 0);
}

#define EXPECT_REQUEST(f, index, minor, ...)                                                                          \
    expect_request(f, index, minor, (int)(sizeof((uint32_t[]) { __VA_ARGS__ }) / 4), (uint32_t[]) { __VA_ARGS__ })

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

static void broken_connection_is_told(void)
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

static void connection_lost_in_a_void_request_is_told(void)
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
    EXPECT_INT(xqos_client_list_count(NULL), 0);
    xqos_client_list_free(NULL);
    xqos_close(NULL);
    EXPECT(mock_seen(f.mock, 0, &bytes) == NULL);
    close_fixture(&f);
}

/* ---- the requests without a reply -------------------------------------------------------------------------- */

static void void_requests_have_their_bytes(void)
{
    struct fixture f = open_fixture();
    struct xqos_policy_change change = {
        .size = sizeof change, .mask = 63, .policy = XQOS_POLICY_FAIR, .slice_us = 5000, .timer_interval_us = 1000,
        .maximum_slice_us = 20000, .max_utilization_ppm = 900000, .blocking_us = 7000,
    };
    uint8_t policy_word[4] = { XQOS_POLICY_FAIR, 0, 0, 0 };
    uint32_t first;

    memcpy(&first, policy_word, sizeof first);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0x600001, 3000, 10000, XQOS_RESERVATION_HARD, NULL), XQOS_OK);
    EXPECT_INT(xqos_clear_reservation(f.xqos, 0x600002), XQOS_OK);
    EXPECT_INT(xqos_set_policy(f.xqos, &change), XQOS_OK);
    EXPECT_INT(xqos_set_client_weight(f.xqos, 0x600003, 250), XQOS_OK);
    EXPECT_INT(xqos_set_client_priority(f.xqos, XQOS_SELF, -7), XQOS_OK);
    EXPECT_INT(xqos_select_events(f.xqos, 15), XQOS_OK);

    EXPECT_REQUEST(&f, 0, 2, 0x600001, 3000, 10000, 1);
    EXPECT_REQUEST(&f, 1, 4, 0x600002);
    EXPECT_REQUEST(&f, 2, 7, first, 63, 5000, 1000, 20000, 900000, 7000);
    EXPECT_REQUEST(&f, 3, 8, 0x600003, 250);
    EXPECT_REQUEST(&f, 4, 9, 0, (uint32_t)-7);
    EXPECT_REQUEST(&f, 5, 10, 15);
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

static void large_policy_number_is_not_cut(void)
{
    struct fixture f = open_fixture();
    struct xqos_policy_change change = { .size = sizeof change, .mask = XQOS_SET_POLICY, .policy = 256 + 2 };
    size_t bytes;

    EXPECT_INT(xqos_set_policy(f.xqos, &change), XQOS_ERR_VALUE);
    EXPECT(mock_seen(f.mock, 0, &bytes) == NULL);
    close_fixture(&f);
}

static void every_result_has_its_sentence(void)
{
    for (int error = 0; error >= XQOS_ERR_EVENT; error--) {
        EXPECT(strcmp(xqos_strerror(error), "unknown error") != 0);
        for (int other = 0; other > error; other--)
            EXPECT(strcmp(xqos_strerror(error), xqos_strerror(other)) != 0);
    }
    EXPECT_STRING(xqos_strerror(XQOS_ERR_EVENT - 1), "unknown error");
    EXPECT_STRING(xqos_strerror(1), "unknown error");
}

/* ---- the replies ------------------------------------------------------------------------------------------- */

static void server_info_reply(uint8_t reply[96], uint8_t reason_len, uint32_t words)
{
    memset(reply, 0, 96);
    reply[0] = 1;
    reply[1] = 1;
    put32(reply + 4, words);
    put32(reply + 8, 4242);
    reply[12] = XQOS_POLICY_SMART;
    reply[13] = reason_len;
    put16(reply + 14, 300);
    for (uint32_t i = 0; i < 10; i++)
        put32(reply + 16 + 4 * i, 1000 + i);
    for (uint64_t i = 0; i < 4; i++)
        put64(reply + 56 + 8 * i, (i + 1) << 33);
    put32(reply + 88, 65536);
    put32(reply + 92, 12);
}

static void server_info_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_server_info info = { .size = sizeof info };
    uint8_t reply[96 + 8];

    server_info_reply(reply, 5, (sizeof reply - 32) / 4);
    memcpy(reply + 96, "panic\x7f\x7f\x7f", 8);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_OK);
    expect_request(&f, 0, 1, 0, (uint32_t[]) { 0 });
    EXPECT_INT(info.size, sizeof info);
    EXPECT_INT(info.armed, 1);
    EXPECT_INT(info.server_pid, 4242);
    EXPECT_INT(info.policy, XQOS_POLICY_SMART);
    EXPECT_INT(info.clients, 300);
    EXPECT_INT(info.max_utilization_ppm, 1000);
    EXPECT_INT(info.admitted_utilization_ppm, 1001);
    EXPECT_INT(info.blocking_observed_us, 1002);
    EXPECT_INT(info.blocking_configured_us, 1003);
    EXPECT_INT(info.min_budget_us, 1004);
    EXPECT_INT(info.min_period_us, 1005);
    EXPECT_INT(info.max_period_us, 1006);
    EXPECT_INT(info.slice_us, 1007);
    EXPECT_INT(info.timer_interval_us, 1008);
    EXPECT_INT(info.maximum_slice_us, 1009);
    EXPECT_INT(info.uptime_ns, 1LL << 33);
    EXPECT_INT(info.busy_ns, 2LL << 33);
    EXPECT_INT(info.decisions, 3LL << 33);
    EXPECT_INT(info.early_ends, 4LL << 33);
    EXPECT_INT(info.memory_bytes, 65536);
    EXPECT_INT(info.reservations, 12);
    EXPECT_INT(info.reason_len, 5);
    EXPECT_STRING(info.reason, "panic");
    close_fixture(&f);
}

static void longest_reason_ends_with_zero(void)
{
    struct fixture f = open_fixture();
    struct xqos_server_info info = { .size = sizeof info };
    uint8_t reply[96 + 256];

    server_info_reply(reply, 255, (sizeof reply - 32) / 4);
    memset(reply + 96, 'x', 256);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_OK);
    EXPECT_INT(strlen(info.reason), 255);
    close_fixture(&f);
}

static void short_replies_are_refused(void)
{
    struct fixture f = open_fixture();
    struct xqos_server_info info = { .size = sizeof info };
    struct xqos_reservation reservation = { .size = sizeof reservation };
    uint8_t reply[96];
    uint8_t plain[32] = { 1 };

    server_info_reply(reply, 5, (sizeof reply - 32) / 4);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_ERR_LENGTH);
    mock_answer(f.mock, plain, sizeof plain);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_ERR_LENGTH);
    mock_answer(f.mock, plain, sizeof plain);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &reservation), XQOS_ERR_LENGTH);
    close_fixture(&f);
}

static void reservation_reply(uint8_t reply[48])
{
    memset(reply, 0, 48);
    reply[0] = 1;
    reply[1] = 1;
    put32(reply + 4, 4);
    put32(reply + 8, 3000);
    put32(reply + 12, 10000);
    put32(reply + 16, 3);
    put32(reply + 20, 17);
    put64(reply + 24, (uint64_t)-1500);
    put64(reply + 32, 5000000000123);
    put32(reply + 40, 2);
}

static void reservation_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_reservation out = { .size = sizeof out };
    uint8_t reply[48];

    reservation_reply(reply);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0x600000, &out), XQOS_OK);
    EXPECT_REQUEST(&f, 0, 3, 0x600000);
    EXPECT_INT(out.active, 1);
    EXPECT_INT(out.client, 0x600000);
    EXPECT_INT(out.budget_us, 3000);
    EXPECT_INT(out.period_us, 10000);
    EXPECT_INT(out.flags, XQOS_RESERVATION_HARD | XQOS_RESERVATION_HELD_BACK);
    EXPECT_INT(out.depletions, 17);
    EXPECT_INT(out.misses, 2);
    EXPECT_INT(out.budget_left_ns, -1500);
    EXPECT_INT(out.deadline_ns, 5000000000123);
    close_fixture(&f);
}

static void no_reservation_reads_as_zeros(void)
{
    struct fixture f = open_fixture();
    struct xqos_reservation out = { .size = sizeof out, .budget_us = 5, .active = 1 };
    uint8_t reply[48];

    reservation_reply(reply);
    reply[1] = 0;
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out), XQOS_OK);
    EXPECT_INT(out.active, 0);
    EXPECT_INT(out.budget_us, 0);
    EXPECT_INT(out.deadline_ns, 0);
    close_fixture(&f);
}

/* A program compiled against a later library, with a longer structure, finds zeros in what this one does not know. */
static void longer_structure_is_filled_with_zeros(void)
{
    struct fixture f = open_fixture();
    struct {
        struct xqos_reservation known;
        uint64_t later[2];
        uint64_t after;
    } out = { .known = { .size = sizeof out.known + sizeof out.later }, .later = { 1, 1 }, .after = 7 };
    uint8_t reply[48];

    reservation_reply(reply);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out.known), XQOS_OK);
    EXPECT_INT(out.known.size, sizeof out.known + sizeof out.later);
    EXPECT_INT(out.known.deadline_ns, 5000000000123);
    EXPECT_INT(out.later[0], 0);
    EXPECT_INT(out.later[1], 0);
    EXPECT_INT(out.after, 7);
    close_fixture(&f);
}

/* ---- admission --------------------------------------------------------------------------------------------- */

static void admission_reply(uint8_t reply[32], uint8_t admitted)
{
    memset(reply, 0, 32);
    reply[0] = 1;
    reply[1] = admitted;
    put32(reply + 8, 0x800000);
    put32(reply + 12, 20000);
    put32(reply + 16, 850000);
    put32(reply + 20, 100000);
    put32(reply + 24, 900000);
    put32(reply + 28, 2000);
}

static void admission_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission out = { .size = sizeof out };
    uint8_t reply[32];

    admission_reply(reply, 1);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_check_admission(f.xqos, 0x600000, 8000, 10000, 0, &out), XQOS_OK);
    EXPECT_REQUEST(&f, 0, 5, 0x600000, 8000, 10000, 0);
    EXPECT_INT(out.admitted, 1);
    EXPECT_INT(out.failing_client, 0x800000);
    EXPECT_INT(out.failing_period_us, 20000);
    EXPECT_INT(out.sum_ppm, 850000);
    EXPECT_INT(out.blocking_ppm, 100000);
    EXPECT_INT(out.limit_ppm, 900000);
    EXPECT_INT(out.blocking_us, 2000);
    close_fixture(&f);
}

static void refusal_brings_the_failing_term(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission refused = { .size = sizeof refused };
    uint8_t reply[32];

    admission_reply(reply, 0);
    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 1, &refused), XQOS_ERR_ADMISSION);
    EXPECT_REQUEST(&f, 0, 2, 0, 8000, 10000, 1);
    EXPECT_REQUEST(&f, 1, 5, 0, 8000, 10000, 1);
    EXPECT_INT(refused.admitted, 0);
    EXPECT_INT(refused.failing_client, 0x800000);
    EXPECT_INT(refused.sum_ppm, 850000);
    EXPECT_INT(refused.limit_ppm, 900000);
    close_fixture(&f);
}

/* Between the refusal and the question another reservation may have ended. */
static void refusal_whose_cause_is_gone_names_the_client(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission refused = { .size = sizeof refused };
    uint8_t reply[32];

    admission_reply(reply, 1);
    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0xa00000);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 0, &refused), XQOS_ERR_ADMISSION);
    EXPECT_INT(refused.admitted, 0);
    EXPECT_INT(refused.failing_client, 0xa00000);
    EXPECT_INT(refused.limit_ppm, 0);
    close_fixture(&f);
}

static void refusal_without_interest_asks_nothing_more(void)
{
    struct fixture f = open_fixture();
    size_t bytes;

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 0, NULL), XQOS_ERR_ADMISSION);
    EXPECT(mock_seen(f.mock, 1, &bytes) == NULL);
    close_fixture(&f);
}

/* ---- the list ---------------------------------------------------------------------------------------------- */

enum { ENTRY = 176, LATER_ENTRY = 180 };

static void put_entry(uint8_t *entry, uint32_t client)
{
    put32(entry, client);
    put32(entry + 4, 1234);
    put32(entry + 8, 1000);
    put32(entry + 12, (uint32_t)-5);
    put32(entry + 16, 150);
    put32(entry + 20, (uint32_t)-9);
    put32(entry + 24, 127);
    for (uint32_t i = 0; i < 4; i++)
        put32(entry + 28 + 4 * i, 100 + i);
    put32(entry + 44, 139 + 65536 * 11);
    put64(entry + 48, (uint64_t)-42);
    for (uint64_t i = 0; i < 10; i++)
        put64(entry + 56 + 8 * i, (i + 1) << 40);
    memcpy(entry + 144, "xclock", 6);
}

static size_t list_reply(uint8_t *reply, uint32_t count, uint32_t entry_bytes)
{
    size_t bytes = 32 + (size_t)count * entry_bytes;

    memset(reply, 0, bytes);
    reply[0] = 1;
    put32(reply + 4, (uint32_t)(bytes - 32) / 4);
    put32(reply + 8, count);
    put32(reply + 12, entry_bytes);
    put64(reply + 16, 987654321012);
    for (uint32_t i = 0; i < count; i++)
        put_entry(reply + 32 + (size_t)i * entry_bytes, 0x200000 * (i + 1));
    return bytes;
}

static void expect_entry(const struct xqos_client *client)
{
    EXPECT_INT(client->pid, 1234);
    EXPECT_INT(client->uid, 1000);
    EXPECT_INT(client->sync_priority, -5);
    EXPECT_INT(client->weight, 150);
    EXPECT_INT(client->fixed_priority, -9);
    EXPECT_INT(client->flags, 127);
    EXPECT_INT(client->budget_us, 100);
    EXPECT_INT(client->period_us, 101);
    EXPECT_INT(client->depletions, 102);
    EXPECT_INT(client->misses, 103);
    EXPECT_INT(client->longest_request_major, 139);
    EXPECT_INT(client->longest_request_minor, 11);
    EXPECT_INT(client->budget_left_ns, -42);
    EXPECT_INT(client->deadline_ns, 1LL << 40);
    EXPECT_INT(client->server_time_ns, 2LL << 40);
    EXPECT_INT(client->reserved_time_ns, 3LL << 40);
    EXPECT_INT(client->requests, 4LL << 40);
    EXPECT_INT(client->slices, 5LL << 40);
    EXPECT_INT(client->waited_ns, 6LL << 40);
    EXPECT_INT(client->longest_wait_ns, 7LL << 40);
    EXPECT_INT(client->longest_request_ns, 8LL << 40);
    EXPECT_INT(client->connected_ns, 9LL << 40);
    EXPECT_INT(client->grabbed_ns, 10LL << 40);
}

/* entry_bytes may grow in a later version, and not by multiples of 8. */
static void walk_list(uint32_t entry_bytes)
{
    struct fixture f = open_fixture();
    struct xqos_client client = { .size = sizeof client };
    xqos_client_list_t *list = NULL;
    uint8_t reply[32 + 3 * LATER_ENTRY];
    size_t bytes = list_reply(reply, 3, entry_bytes);

    mock_answer(f.mock, reply, bytes);
    EXPECT_INT(xqos_list_clients(f.xqos, &list), XQOS_OK);
    expect_request(&f, 0, 6, 0, (uint32_t[]) { 0 });
    EXPECT_INT(xqos_client_list_count(list), 3);
    EXPECT_INT(xqos_client_list_now_ns(list), 987654321012);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(xqos_client_list_next(list, &client), 1);
        EXPECT_INT(client.client, 0x200000 * (i + 1));
        expect_entry(&client);
        EXPECT_STRING(client.name, "xclock");
    }
    EXPECT_INT(xqos_client_list_next(list, &client), 0);
    xqos_client_list_rewind(list);
    EXPECT_INT(xqos_client_list_next(list, &client), 1);
    EXPECT_INT(client.client, 0x200000);
    xqos_client_list_free(list);
    close_fixture(&f);
}

static void list_is_walked(void)
{
    walk_list(ENTRY);
}

static void list_of_later_version_is_walked(void)
{
    walk_list(LATER_ENTRY);
}

static void name_of_32_bytes_ends_with_zero(void)
{
    struct fixture f = open_fixture();
    struct xqos_client client = { .size = sizeof client };
    xqos_client_list_t *list = NULL;
    uint8_t reply[32 + ENTRY];

    list_reply(reply, 1, ENTRY);
    memset(reply + 32 + 144, 'n', 32);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_list_clients(f.xqos, &list), XQOS_OK);
    EXPECT_INT(xqos_client_list_next(list, &client), 1);
    EXPECT_INT(strlen(client.name), 32);
    xqos_client_list_free(list);
    close_fixture(&f);
}

static void list_beyond_its_reply_is_refused(void)
{
    static const struct {
        uint32_t count, entry_bytes;
        int result;
    } cases[] = {
        { 3, ENTRY, XQOS_ERR_LENGTH },      { 2, ENTRY + 4, XQOS_ERR_LENGTH },    { 2, ENTRY - 8, XQOS_ERR_LENGTH },
        { 2, 0, XQOS_ERR_LENGTH },          { 0xffffffff, ENTRY, XQOS_ERR_LENGTH }, { 1, 0xffffffff, XQOS_ERR_LENGTH },
        { 0x18000000, 0x18000000, XQOS_ERR_LENGTH }, { 0, 0, XQOS_OK },            { 1, ENTRY, XQOS_OK },
    };
    struct fixture f = open_fixture();
    uint8_t reply[32 + 2 * ENTRY];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        xqos_client_list_t *list = NULL;

        list_reply(reply, 2, ENTRY);
        put32(reply + 8, cases[i].count);
        put32(reply + 12, cases[i].entry_bytes);
        mock_answer(f.mock, reply, sizeof reply);
        EXPECT_INT(xqos_list_clients(f.xqos, &list), cases[i].result);
        EXPECT_INT(list != NULL, cases[i].result == XQOS_OK);
        xqos_client_list_free(list);
    }
    close_fixture(&f);
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

static void foreign_events_are_not_taken(void)
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

static void xrt_reserves_and_reads_back(void)
{
    struct fixture f = { .mock = mock_start(1, 1) };
    Display *display = XOpenDisplay(mock_display(f.mock));
    RTProperty rt;
    uint8_t reply[48];

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
    EXPECT_REQUEST(&f, 0, 2, 0, 3000, 10000, 1);

    reservation_reply(reply);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(RTGetProperty(display, &rt), XQOS_OK);
    EXPECT_REQUEST(&f, 1, 3, 0);
    EXPECT_INT(rt.rt_period, 10000);
    EXPECT_INT(rt.rt_maxcapacity, 3000);
    EXPECT_INT(rt.rt_capacity, -2); /* -1500 ns, rounded down */
    EXPECT_INT(rt.rt_deadline, 5000000000);
    EXPECT_INT(rt.rt_hard, 1);

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_ADMISSION);
    rt.rt_period = rt.rt_maxcapacity = 0;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_OK);
    EXPECT_REQUEST(&f, 3, 4, 0);
    rt.rt_hard = 2;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_VALUE);
    rt.rt_hard = 0;
    rt.rt_reserved[8] = 1;
    EXPECT_INT(RTSetProperty(display, &rt), XQOS_ERR_ARGUMENT);
    EXPECT_INT(RTSetProperty(display, NULL), XQOS_ERR_ARGUMENT);
    EXPECT_INT(RTGetProperty(NULL, &rt), XQOS_ERR_ARGUMENT);
    XCloseDisplay(display);
    mock_stop(f.mock);
}

static void xrt_tells_a_stock_server(void)
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

#define RUN(test) (test(), end_of_test(#test))

int main(void)
{
    /* A test that waits for an answer that never comes must not wait for ever. */
    alarm(30);
    RUN(stock_server_has_no_extension);
    RUN(other_major_version_is_refused);
    RUN(broken_connection_is_told);
    RUN(connection_lost_in_a_void_request_is_told);
    RUN(version_is_read);
    RUN(null_arguments_send_nothing);
    RUN(void_requests_have_their_bytes);
    RUN(errors_become_results);
    RUN(large_policy_number_is_not_cut);
    RUN(every_result_has_its_sentence);
    RUN(server_info_is_read);
    RUN(longest_reason_ends_with_zero);
    RUN(short_replies_are_refused);
    RUN(reservation_is_read);
    RUN(no_reservation_reads_as_zeros);
    RUN(longer_structure_is_filled_with_zeros);
    RUN(admission_is_read);
    RUN(refusal_brings_the_failing_term);
    RUN(refusal_whose_cause_is_gone_names_the_client);
    RUN(refusal_without_interest_asks_nothing_more);
    RUN(list_is_walked);
    RUN(list_of_later_version_is_walked);
    RUN(name_of_32_bytes_ends_with_zero);
    RUN(list_beyond_its_reply_is_refused);
    RUN(event_is_decoded);
    RUN(foreign_events_are_not_taken);
    RUN(xrt_reserves_and_reads_back);
    RUN(xrt_tells_a_stock_server);
    printf("mock_test: %d failed\n", failed_tests);
    return failed_tests != 0;
}
