/* SPDX-License-Identifier: MIT */
/* fixture.c: see fixture.h. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fixture.h"

struct fixture open_fixture(void)
{
    struct fixture f = { .mock = mock_start(1, 1) };

    f.connection = mock_connect(f.mock);
    EXPECT_INT(xqos_open(f.connection, &f.xqos), XQOS_OK);
    if (!f.xqos)
        exit(1);
    return f;
}

void close_fixture(struct fixture *f)
{
    xqos_close(f->xqos);
    xcb_disconnect(f->connection);
    mock_stop(f->mock);
}

void put16(uint8_t *to, uint16_t value) { memcpy(to, &value, sizeof value); }
void put32(uint8_t *to, uint32_t value) { memcpy(to, &value, sizeof value); }
void put64(uint8_t *to, uint64_t value) { memcpy(to, &value, sizeof value); }

void expect_request(struct fixture *f, int index, uint8_t minor, int count, const uint32_t *words)
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

void expect_set(struct fixture *f, int index, const uint32_t words[11])
{
    expect_request(f, index, 2, 11, words);
}

void answer_reservation(struct fixture *f, uint8_t active)
{
    uint8_t reply[48] = { 1, active };

    put32(reply + 4, 4);
    put32(reply + 8, 3000);
    put32(reply + 12, 10000);
    put32(reply + 16, 3);
    put32(reply + 20, 17);
    put64(reply + 24, (uint64_t)-1500);
    put64(reply + 32, 5000000000123);
    put32(reply + 40, 2);
    mock_answer(f->mock, reply, sizeof reply);
}
