/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that tell requests apart: their text ids, and "ID#2", "ID#3" for those that have the
 * id of one before. Holds some 16 bytes a request.
 */
#ifndef ARCHIVE_EXPORT_IDS_H
#define ARCHIVE_EXPORT_IDS_H

#include <stdint.h>

#include "archive/export/export.h"

struct export_ids;

#define EXPORT_ID_WORDS 96u /* bytes of a name in a message, with its NUL */

/* A name as messages have it: one that is long without its middle. Returns @words. */
const char *export_id_words(char words[EXPORT_ID_WORDS], const char *name);

struct export_ids *export_ids_create(void); /* NULL: no memory */
void export_ids_destroy(struct export_ids *ids);

/* Names the next request: @name receives what none before was given. Returns 0 (its own id),
 * 1 (another), or -ENOMEM. */
int export_ids_name(struct export_ids *ids, const char *id, char name[EXPORT_ID_BYTES]);

#endif
