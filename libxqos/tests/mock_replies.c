/* SPDX-License-Identifier: MIT */
/* mock_replies.c: tests how the library reads replies about the server, a reservation and the admission test.
 *
 * Offsets are those of proto/xqosproto.md, as in mock_test.c. */
#include <string.h>

#include "expect.h"
#include "fixture.h"

enum { INFO = 368 };

static void server_info_reply(uint8_t reply[INFO])
{
    memset(reply, 0, INFO);
    reply[0] = 1;
    reply[1] = 1;
    put32(reply + 4, (INFO - 32) / 4);
    put32(reply + 8, 4242);
    put32(reply + 12, XQOS_POLICY_SMART);
    for (uint32_t i = 0; i < 14; i++)
        put32(reply + 16 + 4 * i, 1000 + i);
    for (uint64_t i = 0; i < 4; i++)
        put64(reply + 72 + 8 * i, (i + 1) << 33);
    put32(reply + 104, 0x200000);
}

static void server_info_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_server_info info = { .size = sizeof info };
    uint8_t reply[INFO];

    server_info_reply(reply);
    memcpy(reply + 108, "panic", 5);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_OK);
    expect_request(&f, 0, 1, 0, (uint32_t[]) { 0 });
    EXPECT_INT(info.size, sizeof info);
    EXPECT_INT(info.armed, 1);
    EXPECT_INT(info.server_pid, 4242);
    EXPECT_INT(info.policy, XQOS_POLICY_SMART);
    EXPECT_INT(info.clients, 1000);
    EXPECT_INT(info.reservations, 1001);
    EXPECT_INT(info.max_utilization_ppm, 1002);
    EXPECT_INT(info.admitted_utilization_ppm, 1003);
    EXPECT_INT(info.blocking_observed_us, 1004);
    EXPECT_INT(info.blocking_configured_us, 1005);
    EXPECT_INT(info.min_budget_us, 1006);
    EXPECT_INT(info.min_period_us, 1007);
    EXPECT_INT(info.max_period_us, 1008);
    EXPECT_INT(info.slice_us, 1009);
    EXPECT_INT(info.timer_interval_us, 1010);
    EXPECT_INT(info.maximum_slice_us, 1011);
    EXPECT_INT(info.memory_bytes, 1012);
    EXPECT_INT(info.clients_limit, 1013);
    EXPECT_INT(info.uptime_ns, 1LL << 33);
    EXPECT_INT(info.busy_ns, 2LL << 33);
    EXPECT_INT(info.decisions, 3LL << 33);
    EXPECT_INT(info.early_ends, 4LL << 33);
    EXPECT_INT(info.grab_holder, 0x200000);
    EXPECT_STRING(info.reason, "panic");
    close_fixture(&f);
}

static void longest_reason_ends_with_zero(void)
{
    struct fixture f = open_fixture();
    struct xqos_server_info info = { .size = sizeof info };
    uint8_t reply[INFO];

    server_info_reply(reply);
    memset(reply + 108, 'x', 256);
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
    uint8_t reply[INFO];
    uint8_t plain[32] = { 1 };

    server_info_reply(reply);
    put32(reply + 4, (INFO - 4 - 32) / 4);
    mock_answer(f.mock, reply, sizeof reply - 4);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_ERR_LENGTH);
    mock_answer(f.mock, plain, sizeof plain);
    EXPECT_INT(xqos_get_server_info(f.xqos, &info), XQOS_ERR_LENGTH);
    mock_answer(f.mock, plain, sizeof plain);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &reservation), XQOS_ERR_LENGTH);
    close_fixture(&f);
}

static void reservation_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_reservation out = { .size = sizeof out };

    answer_reservation(&f, 1);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0x600000, &out), XQOS_OK);
    EXPECT_REQUEST(&f, 0, 5, 0x600000);
    EXPECT_INT(out.active, 1);
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

    answer_reservation(&f, 0);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out), XQOS_OK);
    EXPECT_INT(out.active, 0);
    EXPECT_INT(out.budget_us, 0);
    EXPECT_INT(out.deadline_ns, 0);
    close_fixture(&f);
}

/* A program that was compiled with a later, longer structure gets zeros in fields that this library does not know. */
static void longer_structure_is_filled_with_zeros(void)
{
    struct fixture f = open_fixture();
    struct {
        struct xqos_reservation known;
        uint64_t later[2];
        uint64_t after;
    } out = { .known = { .size = sizeof out.known + sizeof out.later }, .later = { 1, 1 }, .after = 7 };

    answer_reservation(&f, 1);
    EXPECT_INT(xqos_get_reservation(f.xqos, 0, &out.known), XQOS_OK);
    EXPECT_INT(out.known.size, sizeof out.known + sizeof out.later);
    EXPECT_INT(out.known.deadline_ns, 5000000000123);
    EXPECT_INT(out.later[0], 0);
    EXPECT_INT(out.later[1], 0);
    EXPECT_INT(out.after, 7);
    close_fixture(&f);
}

static void groups_are_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_groups groups = { .size = sizeof groups };
    uint8_t reply[32] = { 1, XQOS_GROUPING_USER };

    put32(reply + 8, 300000);
    put32(reply + 12, 17);
    mock_answer(f.mock, reply, sizeof reply);
    EXPECT_INT(xqos_get_groups(f.xqos, &groups), XQOS_OK);
    expect_request(&f, 0, 11, 0, (uint32_t[]) { 0 });
    EXPECT_INT(groups.grouping, XQOS_GROUPING_USER);
    EXPECT_INT(groups.user_limit_ppm, 300000);
    EXPECT_INT(groups.groups, 17);
    close_fixture(&f);
}

void test_replies(void)
{
    RUN(groups_are_read);
    RUN(server_info_is_read);
    RUN(longest_reason_ends_with_zero);
    RUN(short_replies_are_refused);
    RUN(reservation_is_read);
    RUN(no_reservation_reads_as_zeros);
    RUN(longer_structure_is_filled_with_zeros);
}

static void answer_admission(struct fixture *f, uint8_t admitted)
{
    uint8_t reply[32] = { 1, admitted };

    put32(reply + 8, 0x800000);
    put32(reply + 12, 20000);
    put32(reply + 16, 850000);
    put32(reply + 20, 100000);
    put32(reply + 24, 900000);
    put32(reply + 28, 2000);
    mock_answer(f->mock, reply, sizeof reply);
}

static void admission_is_read(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission out = { .size = sizeof out };

    answer_admission(&f, 1);
    EXPECT_INT(xqos_check_admission(f.xqos, 0x600000, 8000, 10000, 0, &out), XQOS_OK);
    EXPECT_REQUEST(&f, 0, 4, 0, 0x600000, 8000, 10000, 0);
    EXPECT_INT(out.admitted, 1);
    EXPECT_INT(out.failing_client, 0x800000);
    EXPECT_INT(out.failing_period_us, 20000);
    EXPECT_INT(out.sum_ppm, 850000);
    EXPECT_INT(out.blocking_ppm, 100000);
    EXPECT_INT(out.limit_ppm, 900000);
    EXPECT_INT(out.blocking_us, 2000);
    close_fixture(&f);
}

static void refusal_returns_the_failing_term(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission refused = { .size = sizeof refused };

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    answer_admission(&f, 0);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 1, &refused), XQOS_ERR_ADMISSION);
    EXPECT_SET(&f, 0, 0, 0, 0, 8000, 10000, 1);
    EXPECT_REQUEST(&f, 1, 4, 0, 0, 8000, 10000, 1);
    EXPECT_INT(refused.admitted, 0);
    EXPECT_INT(refused.failing_client, 0x800000);
    EXPECT_INT(refused.sum_ppm, 850000);
    EXPECT_INT(refused.limit_ppm, 900000);
    close_fixture(&f);
}

/* Another reservation may have ended between the refusal and the second request. */
static void refusal_without_a_current_cause_names_the_client(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission refused = { .size = sizeof refused };

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0xa00000);
    answer_admission(&f, 1);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 0, &refused), XQOS_ERR_ADMISSION);
    EXPECT_INT(refused.admitted, 0);
    EXPECT_INT(refused.failing_client, 0xa00000);
    EXPECT_INT(refused.limit_ppm, 0);
    close_fixture(&f);
}

static void refusal_without_output_sends_no_second_request(void)
{
    struct fixture f = open_fixture();
    size_t bytes;

    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    EXPECT_INT(xqos_set_reservation(f.xqos, 0, 8000, 10000, 0, NULL), XQOS_ERR_ADMISSION);
    EXPECT(mock_seen(f.mock, 1, &bytes) == NULL);
    close_fixture(&f);
}

static void refusal_of_a_group_returns_the_failing_term_too(void)
{
    struct fixture f = open_fixture();
    struct xqos_admission refused = { .size = sizeof refused, .admitted = 1, .sum_ppm = 7, .limit_ppm = 7 };
    size_t bytes;

    EXPECT_INT(xqos_set_group_reservation(f.xqos, 0, 5000, 16000, 0, &refused), XQOS_OK);
    EXPECT_INT(refused.limit_ppm, 7);
    mock_answer_error(f.mock, MOCK_FIRST_ERROR, 0x800000);
    answer_admission(&f, 0);
    EXPECT_INT(xqos_set_group_reservation(f.xqos, 0, 5000, 16000, 0, &refused), XQOS_ERR_ADMISSION);
    EXPECT_REQUEST(&f, 2, 4, 1, 0, 5000, 16000, 0);
    EXPECT_INT(refused.admitted, 0);
    EXPECT_INT(refused.failing_client, 0x800000);
    EXPECT_INT(refused.sum_ppm, 850000);
    EXPECT_INT(refused.limit_ppm, 900000);
    EXPECT(mock_seen(f.mock, 3, &bytes) == NULL);
    close_fixture(&f);
}

void test_admission(void)
{
    RUN(admission_is_read);
    RUN(refusal_returns_the_failing_term);
    RUN(refusal_without_a_current_cause_names_the_client);
    RUN(refusal_without_output_sends_no_second_request);
    RUN(refusal_of_a_group_returns_the_failing_term_too);
}
