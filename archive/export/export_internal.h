/* SPDX-License-Identifier: Apache-2.0 */
/* An export at work. */
#ifndef ARCHIVE_EXPORT_EXPORT_INTERNAL_H
#define ARCHIVE_EXPORT_EXPORT_INTERNAL_H

#include "archive/export/export.h"
#include "archive/export/format.h"
#include "archive/export/gaps.h"
#include "archive/export/ids.h"
#include "archive/export/join.h"
#include "archive/export/plan.h"
#include "archive/export/rows.h"
#include "archive/export/stages.h"

struct exporter {
	struct export_options options;
	const struct export_format *format;
	struct export_writer *writer;
	struct r3ring_assembler *assembler;
	struct export_known_layers known;
	struct export_stages stages; /* that told of them */
	struct archive_ranks ranks;
	struct export_plan plan;
	struct export_reader reader;
	struct export_sessions *sessions; /* NULL: turns are not joined */
	struct export_ids *ids;           /* of the requests that may be written */
	struct export_gaps gaps;
	const char **fate; /* [options.requests] of those asked for by id */
	char others[128];  /* instances that --instance left out; "" for none */
	bool instance_seen;
	bool begun;   /* the plan is made */
	bool flushed; /* what comes now waited for ends that nobody told */
	struct export_summary summary;
};

/* Writes a request that is wanted, named @id. Returns as export_feed(). */
int export_write_request(struct exporter *exporter, const struct r3ring_assembled *assembled,
			 const char *id, struct r3ring_error *err);

/* Whether there is an output, and all that was asked for is in it. Returns 0, -ENOENT or
 * -ENOBUFS. */
int export_check_found(const struct exporter *exporter, struct r3ring_error *err);

/* Before a request is written, wanted or not: it may be the turn that consumed another's last
 * token. Returns as export_feed(). */
int export_join_before(struct exporter *exporter, const struct r3ring_assembled *assembled,
		       struct r3ring_error *err);

#endif
