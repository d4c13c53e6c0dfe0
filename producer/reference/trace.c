/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded routing: header and file, checked field by field. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "producer/reference/trace.h"
#include "producer/reference/trace_file.h"

#define TRACE_DTYPE "uint16 little-endian"
#define TRACE_ROWS_MAX (1u << 30)
#define TRACE_REPEAT_MAX 1000u
#define LAYER_ID_MAX 65535u

/* Where in a header one is, for messages. */
struct place {
	const char *header;
	const char *within; /* "", or "requests[3]." */
	struct r3ring_error *err;
};

static int missing_field(const struct place *at, const char *field, const char *kind)
{
	return r3ring_error_set(at->err, -EBADMSG,
				"%s: field \"%s%s\" is missing or not %s: add it to the header",
				at->header, at->within, field, kind);
}

static int get_number(const struct place *at, const json_t *value, const char *field, uint32_t min,
		      uint32_t max, uint32_t *number)
{
	json_int_t found;

	if (!json_is_integer(value))
		return missing_field(at, field, "a number");
	found = json_integer_value(value);
	if (found < min || found > max)
		return r3ring_error_set(at->err, -ERANGE,
					"%s: field \"%s%s\" is %lld, beyond %u to %u: correct it",
					at->header, at->within, field, (long long)found, min, max);
	*number = (uint32_t)found;
	return 0;
}

static int get_member(const struct place *at, const json_t *object, const char *field, uint32_t min,
		      uint32_t max, uint32_t *number)
{
	return get_number(at, json_object_get(object, field), field, min, max, number);
}

/* Copies a text of 1 to @size - 1 bytes. */
static int get_text(const struct place *at, const json_t *object, const char *field, char *text,
		    size_t size)
{
	const json_t *value = json_object_get(object, field);
	size_t len = json_string_length(value);

	if (!json_is_string(value) || !len)
		return missing_field(at, field, "a text");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)json_string_value(value)[i];

		if (c < 0x20 || c == 0x7f)
			return r3ring_error_set(at->err, -ERANGE,
						"%s: field \"%s%s\" has a control character "
						"(0x%02x): take it out",
						at->header, at->within, field, c);
	}
	if (len >= size)
		return r3ring_error_set(at->err, -ERANGE,
					"%s: field \"%s%s\" has %zu bytes: at most %zu are taken",
					at->header, at->within, field, len, size - 1);
	memcpy(text, json_string_value(value), len + 1);
	return 0;
}

static int get_array(const struct place *at, const json_t *object, const char *field,
		     const json_t **array)
{
	*array = json_object_get(object, field);
	if (!json_is_array(*array) || !json_array_size(*array))
		return missing_field(at, field, "an array with something in it");
	return 0;
}

static int read_shape(struct trace *t, const struct place *at, const json_t *root)
{
	static const char *const names[] = {"shape[0]", "shape[1]", "shape[2]"};
	const uint32_t max[] = {TRACE_ROWS_MAX, R3RING_LAYERS_MAX, R3RING_TOP_K_MAX};
	uint32_t *const sizes[] = {&t->rows, &t->layer_count, &t->top_k};
	const json_t *shape;
	uint32_t k = 0;
	int rc = get_array(at, root, "shape", &shape);

	if (!rc && json_array_size(shape) != 3)
		rc = missing_field(at, "shape", "three numbers: rows, layers, k");
	for (size_t i = 0; !rc && i < 3; i++)
		rc = get_number(at, json_array_get(shape, i), names[i], 1, max[i], sizes[i]);
	if (!rc)
		rc = get_member(at, root, "num_experts", 1, R3RING_EXPERTS_MAX, &t->experts);
	if (!rc)
		rc = get_member(at, root, "k", 1, R3RING_TOP_K_MAX, &k);
	if (!rc && k != t->top_k)
		rc = r3ring_error_set(at->err, -ERANGE,
				      "%s: field \"k\" is %u, but shape[2] is %u: make them equal",
				      at->header, k, t->top_k);
	if (!rc && t->top_k > t->experts)
		rc = r3ring_error_set(at->err, -ERANGE,
				      "%s: field \"k\" is %u, more than num_experts %u: a token "
				      "cannot have more experts than there are; correct one",
				      at->header, t->top_k, t->experts);
	return rc;
}

static int read_texts(struct trace *t, const struct place *at, const json_t *root)
{
	char dtype[sizeof(TRACE_DTYPE) + 32];
	uint32_t missing;
	int rc = get_text(at, root, "dtype", dtype, sizeof(dtype));

	if (!rc && strcmp(dtype, TRACE_DTYPE) != 0)
		rc = r3ring_error_set(at->err, -ERANGE,
				      "%s: field \"dtype\" is \"%s\": only \"%s\" is read",
				      at->header, dtype, TRACE_DTYPE);
	if (!rc)
		rc = get_member(at, root, "missing_value", R3RING_MISSING, R3RING_MISSING,
				&missing);
	if (!rc)
		rc = get_text(at, root, "model", t->model, sizeof(t->model));
	return rc;
}

static int check_layer(const struct trace *t, const struct place *at, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++) {
		if (t->layers[i].layer_id == t->layers[index].layer_id)
			return r3ring_error_set(at->err, -ERANGE,
						"%s: field \"layer_ids\" has layer %d twice: a "
						"layer has one place",
						at->header, t->layers[i].layer_id);
	}
	return 0;
}

static int read_layers(struct trace *t, const struct place *at, const json_t *root)
{
	const json_t *ids;
	uint32_t id = 0;
	int rc = get_array(at, root, "layer_ids", &ids);

	if (rc)
		return rc;
	if (json_array_size(ids) != t->layer_count)
		return r3ring_error_set(at->err, -ERANGE,
					"%s: field \"layer_ids\" names %zu layers, but shape[1] is "
					"%u: make them equal",
					at->header, json_array_size(ids), t->layer_count);
	assert(t->layer_count); /* read_shape() has seen to it */
	t->layers = calloc(t->layer_count, sizeof(*t->layers));
	if (!t->layers)
		return r3ring_error_set(at->err, -ENOMEM, "%s: no memory for its layers",
					at->header);
	for (uint32_t i = 0; !rc && i < t->layer_count; i++) {
		rc = get_number(at, json_array_get(ids, i), "layer_ids[]", 0, LAYER_ID_MAX, &id);
		if (rc)
			return rc;
		t->layers[i].layer_id = (int32_t)id;
		rc = check_layer(t, at, i);
	}
	return rc;
}

static int read_request(const struct trace *t, const struct place *header, const json_t *object,
			uint32_t index, struct workload_request *r)
{
	char within[32];
	struct place at = {header->header, within, header->err};
	uint32_t first_row = 0;
	int rc;

	snprintf(within, sizeof(within), "requests[%u].", index);
	rc = get_text(&at, object, "request_id", r->id, sizeof(r->id));
	if (!rc)
		rc = get_member(&at, object, "first_row", 0, t->rows - 1, &first_row);
	if (!rc)
		rc = get_member(&at, object, "rows", 1, t->rows, &r->rows);
	if (!rc)
		rc = get_member(&at, object, "prompt_tokens", 0, TRACE_ROWS_MAX, &r->prompt_tokens);
	if (!rc && r->rows > t->rows - first_row)
		rc = r3ring_error_set(at.err, -ERANGE,
				      "%s: requests[%u] has rows %u to %u, but shape[0] is %u: "
				      "correct first_row or rows",
				      at.header, index, first_row, first_row + r->rows - 1,
				      t->rows);
	if (rc)
		return rc;
	r->first_position = r->prompt_tokens;
	r->source = first_row;
	r->arrival = index;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static int check_ids_differ(const struct trace *t, const struct place *at)
{
	const char **sorted = calloc(t->request_count, sizeof(*sorted));
	int rc = 0;

	if (!sorted)
		return r3ring_error_set(at->err, -ENOMEM, "%s: no memory for its requests",
					at->header);
	for (uint32_t i = 0; i < t->request_count; i++)
		sorted[i] = t->requests[i].id;
	qsort(sorted, t->request_count, sizeof(*sorted), by_text);
	for (uint32_t i = 1; !rc && i < t->request_count; i++) {
		if (!strcmp(sorted[i - 1], sorted[i]))
			rc = r3ring_error_set(at->err, -ERANGE,
					      "%s: request_id \"%.64s\" is there twice: give each "
					      "request its own",
					      at->header, sorted[i]);
	}
	free(sorted);
	return rc;
}

static int by_first_row(const void *a, const void *b)
{
	const struct workload_request *const *x = a, *const *y = b;

	return (*x)->source < (*y)->source ? -1 : (*x)->source > (*y)->source;
}

static int rows_of_nobody(const struct place *at, uint64_t from, uint64_t to)
{
	return r3ring_error_set(at->err, -ERANGE,
				"%s: rows %llu to %llu belong to no request: correct first_row or "
				"rows of the requests, or shape[0]",
				at->header, (unsigned long long)from, (unsigned long long)to - 1);
}

static int check_each_row(const struct trace *t, const struct place *at,
			  const struct workload_request *const *sorted)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < t->request_count; i++) {
		const struct workload_request *r = sorted[i];

		if (r->source < next)
			return r3ring_error_set(
				at->err, -ERANGE,
				"%s: requests \"%.64s\" and \"%.64s\" both have row %u: correct "
				"first_row or rows of one",
				at->header, sorted[i - 1]->id, r->id, (uint32_t)r->source);
		if (r->source > next)
			return rows_of_nobody(at, next, r->source);
		next = r->source + (uint64_t)r->rows;
	}
	return next < t->rows ? rows_of_nobody(at, next, t->rows) : 0;
}

/* Each row of the recording is one request's. */
static int check_rows(const struct trace *t, const struct place *at)
{
	const struct workload_request **sorted = calloc(t->request_count, sizeof(*sorted));
	int rc;

	if (!sorted)
		return r3ring_error_set(at->err, -ENOMEM, "%s: no memory for its requests",
					at->header);
	for (uint32_t i = 0; i < t->request_count; i++)
		sorted[i] = &t->requests[i];
	qsort(sorted, t->request_count, sizeof(*sorted), by_first_row);
	rc = check_each_row(t, at, sorted);
	free(sorted);
	return rc;
}

static int read_requests(struct trace *t, const struct place *at, const json_t *root)
{
	const json_t *list;
	int rc = get_array(at, root, "requests", &list);

	if (rc)
		return rc;
	if (json_array_size(list) > WORKLOAD_REQUESTS_MAX)
		return r3ring_error_set(at->err, -ERANGE, "%s: more than %u requests: split it",
					at->header, WORKLOAD_REQUESTS_MAX);
	t->request_count = (uint32_t)json_array_size(list);
	t->requests = calloc(t->request_count, sizeof(*t->requests));
	if (!t->requests)
		return r3ring_error_set(at->err, -ENOMEM, "%s: no memory for its requests",
					at->header);
	for (uint32_t i = 0; !rc && i < t->request_count; i++)
		rc = read_request(t, at, json_array_get(list, i), i, &t->requests[i]);
	return rc ? rc : check_ids_differ(t, at);
}

/* "" where the header says none. */
static int get_digest(const struct place *at, const json_t *root, char digest[TRACE_DIGEST_TEXT])
{
	const json_t *said = json_object_get(root, "sha256");

	digest[0] = '\0';
	if (!said)
		return 0;
	if (json_string_length(said) != TRACE_DIGEST_TEXT - 1)
		return missing_field(at, "sha256", "64 hexadecimal digits");
	memcpy(digest, json_string_value(said), TRACE_DIGEST_TEXT);
	return 0;
}

/* The raw file lies beside its header. */
static int read_file(struct trace *t, const struct place *at, const json_t *root)
{
	const char *slash = strrchr(at->header, '/');
	int folder = slash ? (int)(slash - at->header) + 1 : 0;
	char digest[TRACE_DIGEST_TEXT];
	char name[NAME_MAX + 1];
	char path[PATH_MAX];
	int rc = get_text(at, root, "file", name, sizeof(name));

	if (!rc)
		rc = get_digest(at, root, digest);
	if (rc)
		return rc;
	if (strchr(name, '/'))
		return r3ring_error_set(at->err, -ERANGE,
					"%s: field \"file\" is \"%s\": it names a file beside the "
					"header, without '/'",
					at->header, name);
	if (snprintf(path, sizeof(path), "%.*s%s", folder, at->header, name) >= (int)sizeof(path))
		return r3ring_error_set(at->err, -ENAMETOOLONG, "%s: path too long", at->header);
	return trace_file_read(t, &(struct trace_file){path, at->header, digest}, at->err);
}

static int read_fields(struct trace *t, const struct place *at, const json_t *root)
{
	int rc = read_texts(t, at, root);

	if (!rc)
		rc = read_shape(t, at, root);
	if (!rc)
		rc = read_layers(t, at, root);
	if (!rc)
		rc = read_requests(t, at, root);
	if (!rc)
		rc = read_file(t, at, root);
	return rc ? rc : check_rows(t, at);
}

int trace_read(struct trace *trace, const char *header, struct r3ring_error *err)
{
	struct place at = {header, "", err};
	struct trace made = {0};
	json_error_t problem;
	json_t *root;
	FILE *file = trace_file_open(header);
	int rc;

	if (!file)
		return r3ring_error_set(err, -errno, "%s: %m: --trace takes a readable JSON header",
					header);
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &problem);
	fclose(file);
	if (!json_is_object(root)) {
		rc = r3ring_error_set(err, -EBADMSG, "%s: line %d: %s: --trace takes a JSON header",
				      header, root ? 1 : problem.line,
				      root ? "not an object" : problem.text);
		json_decref(root);
		return rc;
	}
	rc = read_fields(&made, &at, root);
	json_decref(root);
	if (rc)
		trace_free(&made);
	else
		*trace = made;
	return rc;
}

void trace_free(struct trace *trace)
{
	free(trace->layers);
	free(trace->ids);
	free(trace->requests);
	*trace = (struct trace){0};
}

/* Names a request of a later round. */
static int rename_request(struct workload_request *r, uint32_t round, struct r3ring_error *err)
{
	size_t len = strlen(r->id);
	int more = snprintf(r->id + len, sizeof(r->id) - len, "~%u", round);

	if (len + (size_t)more < sizeof(r->id))
		return 0;
	r->id[len] = '\0';
	return r3ring_error_set(err, -ENAMETOOLONG,
				"request_id \"%.64s\" is too long to be repeated: shorten it or "
				"leave --repeat",
				r->id);
}

int trace_workload(const struct trace *trace, uint32_t repeat, struct workload *workload,
		   struct r3ring_error *err)
{
	uint64_t count = (uint64_t)trace->request_count * repeat;
	struct workload_request *requests;
	int rc = 0;

	if (repeat < 1 || repeat > TRACE_REPEAT_MAX || count > WORKLOAD_REQUESTS_MAX)
		return r3ring_error_set(err, -EINVAL,
					"%u repeats: --repeat takes 1 to %u, and at most %u "
					"requests in all",
					repeat, TRACE_REPEAT_MAX, WORKLOAD_REQUESTS_MAX);
	requests = calloc(count, sizeof(*requests));
	if (!requests)
		return r3ring_error_set(err, -ENOMEM, "no memory for %llu requests",
					(unsigned long long)count);
	for (uint32_t i = 0; !rc && i < count; i++) {
		requests[i] = trace->requests[i % trace->request_count];
		requests[i].arrival = i;
		if (i >= trace->request_count)
			rc = rename_request(&requests[i], i / trace->request_count + 1, err);
	}
	if (rc)
		free(requests);
	else
		*workload = (struct workload){.requests = requests, .count = (uint32_t)count};
	return rc;
}

void trace_layer(void *ctx, uint32_t layer, const int32_t *token_ids, uint32_t rows, uint16_t *ids)
{
	const struct trace *t = ctx;

	for (uint32_t row = 0; row < rows; row++, ids += t->top_k) {
		size_t recorded = (size_t)token_ids[row] * t->layer_count + layer;

		memcpy(ids, t->ids + recorded * t->top_k, t->top_k * sizeof(*ids));
	}
}
