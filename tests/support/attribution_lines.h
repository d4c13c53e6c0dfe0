/* SPDX-License-Identifier: Apache-2.0 */
/* What `r3ring dump --json` prints, put back in its places. */
#ifndef TESTS_SUPPORT_ATTRIBUTION_LINES_H
#define TESTS_SUPPORT_ATTRIBUTION_LINES_H

#include "tests/support/attribution.h"

/* Takes all lines; those that cannot be understood are counted. */
void attribution_take_lines(struct attribution *attribution, const char *text);

#endif
