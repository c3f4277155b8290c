/* SPDX-License-Identifier: MIT */
/* expect.c: see expect.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

static int faults_in_test;
int failed_tests;

void expect_int(const char *file, int line, const char *what, int64_t got, int64_t wanted)
{
    if (got == wanted)
        return;
    faults_in_test++;
    printf("    %s:%d: %s is %" PRId64 " (0x%" PRIx64 "), wanted %" PRId64 "\n", file, line, what, got, (uint64_t)got,
           wanted);
}

void expect_true(const char *file, int line, const char *what, int holds)
{
    if (holds)
        return;
    faults_in_test++;
    printf("    %s:%d: not true: %s\n", file, line, what);
}

void expect_string(const char *file, int line, const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) == 0)
        return;
    faults_in_test++;
    printf("    %s:%d: %s is \"%s\", wanted \"%s\"\n", file, line, what, got, wanted);
}

void end_of_test(const char *name)
{
    printf("%s %s\n", faults_in_test ? "FAILED" : "ok    ", name);
    fflush(stdout);
    failed_tests += faults_in_test != 0;
    faults_in_test = 0;
}
