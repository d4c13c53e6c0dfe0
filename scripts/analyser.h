/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analysers of `make lint` cannot see by themselves. Included before
 * everything else, by them alone.
 */
#ifndef R3RING_ANALYSER_H
#define R3RING_ANALYSER_H

#include <r3ring/error.h>

/* It returns its code, which is never 0. */
#define r3ring_error_set(err, code, ...) ((void)(r3ring_error_set)(err, code, __VA_ARGS__), (code))

#ifdef __cppcheck__
#define json_array_foreach(array, index, value)                                                    \
	for (index = 0; (value = json_array_get(array, index)) != NULL; index++)
#define json_object_foreach(object, key, value)                                                    \
	for (key = json_object_iter_key(object); (value = json_object_get(object, key)) != NULL;)
#endif

#endif
