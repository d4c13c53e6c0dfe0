/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small picture of expert load: a line for some layers, a column for some
 * experts.
 */
#ifndef TESTS_DEMO_PICTURE_H
#define TESTS_DEMO_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * @load:      [layers][experts] tokens.
 * @layer_ids: [layers] the model's own numbers.
 * @blocks:    whether the terminal shows UTF-8 block characters.
 */
void picture_draw(FILE *out, const uint32_t *load, const int32_t *layer_ids, uint32_t layers,
		  uint32_t experts, bool blocks);

#endif
