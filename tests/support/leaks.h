/* SPDX-License-Identifier: Apache-2.0 */
/* Where LeakSanitizer looks for leaks. */
#ifndef TESTS_SUPPORT_LEAKS_H
#define TESTS_SUPPORT_LEAKS_H

/* It does not at the end of this process: a child that was forked and goes on has its
 * parent's threads on LeakSanitizer's list. */
void leaks_look_away(void);

#endif
