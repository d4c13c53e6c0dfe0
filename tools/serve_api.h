/* SPDX-License-Identifier: Apache-2.0 */
/* What `r3ring serve` answers: docs/API.md. */
#ifndef TOOLS_SERVE_API_H
#define TOOLS_SERVE_API_H

#include <stdbool.h>

#include <r3ring/predict.h>

#include "monitor/daemon_watch.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/owners.h"
#include "serve/past.h"
#include "serve/served.h"
#include "serve/streams.h"

/* The context of every handler. */
struct api {
	struct served **served; /* [count] */
	uint32_t count;
	struct owners *owners;          /* NULL where clients cannot be known */
	struct r3ring_history *history; /* of requests that finished, of all of them */
	struct streams *streams;
	struct past *past;
	struct daemon_watch *daemon;
	struct metrics *metrics;
};

/* What docs/openapi.json describes, which is part of the program. */
extern const struct http_route api_routes[];
extern const size_t api_route_count;
extern const char api_openapi_text[];
extern const char api_openapi_text_end[];

/*
 * The instance that a request speaks of: by @name, or the only one when that is NULL.
 * Returns NULL once it has refused.
 */
struct served *api_instance(const struct api *api, const char *name, struct http_answer *answer);

/* Those that ?instance= speaks of, of api->served from @first to @end: the one that it names, or
 * all. Refuses, and returns false, where there is none of that name. */
bool api_instances(const struct api *api, const struct http_request *request, uint32_t *first,
		   uint32_t *end, struct http_answer *answer);

/* Takes ?over=: one of the windows. Refuses, and returns false, what is none; @more: ", NAME" for
 * what the caller takes besides, "" for nothing. */
bool api_window(const struct http_request *request, const char *more, enum r3ring_load_over *over,
		struct http_answer *answer);

/* Whether it is known to be there, has not ended and is of the model that is served; refuses, and
 * returns false, where it is not so. */
bool api_engine_runs(const struct served *served, struct http_answer *answer);

/* As r3ring_signatures_get(), of the engine's model of now. */
int api_signature_of(struct served *served, const char *id, struct r3ring_signature *signature);

/* ---- fields of a body (serve_fields.c) ------------------------------------ */

/* Each refuses, and returns false, where a field is of another type or range. */

/* Refuses what none of @known, ended by NULL, names: a slip of the pen is no default. */
bool api_only_fields(const json_t *body, const char *const *known, struct http_answer *answer);

/* @text stays what it was where the field is not there. */
bool api_text(const json_t *body, const char *name, const char **text, struct http_answer *answer);
bool api_number(const json_t *body, const char *name, uint64_t least, uint64_t most,
		uint64_t *number, struct http_answer *answer);
bool api_flag(const json_t *body, const char *name, bool *flag, struct http_answer *answer);

/* A number in words, which @name is told as. */
bool api_number_of(const char *text, const char *name, uint64_t least, uint64_t most,
		   uint64_t *number, struct http_answer *answer);

/* A number of the query, ?name=..., likewise. */
bool api_query_number(const struct http_request *request, const char *name, uint64_t least,
		      uint64_t most, uint64_t *number, struct http_answer *answer);

/* ---- handlers ------------------------------------------------------------- */

void api_about(void *context, const struct http_request *request, struct http_answer *answer);
void api_openapi(void *context, const struct http_request *request, struct http_answer *answer);
void api_channels(void *context, const struct http_request *request, struct http_answer *answer);
void api_load(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_plan.c: by GET and by POST */
void api_plan(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_monitor.c */
void api_page(void *context, const struct http_request *request, struct http_answer *answer);
void api_history(void *context, const struct http_request *request, struct http_answer *answer);
void api_history_frame(void *context, const struct http_request *request,
		       struct http_answer *answer);

/* serve_metrics.c */
void api_metrics(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_events.c */
void api_events(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_signature.c, serve_score.c */
void api_signature(void *context, const struct http_request *request, struct http_answer *answer);
void api_score(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_requests.c */
void api_requests(void *context, const struct http_request *request, struct http_answer *answer);
void api_routes_of(void *context, const struct http_request *request, struct http_answer *answer);

/* serve_reservations.c */
void api_reserve(void *context, const struct http_request *request, struct http_answer *answer);
void api_reservations(void *context, const struct http_request *request,
		      struct http_answer *answer);
void api_reservation_change(void *context, const struct http_request *request,
			    struct http_answer *answer);
void api_reservation_free(void *context, const struct http_request *request,
			  struct http_answer *answer);

#endif
