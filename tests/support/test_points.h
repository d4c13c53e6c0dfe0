/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The killing at test points (include/test_point.h): a page that the test and the
 * process to be killed share says at which point, and at the how manieth passing.
 */
#ifndef TESTS_SUPPORT_TEST_POINTS_H
#define TESTS_SUPPORT_TEST_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#define TEST_POINTS_VARIABLE "R3RING_TEST_POINTS" /* path of the page's file, for programs */
#define TEST_POINTS_LABEL 40

struct test_points {
	uint32_t armed;                /* passings until the kill; 0: none. Atomic */
	char label[TEST_POINTS_LABEL]; /* "": any point. Set while not armed */
	uint64_t passed;               /* all points together. Atomic */
};

#define TEST_POINTS_PATH 48

/*
 * Makes a page that goes with this process, however it ends, and says in @path where others
 * find it meanwhile; NULL: nowhere, it is for those that are forked. Ends the process when
 * it cannot.
 */
struct test_points *test_points_make(char path[TEST_POINTS_PATH]);

/* For a process that was forked: from here on it is killed by this page; NULL: by none. */
void test_points_use(struct test_points *points);

/* The process that uses the page dies at the @count-th passing of @label. */
void test_points_arm(struct test_points *points, const char *label, uint32_t count);
void test_points_disarm(struct test_points *points);

#endif
