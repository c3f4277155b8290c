/* SPDX-License-Identifier: MIT */
/* expect.h: assertions for the test programs.
 *
 * Each test is a function. A failing assertion prints its location and both values, and the test continues. The name of
 * each test is printed with ok or FAILED, and the program's exit status says whether any test failed. */
#ifndef XQOS_EXPECT_H
#define XQOS_EXPECT_H

#include <stdint.h>
#include <stdio.h>

extern int failed_tests;

void expect_int(const char *file, int line, const char *what, int64_t got, int64_t wanted);
void expect_true(const char *file, int line, const char *what, int holds);
void expect_string(const char *file, int line, const char *what, const char *got, const char *wanted);
void end_of_test(const char *name);

#define EXPECT_INT(got, wanted) expect_int(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(wanted))
#define EXPECT(holds) expect_true(__FILE__, __LINE__, #holds, (holds) != 0)
#define EXPECT_STRING(got, wanted) expect_string(__FILE__, __LINE__, #got, got, wanted)
#define RUN(test) (test(), end_of_test(#test))

#endif
