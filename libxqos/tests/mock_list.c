/* SPDX-License-Identifier: MIT */
/* mock_list.c: tests how the library reads the list of clients, including lists with wrong counts.
 *
 * Offsets are those of proto/xqosproto.md, as in mock_test.c. */
#include <string.h>

#include "expect.h"
#include "fixture.h"

enum { ENTRY = 392, LATER_ENTRY = 396 };

static void put_later_fields(uint8_t *entry)
{
    put32(entry + 144, 21);
    put32(entry + 148, 200000);
    put32(entry + 184, 5);
    put32(entry + 188, 50);
    memcpy(entry + 192, "players", 7);
    memcpy(entry + 224, "rule players", 12);
    memcpy(entry + 256, "hand", 4);
    memcpy(entry + 288, "192.0.2.7", 9);
    for (uint32_t i = 0; i < XQOS_WAITS; i++)
        put32(entry + 336 + 4 * i, 300 + i);
    put32(entry + 368, 31);
    put32(entry + 372, 5000);
    put32(entry + 376, 16000);
    put32(entry + 380, 2000);
    put32(entry + 384, 250);
    put32(entry + 388, 77);
}

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
    for (uint64_t i = 0; i < 11; i++)
        put64(entry + 56 + 8 * i, (i + 1) << 40);
    memcpy(entry + 152, "xclock", 6);
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
    for (uint32_t i = 0; i < count; i++)
        put_later_fields(reply + 32 + (size_t)i * entry_bytes);
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
    EXPECT_INT(client->longest_request, 139 + 65536 * 11);
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
    EXPECT_INT(client->charged_ns, 11LL << 40);
    EXPECT_INT(client->grabs, 21);
    EXPECT_INT(client->group_cap_ppm, 200000);
    EXPECT_INT(client->group, 5);
    EXPECT_INT(client->group_weight, 50);
    EXPECT_STRING(client->group_name, "players");
    EXPECT_STRING(client->reservation_origin, "rule players");
    EXPECT_STRING(client->settings_origin, "hand");
    EXPECT_STRING(client->host, "192.0.2.7");
    for (uint32_t i = 0; i < XQOS_WAITS; i++)
        EXPECT_INT(client->waits[i], 300 + i);
    EXPECT_INT(client->long_grabs, 31);
    EXPECT_INT(client->group_budget_us, 5000);
    EXPECT_INT(client->group_period_us, 16000);
    EXPECT_INT(client->slice_us, 2000);
    EXPECT_INT(client->longest_part_us, 250);
    EXPECT_INT(client->cuts, 77);
}

/* In a later version, entry_bytes may be larger by any number, not only by a multiple of 8. */
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

/* A program that was compiled with a later header has a longer structure, which is valid. Shorter ones are invalid. */
static void structures_of_other_sizes(void)
{
    struct fixture f = open_fixture();
    struct {
        struct xqos_client known;
        uint64_t later, after;
    } client = { .known = { .size = sizeof client.known + 8 }, .later = 1, .after = 7 };
    xqos_client_list_t *list = NULL;
    uint8_t reply[32 + ENTRY];

    list_reply(reply, 1, ENTRY);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_list_clients(f.xqos, &list), XQOS_OK);
    EXPECT_INT(xqos_client_list_next(list, &client.known), 1);
    expect_entry(&client.known);
    EXPECT_INT(client.later, 0);
    EXPECT_INT(client.after, 7);
    client.known.size = sizeof client.known - 4;
    xqos_client_list_rewind(list);
    EXPECT_INT(xqos_client_list_next(list, &client.known), XQOS_ERR_ARGUMENT);
    xqos_client_list_free(list);
    close_fixture(&f);
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
    memset(reply + 32 + 152, 'n', 32);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_list_clients(f.xqos, &list), XQOS_OK);
    EXPECT_INT(xqos_client_list_next(list, &client), 1);
    EXPECT_INT(strlen(client.name), 31);
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

void test_list(void)
{
    RUN(list_is_walked);
    RUN(structures_of_other_sizes);
    RUN(list_of_later_version_is_walked);
    RUN(name_of_32_bytes_ends_with_zero);
    RUN(list_beyond_its_reply_is_refused);
}
