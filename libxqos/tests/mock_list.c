/* SPDX-License-Identifier: MIT */
/* mock_list.c: the library walks the list of clients, also one whose counts lie.
 *
 * Offsets are those of proto/xqosproto.md, as in mock_test.c.
 */
#include <string.h>

#include "expect.h"
#include "fixture.h"

/* 1.1 came in two steps: entries of 328 bytes, and structures of 344, are those of the first. */
enum { ENTRY_1_0 = 176, FIRST_ENTRY_1_1 = 328, ENTRY = 384, LATER_ENTRY = 388 };
enum { CLIENT_1_0 = 184, FIRST_CLIENT_1_1 = 344 };

/* What 1.1 added. */
static void put_later_fields(uint8_t *entry)
{
    put32(entry + 136, 21);
    put32(entry + 140, 200000);
    put32(entry + 176, 5);
    put32(entry + 180, 50);
    memcpy(entry + 184, "players", 7);
    memcpy(entry + 216, "rule players", 12);
    memcpy(entry + 248, "hand", 4);
    memcpy(entry + 280, "192.0.2.7", 9);
}

static void put_last_fields(uint8_t *entry)
{
    for (uint32_t i = 0; i < XQOS_WAITS; i++)
        put32(entry + 328 + 4 * i, 300 + i);
    put32(entry + 360, 31);
    put32(entry + 364, 5000);
    put32(entry + 368, 16000);
    put64(entry + 376, 11ULL << 40);
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
    for (uint32_t i = 0; i < count && entry_bytes >= FIRST_ENTRY_1_1; i++)
        put_later_fields(reply + 32 + (size_t)i * entry_bytes);
    for (uint32_t i = 0; i < count && entry_bytes >= ENTRY; i++)
        put_last_fields(reply + 32 + (size_t)i * entry_bytes);
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

/* All zeros from a server of 1.0. */
static void expect_later_fields(const struct xqos_client *client, int are_there)
{
    EXPECT_INT(client->grabs, are_there ? 21 : 0);
    EXPECT_INT(client->group_cap_ppm, are_there ? 200000 : 0);
    EXPECT_INT(client->group, are_there ? 5 : 0);
    EXPECT_INT(client->group_weight, are_there ? 50 : 0);
    EXPECT_STRING(client->group_name, are_there ? "players" : "");
    EXPECT_STRING(client->reservation_origin, are_there ? "rule players" : "");
    EXPECT_STRING(client->settings_origin, are_there ? "hand" : "");
    EXPECT_STRING(client->host, are_there ? "192.0.2.7" : "");
}

static void expect_last_fields(const struct xqos_client *client, int are_there)
{
    for (uint32_t i = 0; i < XQOS_WAITS; i++)
        EXPECT_INT(client->waits[i], are_there ? 300 + i : 0);
    EXPECT_INT(client->long_grabs, are_there ? 31 : 0);
    EXPECT_INT(client->group_budget_us, are_there ? 5000 : 0);
    EXPECT_INT(client->group_period_us, are_there ? 16000 : 0);
    EXPECT_INT(client->charged_ns, are_there ? 11LL << 40 : 0);
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
        expect_later_fields(&client, entry_bytes >= FIRST_ENTRY_1_1);
        expect_last_fields(&client, entry_bytes >= ENTRY);
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

static void list_of_version_1_0_is_walked(void)
{
    walk_list(ENTRY_1_0);
}

static void list_of_the_first_version_1_1_is_walked(void)
{
    walk_list(FIRST_ENTRY_1_1);
}

/* A program that was compiled against an older header has a shorter structure, and what follows it is its own. */
static void fill_structure_of(uint32_t size)
{
    struct fixture f = open_fixture();
    union {
        struct xqos_client whole;
        uint8_t bytes[sizeof(struct xqos_client)];
    } client;
    xqos_client_list_t *list = NULL;
    uint8_t reply[32 + ENTRY];

    list_reply(reply, 1, ENTRY);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_list_clients(f.xqos, &list), XQOS_OK);
    memset(&client, 0x5a, sizeof client);
    client.whole.size = size;
    EXPECT_INT(xqos_client_list_next(list, &client.whole), 1);
    expect_entry(&client.whole);
    EXPECT_STRING(client.whole.name, "xclock");
    if (size > CLIENT_1_0)
        expect_later_fields(&client.whole, 1);
    for (size_t i = size; i < sizeof client; i++)
        EXPECT_INT(client.bytes[i], 0x5a);
    client.whole.size = CLIENT_1_0 - 4;
    xqos_client_list_rewind(list);
    EXPECT_INT(xqos_client_list_next(list, &client.whole), XQOS_ERR_ARGUMENT);
    xqos_client_list_free(list);
    close_fixture(&f);
}

static void program_of_version_1_0_gets_what_it_knows(void)
{
    fill_structure_of(CLIENT_1_0);
}

static void program_of_the_first_version_1_1_gets_what_it_knows(void)
{
    fill_structure_of(FIRST_CLIENT_1_1);
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
        { 3, ENTRY, XQOS_ERR_LENGTH },      { 2, ENTRY + 4, XQOS_ERR_LENGTH },    { 2, ENTRY_1_0 - 8, XQOS_ERR_LENGTH },
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
    RUN(list_of_version_1_0_is_walked);
    RUN(list_of_the_first_version_1_1_is_walked);
    RUN(program_of_version_1_0_gets_what_it_knows);
    RUN(program_of_the_first_version_1_1_gets_what_it_knows);
    RUN(list_of_later_version_is_walked);
    RUN(name_of_32_bytes_ends_with_zero);
    RUN(list_beyond_its_reply_is_refused);
}
