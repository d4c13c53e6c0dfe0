/* SPDX-License-Identifier: Apache-2.0 */
/* A fake machine for a test: its processes share a directory, and at its end nothing
 * was found on it. */
#ifndef TESTS_CUDA_FIXTURE_H
#define TESTS_CUDA_FIXTURE_H

#include <stdbool.h>

/*
 * A test with finish(), of its file, as the last thing that it does: what is found wrong
 * in a suite's `fini` is only printed and does not count. There it is called once more,
 * after a test that ended early.
 */
#define MACHINE_TEST(suite, name)                                                                  \
	static void suite##_##name##_body(void);                                                   \
	Test(suite, name)                                                                          \
	{                                                                                          \
		suite##_##name##_body();                                                           \
		finish();                                                                          \
	}                                                                                          \
	static void suite##_##name##_body(void)

/* Makes the machine; before any CUDA call and any process of it. r3ringd may only copy
 * on it. Its seed is FAKECUDA_SEED, if that is set. Its directory goes with the process. */
void machine_make(void);

/* Whether it is a real one, which counts nothing and finds nothing. */
bool machine_is_real(void);

/* Fails the test when something was found; says what. */
void machine_check(void);

/* The same where one finding is expected: fails without one that contains @part, and
 * forgets it. */
void machine_expect(const char *part);

#endif
