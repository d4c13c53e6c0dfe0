/* SPDX-License-Identifier: Apache-2.0 */
/* The raw file of a recording. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

#include <sha2.h>

#include "producer/reference/trace_file.h"

_Static_assert(TRACE_DIGEST_TEXT == SHA256_DIGEST_STRING_LENGTH, "a digest in words");

FILE *trace_file_open(const char *path)
{
	FILE *file = fopen(path, "rbe");
	struct stat st;

	if (file && fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
		fclose(file);
		errno = EISDIR;
		return NULL;
	}
	return file;
}

static size_t count_ids(const struct trace *t)
{
	return (size_t)t->rows * t->layer_count * t->top_k;
}

static int load_ids(struct trace *t, FILE *file, const char *path, struct r3ring_error *err)
{
	uint64_t bytes = count_ids(t) * sizeof(*t->ids);
	struct stat st;

	if (fstat(fileno(file), &st))
		return r3ring_error_set(err, -errno, "%s: %m: make it readable", path);
	if ((uint64_t)st.st_size != bytes)
		return r3ring_error_set(err, -EMSGSIZE,
					"%s: has %lld bytes, but shape [%u, %u, %u] of its header "
					"needs %llu: correct the shape or the file",
					path, (long long)st.st_size, t->rows, t->layer_count,
					t->top_k, (unsigned long long)bytes);
	assert(bytes); /* no size of the shape is 0 */
	t->ids = malloc(bytes);
	if (!t->ids)
		return r3ring_error_set(err, -ENOMEM, "%s: no memory for %llu bytes", path,
					(unsigned long long)bytes);
	if (fread(t->ids, 1, bytes, file) != bytes)
		return r3ring_error_set(err, -EIO, "%s: could not be read to its end: try again",
					path);
	return 0;
}

static int check_digest(const struct trace *t, const struct trace_file *from,
			struct r3ring_error *err)
{
	char digest[TRACE_DIGEST_TEXT];

	if (!from->digest[0])
		return 0;
	SHA256Data((const uint8_t *)t->ids, count_ids(t) * sizeof(*t->ids), digest);
	if (strcasecmp(from->digest, digest) == 0)
		return 0;
	return r3ring_error_set(err, -EBADMSG,
				"%s: its sha256 is %s, not what the header %s says: get the file "
				"that belongs to it, or correct the header",
				from->path, digest, from->header);
}

static int check_ids(const struct trace *t, const char *path, struct r3ring_error *err)
{
	size_t row_ids = (size_t)t->layer_count * t->top_k;

	for (size_t i = 0; i < count_ids(t); i++) {
		if (t->ids[i] >= t->experts && t->ids[i] != R3RING_MISSING)
			return r3ring_error_set(err, -ERANGE,
						"%s: row %zu has expert %u, but num_experts is %u: "
						"header and file do not belong together",
						path, i / row_ids, t->ids[i], t->experts);
	}
	return 0;
}

int trace_file_read(struct trace *trace, const struct trace_file *from, struct r3ring_error *err)
{
	FILE *file = trace_file_open(from->path);
	int rc;

	if (!file)
		return r3ring_error_set(err, -errno,
					"%s: %m: field \"file\" of %s names it; put it there",
					from->path, from->header);
	rc = load_ids(trace, file, from->path, err);
	fclose(file);
	if (!rc)
		rc = check_digest(trace, from, err);
	return rc ? rc : check_ids(trace, from->path, err);
}
