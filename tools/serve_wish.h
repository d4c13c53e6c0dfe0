/* SPDX-License-Identifier: Apache-2.0 */
/* What a client wants to reserve: from its words to a demand. */
#ifndef TOOLS_SERVE_WISH_H
#define TOOLS_SERVE_WISH_H

#include "tools/serve_api.h"

struct wish {
	const struct api *api;
	struct served *served;
	struct engine_model *model;      /* that it is foretold by, held; NULL: none yet */
	struct r3ring_book *book;        /* of that */
	enum r3ring_predictor predictor; /* as was asked for; then the one that was used */
	const char *request;             /* text id; NULL: none is named */
	struct r3ring_labels labels;
	uint64_t tokens;
	double age_ms; /* of the newest step of its load, once a demand was made; below 0: none */
	bool epochs_differ; /* likewise: its ranks' newest steps ran with different EPLB maps */
};

/* What wish_read() takes of a body. */
#define WISH_FIELDS "tokens", "predictor", "request", "class", "prefix_key"

/* Takes these fields; what is not there stays as it is, the predictor is then "auto". Refuses, and
 * returns false, what is wrong. */
bool wish_read(struct wish *wish, const json_t *body, struct http_answer *answer);

/* Holds the instance's model of now until wish_end(). */
void wish_hold(struct wish *wish);

/* Holds it, where that was not done, and finds its book. Refuses, and returns false, where there can be none. */
bool wish_find_book(struct wish *wish, struct http_answer *answer);

/* Whether that book can promise anything more. Refuses, and returns false, where it cannot. */
bool wish_may_promise(const struct wish *wish, struct http_answer *answer);

/* Lets go what was held; fine where nothing was. */
void wish_end(struct wish *wish);

/* What is expected of it, by the predictor. NULL once it has refused; else the caller's. */
struct r3ring_demand *wish_demand(struct wish *wish, struct http_answer *answer);

/* The book's answer in JSON; units as visits of tokens. */
json_t *wish_tightest(const struct wish *wish, const struct r3ring_reserve_answer *answer);
json_t *wish_visits(int64_t units);

#endif
