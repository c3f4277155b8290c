/* SPDX-License-Identifier: MIT */
/* live_reservations.c: makes reservations on a real server, including refused ones, and reads them back. */
#include "expect.h"
#include "live.h"

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

    EXPECT_INT(xqos_set_reservation(c.xqos, XQOS_SELF, BUDGET_US, PERIOD_US, XQOS_RESERVATION_SOFT_PAPER, NULL),
               XQOS_OK);
    EXPECT_INT(reservation_of(&c, XQOS_SELF).flags, XQOS_RESERVATION_SOFT_PAPER);

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
    /* The server may have rounded the value up or down. */
    EXPECT(refused.blocking_ppm - (uint64_t)refused.blocking_us * 1000000 / PERIOD_US <= 1);
    EXPECT_INT(reservation_of(&b, XQOS_SELF).active, 0);
    EXPECT_INT(reservation_of(&a, XQOS_SELF).budget_us, most / 2);
    disconnect_client(&a);
    disconnect_client(&b);
}

/* A refused change leaves the current reservation unchanged. */
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

static void check_predicts_set_and_changes_nothing(void)
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
        { BUDGET_US, PERIOD_US, XQOS_RESERVATION_HARD | XQOS_RESERVATION_SOFT_PAPER },
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
    EXPECT_INT(xqos_select_events(c.xqos, 64), XQOS_ERR_VALUE);
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

void test_reservations(void)
{
    RUN(reservation_of_self_is_read_back);
    RUN(any_resource_id_means_its_client);
    RUN(refusal_names_the_failing_term);
    RUN(refused_change_keeps_the_old_reservation);
    RUN(check_predicts_set_and_changes_nothing);
    RUN(bad_values_are_refused);
    RUN(dead_client_is_a_bad_value);
}
