/* expect.h: what the test programs say, and count.
 *
 * A test is a function; a failing expectation prints where it is, both sides, and lets the test go on. The name of
 * each test is printed with ok or FAILED, and the program's exit status says whether any failed.
 */
#ifndef XQOS_EXPECT_H
#define XQOS_EXPECT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int faults_in_test;
static int failed_tests;

static inline void expect_int(const char *file, int line, const char *what, int64_t got, int64_t wanted)
{
    if (got == wanted)
        return;
    faults_in_test++;
    printf("    %s:%d: %s is %" PRId64 " (0x%" PRIx64 "), wanted %" PRId64 "\n", file, line, what, got, (uint64_t)got,
           wanted);
}

static inline void expect_true(const char *file, int line, const char *what, int holds)
{
    if (holds)
        return;
    faults_in_test++;
    printf("    %s:%d: not true: %s\n", file, line, what);
}

static inline void expect_string(const char *file, int line, const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) == 0)
        return;
    faults_in_test++;
    printf("    %s:%d: %s is \"%s\", wanted \"%s\"\n", file, line, what, got, wanted);
}

#define EXPECT_INT(got, wanted) expect_int(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(wanted))
#define EXPECT(holds) expect_true(__FILE__, __LINE__, #holds, (holds) != 0)
#define EXPECT_STRING(got, wanted) expect_string(__FILE__, __LINE__, #got, got, wanted)

static inline void end_of_test(const char *name)
{
    printf("%s %s\n", faults_in_test ? "FAILED" : "ok    ", name);
    fflush(stdout);
    failed_tests += faults_in_test != 0;
    faults_in_test = 0;
}

#endif
