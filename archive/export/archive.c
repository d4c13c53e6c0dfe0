/* SPDX-License-Identifier: Apache-2.0 */
/* An archive, from its first entry to its last. */
#include <errno.h>
#include <stdio.h>

#include "archive/export/export.h"
#include "archive/export/own.h"
#include "archive/unread.h"

#define PROGRESS_BYTES (8u << 20)

static int damaged(const char *dir, int rc, struct r3ring_error *err)
{
	struct r3ring_error why = *err;

	if (rc != -EBADMSG)
		return rc;
	return r3ring_error_set(err, rc,
				"%.400s; a damaged archive is not exported: 'r3ring verify %s' "
				"says what is wrong with it, --include damaged takes the rest",
				why.text, dir);
}

/* Passes over damage where @damage is to be told; as archive_reader_next(). */
static int read_next(struct exporter *exporter, struct archive_reader *reader,
		     struct archive_item *item, struct export_damage *damage,
		     struct r3ring_error *err)
{
	const struct archive_unread *unread = archive_reader_unread(reader);
	int rc;

	while ((rc = archive_reader_next(reader, item, err)) == -EBADMSG && damage)
		if (!damage->places++)
			snprintf(damage->first, sizeof(damage->first), "%s", err->text);
	/* Up to the end: what hangs on damage may come late. */
	if (rc == 0 && damage) {
		damage->bytes = unread->bytes;
		damage->records = unread->records;
		damage->unsized = unread->unsized;
		export_note_damage(exporter, damage);
	}
	return rc;
}

static int feed_all(struct exporter *exporter, struct archive_reader *reader, bool include_damaged,
		    export_progress_fn progress, void *ctx, struct r3ring_error *err)
{
	struct export_damage damage = {0};
	struct archive_extent extent;
	struct archive_item item;
	uint64_t told = 0;
	int rc;

	archive_reader_read_ahead(reader);
	archive_reader_get_extent(reader, &extent);
	if (extent.lacks_beginning)
		export_note_beginning_lost(exporter);
	while ((rc = read_next(exporter, reader, &item, include_damaged ? &damage : NULL, err)) ==
	       1) {
		uint64_t passed = archive_reader_passed(reader);

		rc = export_feed(exporter, &item, err);
		if (rc)
			break;
		if (progress && passed - told >= PROGRESS_BYTES) {
			progress(ctx, passed, extent.bytes);
			told = passed;
		}
	}
	return rc;
}

int export_archive(const char *dir, const struct export_options *options,
		   export_progress_fn progress, void *ctx, struct export_summary *summary,
		   struct r3ring_error *err)
{
	struct archive_reader *reader = NULL;
	struct exporter *exporter = NULL;
	int rc = export_refuse_own(dir, options->out, err);

	if (!rc)
		rc = export_open(&exporter, options, err);
	if (rc)
		return rc;
	rc = archive_reader_open(&reader, dir, err);
	if (!rc) {
		rc = feed_all(exporter, reader, options->include & EXPORT_INCLUDE_DAMAGED, progress,
			      ctx, err);
		archive_reader_close(reader);
	}
	if (!rc)
		rc = export_finish(exporter, summary, err);
	export_close(exporter);
	return damaged(dir, rc, err);
}
