/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted of an engine while it runs one model. An engine that comes back with another
 * one has another of these; whoever looks at the former goes on doing so until it is put.
 */
#ifndef MONITOR_ENGINE_MODEL_H
#define MONITOR_ENGINE_MODEL_H

#include <stdbool.h>

#include <r3ring/load.h>
#include <r3ring/predict.h>
#include <r3ring/signature.h>

struct engine_model {
	uint32_t holders;
	uint64_t number; /* 0, 1, ...: how many its engine ran before */
	struct r3ring_load *load;
	struct r3ring_signatures *signatures; /* NULL: none are kept */
	/* What was counted of the models before it: sums go on, and never go back. */
	struct r3ring_load_accounts before;
	/* Its user's; @drop is called with it at the end, unless it is NULL. */
	void *more;
	void (*drop)(void *more);

	/* Of whoever follows the engine: */
	char name[R3RING_MODEL_NAME_MAX + 1]; /* "" before any schema */
	uint32_t experts;
	uint16_t top_k;
	uint32_t expert_ranks;        /* size of the expert parallelism, 0: no schema told of one */
	struct engine_layers *layers; /* [channels], as they told them */
	uint32_t channels;
};

struct engine_model_options {
	struct r3ring_load_options load;
	bool load_only;                 /* no signatures */
	struct r3ring_history *history; /* is given what requests did that ended; NULL: none */
};

/* Held by who makes it. Returns 0, -EINVAL (an option, named), -ENOMEM. */
int engine_model_create(struct engine_model **model, const struct engine_model_options *options,
			struct r3ring_error *err);

/* Holds it once more. Who holds it reads its load and signatures from any thread. */
struct engine_model *engine_model_get(struct engine_model *model);
/* Whoever puts it last frees it. NULL is fine. */
void engine_model_put(struct engine_model *model);

/* Announces a channel to load and signatures. Returns its index in the load, or as
 * r3ring_load_channel(). */
int engine_model_channel(struct engine_model *model, const char *name);

/*
 * Whether a channel's SCHEMA is of this model: of its name, experts and ids, and of the layers that
 * the channel had with it before. Any is of a model that is none yet.
 */
bool engine_model_fits(const struct engine_model *model, uint32_t channel,
		       const struct r3ring_record *schema);

/* Remembers what such a SCHEMA says. Returns 0 or -ENOMEM. */
int engine_model_note(struct engine_model *model, uint32_t channel,
		      const struct r3ring_record *schema);

/* Ends all that is still open in @former, and has @model go on with its sums. Both are fed by
 * whoever calls, and nobody else holds @model yet. Returns 0 or -ENOMEM. */
int engine_model_follow(struct engine_model *model, struct engine_model *former);

/* Adds accounts, such as those of `before` and of all that the load counted. */
void engine_model_add_accounts(struct r3ring_load_accounts *to,
			       const struct r3ring_load_accounts *from);

#endif
