/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/page_stage.h"

#define SCRIPT_BYTES (1u << 16)

struct browser browser;

static char address[64]; /* "127.0.0.1:PORT", once it is known */

void page_stage_start(void)
{
	if (!browser_is_there())
		cr_skip_test(BROWSER_ABSENT);
	serve_stage_start();
	browser_start(&browser, stage.tool.daemon.dir);
}

void page_stage_stop(void)
{
	browser_stop(&browser);
	if (stage.tool.daemon.dir[0])
		serve_stage_stop();
}

/* Where it says it listens. */
static void read_address(void)
{
	char told[512] = "";
	const char *begin;

	cr_assert(command_tells(&stage.server, "listening on 127.0.0.1:"));
	cr_assert_gt(pread(stage.server.err_fd, told, sizeof(told) - 1, 0), 0);
	begin = strstr(told, "127.0.0.1:");
	cr_assert(begin);
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(begin, "\n"), begin);
}

const char *page_nobody(void)
{
	static char name[128];

	snprintf(name, sizeof(name), "%s-nobody", serve_stage_instance());
	return name;
}

void page_serve(const char *const *more)
{
	const char *args[16] = {"serve",
				"--instance",
				serve_stage_instance(),
				"--instance",
				page_nobody(),
				"--listen",
				address[0] ? address : "127.0.0.1:0"};
	int count = 7;

	for (; *more; more++)
		args[count++] = *more;
	command_start(&stage.server, stage.tool.daemon.dir, args);
	read_address();
}

void page_look(void)
{
	char url[96];

	snprintf(url, sizeof(url), "http://%s/", address);
	browser_go(&browser, url);
}

void page_run(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++)
		engine_step(&stage.tool.engine, 0, 4);
}

void page_lose(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++)
		cr_assert_lt(engine_begin(&stage.tool.engine, 0, stage.tool.engine.max_rows + 1),
			     0);
}

struct r3ring_producer *page_open_rank(const char *model, struct r3ring_coordinate stage_of)
{
	struct r3ring_layer_entry layer = {.layer_id = ENGINE_FIRST_LAYER};
	const struct r3ring_producer_options options = {
		.size = sizeof(options),
		.runtime_dir = stage.tool.daemon.dir,
		.instance = serve_stage_instance(),
		.rank = 1,
		.device = "host",
		.model = model,
		.experts = ENGINE_EXPERTS,
		.top_k = ENGINE_TOP_K,
		.max_rows = 4,
		.layer_count = 1,
		.layers = &layer,
		.coordinates = {.pp = stage_of},
	};
	struct r3ring_producer *producer;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_producer_open(&producer, &options, &err), 0, "%s", err.text);
	return producer;
}

void page_five_steps(void)
{
	page_serve((const char *[]){NULL});
	page_run(5);
	page_look();
	expect_becomes("document.getElementById('heat-says').textContent.includes(', 20 tokens')");
}

double page_computes(const char *file, const char *expression)
{
	static char script[SCRIPT_BYTES];
	char path[128];
	FILE *in;
	size_t used;
	json_t *value;
	double number;

	snprintf(path, sizeof(path), "serve/page/%s", file);
	in = fopen(path, "r");
	cr_assert(in, "%s", path);
	used = fread(script, 1, sizeof(script) - 256, in);
	fclose(in);
	snprintf(script + used, sizeof(script) - used, "\nreturn %s;", expression);
	value = browser_run(&browser, script);
	number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
	json_decref(value);
	return number;
}

const char *page_says(void)
{
	static char text[4096];

	snprintf(text, sizeof(text), "of the request it says \"%s\"; ",
		 browser_text(&browser, "return document.getElementById('request-says').textContent"
					" + document.getElementById('routes-says').textContent;"));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "the console: %s",
		 browser_errors(&browser));
	return text;
}
