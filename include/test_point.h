/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points behind stores that others see, at which tests kill the process. Only in
 * builds with TESTPOINTS=1; in others nothing is left of them.
 */
#ifndef R3RING_TEST_POINT_H
#define R3RING_TEST_POINT_H

#ifdef R3RING_TEST_POINTS
void r3ring_test_point(const char *label);
#define R3RING_TEST_POINT(label) r3ring_test_point(label)
#else
#define R3RING_TEST_POINT(label) ((void)0)
#endif

#endif
