/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_REMOVE_DIR_H
#define TESTS_SUPPORT_REMOVE_DIR_H

/* Removes a directory of files, as an archive is one; nothing where there is none. */
void remove_dir(const char *path);

#endif
