/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing what the writer's gate finds in the page of a registered reader: a script
 * (tests/support/gate_script.h) of what a liar stores there, and of what the writer and
 * an honest reader do meanwhile.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/gate_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *wrong = gate_script_play(data, size);

	if (wrong) {
		printf("%s\n", wrong);
		fflush(stdout);
		abort();
	}
	return 0;
}
