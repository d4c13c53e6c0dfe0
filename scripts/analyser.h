/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clang-tidy cannot see by itself. Included before everything else, by
 * `make lint` alone.
 */
#ifndef R3RING_ANALYSER_H
#define R3RING_ANALYSER_H

#include <r3ring/error.h>

/* It returns its code, which is never 0. */
#define r3ring_error_set(err, code, ...) ((void)(r3ring_error_set)(err, code, __VA_ARGS__), (code))

#endif
