/* SPDX-License-Identifier: MIT */
/* fixture.h: a library context that is connected to the mock server, for the tests in mock_test.c. */
#ifndef XQOS_FIXTURE_H
#define XQOS_FIXTURE_H

#include "mock.h"
#include "xqos.h"

struct fixture {
    struct mock *mock;
    xcb_connection_t *connection;
    xqos_t *xqos;
};

struct fixture open_fixture(void);
void close_fixture(struct fixture *f);

void put16(uint8_t *to, uint16_t value);
void put32(uint8_t *to, uint32_t value);
void put64(uint8_t *to, uint64_t value);

/* Expects a request that consists of the header and these words. */
void expect_request(struct fixture *f, int index, uint8_t minor, int count, const uint32_t *words);

#define EXPECT_REQUEST(f, index, minor, ...)                                                                          \
    expect_request(f, index, minor, (int)(sizeof((uint32_t[]) { __VA_ARGS__ }) / 4), (uint32_t[]) { __VA_ARGS__ })

/* Expects a request that changes this setting. The value has 8 words; words that are not given are 0. */
#define EXPECT_SET(f, index, subject, client, setting, ...)                                                            \
    expect_set(f, index, (const uint32_t[11]) { subject, client, setting, __VA_ARGS__ })
void expect_set(struct fixture *f, int index, const uint32_t words[11]);

/* Makes the mock answer with a reservation; the reply has the same numbers even if active is 0. */
void answer_reservation(struct fixture *f, uint8_t active);

void test_replies(void);
void test_admission(void);
void test_list(void);

#endif
