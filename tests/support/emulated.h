/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this processor and kernel are only played by qemu-user. */
#ifndef TESTS_EMULATED_H
#define TESTS_EMULATED_H

/* Skips a test of what the emulator lacks; @what names it. */
#define SKIP_WHERE_EMULATED(what)                                                                  \
	do {                                                                                       \
		if (emulator())                                                                    \
			cr_skip_test("%s has no " what, emulator());                               \
	} while (0)

/* The emulator's name, NULL on a real machine. */
const char *emulator(void);

#endif
