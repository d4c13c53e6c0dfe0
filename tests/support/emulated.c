/* SPDX-License-Identifier: Apache-2.0 */
/* tests/aarch64/run says so: a guest cannot tell by itself. */
#include <stdlib.h>

#include "tests/support/emulated.h"

const char *emulator(void)
{
	return getenv("R3RING_TEST_EMULATED");
}
