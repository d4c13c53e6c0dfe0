/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: two MoE models run over a real text; a daemon moves their routes
 * into a ring; a reader in another process than both gets them and compares
 * every row of every layer with an independent reference.
 *
 *	run-demo TEXT [REQUESTS]
 *
 * REQUESTS of each model, where fewer than usual are to be shown. Ends with 0 only if every route came and is right.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/demo/report.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"

#define RUNS 2
#define REQUESTS_MAX 1000

static uint32_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	r3ring_store_relaxed_u32(&interrupted, 1);
}

static bool producer_gone(void *ctx)
{
	return command_ended(ctx) || r3ring_load_relaxed_u32(&interrupted);
}

/* ---- a model runs, and is read ---------------------------------------- */

/* `r3ring produce` with the plan. */
static void start_producer(struct command *producer, const char *runtime_dir, const char *instance,
			   const struct demo_plan *plan, unsigned int rank)
{
	char numbers[7][24];
	const char *args[] = {
		"produce",  "--instance",    instance,          "--model",    plan->model,
		"--text",   plan->text_path, "--device",        "host",       "--eplb-replicas",
		"16",       "--rank",        numbers[0],        "--requests", numbers[1],
		"--batch",  numbers[2],      "--prefill-chunk", numbers[3],   "--hidden",
		numbers[4], "--seed",        numbers[5],        "--rate",     numbers[6],
		NULL};
	const uint64_t values[] = {
		rank,         plan->requests, plan->batch_rows,      plan->prefill_chunk,
		plan->hidden, plan->seed,     plan->steps_per_second};

	for (int i = 0; i < 7; i++)
		snprintf(numbers[i], sizeof(numbers[i]), "%" PRIu64, values[i]);
	command_start(producer, runtime_dir, args);
}

/* How the producer ended; what it said last is why it failed. */
static int finish_producer(struct command *producer, bool stop, struct r3ring_error *err)
{
	if (stop && producer->pid)
		kill(producer->pid, SIGTERM);
	if (!command_wait(producer))
		return 0;
	return r3ring_error_set(err, -EIO, "r3ring produce ended with %d: %.400s", producer->code,
				producer->err);
}

/* The comparison comes later, so that this reader only reads. */
static int capture(struct demo_run *run, const char *runtime_dir, unsigned int rank,
		   struct r3ring_error *err)
{
	struct command producer;
	char instance[24], channel[48], text[96];
	uint64_t begin = receive_now_ns();
	int code, ended;

	snprintf(text, sizeof(text), "%s runs, and is read ...", run->title);
	report_progress(text);
	/* Rings of all daemons lie side by side in /dev/shm. */
	snprintf(instance, sizeof(instance), "demo.%d", (int)getpid());
	snprintf(channel, sizeof(channel), "%s/%u", instance, rank);
	start_producer(&producer, runtime_dir, instance, &run->plan, rank);
	code = receive(&run->received, runtime_dir, channel, producer_gone, &producer, err);
	ended = finish_producer(&producer, code || r3ring_load_relaxed_u32(&interrupted), err);
	command_free(&producer);
	run->run_ns = receive_now_ns() - begin;
	return ended ? ended : code;
}

static int compare(struct demo_run *run, struct r3ring_error *err)
{
	char text[96];
	uint64_t begin = receive_now_ns();
	int code;

	snprintf(text, sizeof(text), "%s is computed again, slowly, and compared ...", run->title);
	report_progress(text);
	code = expected_compute(&run->expected, &run->plan, err);
	if (!code)
		code = check(&run->findings, &run->received, &run->expected);
	run->compare_ns = receive_now_ns() - begin;
	return code;
}

/* ---- all -------------------------------------------------------------- */

static int run_all(struct demo_run *runs, struct r3ring_error *err)
{
	struct test_daemon daemon = {0};
	int code = 0;
	int ended;

	test_daemon_start(&daemon, NULL);
	for (unsigned int i = 0; !code && i < RUNS; i++)
		code = capture(&runs[i], daemon.dir, i, err);
	ended = test_daemon_stop(&daemon);
	if (!code && ended)
		code = r3ring_error_set(err, -EIO, "r3ringd ended with %d: %.400s", ended,
					daemon.log);
	test_daemon_close(&daemon);
	for (unsigned int i = 0; !code && i < RUNS; i++) {
		if (r3ring_load_relaxed_u32(&interrupted))
			code = r3ring_error_set(err, -EINTR, "interrupted");
		else
			code = compare(&runs[i], err);
	}
	report_progress(NULL);
	return code;
}

static void free_all(struct demo_run *runs)
{
	for (unsigned int i = 0; i < RUNS; i++) {
		findings_free(&runs[i].findings);
		received_free(&runs[i].received);
		expected_free(&runs[i].expected);
	}
}

/* Small batches, so that there are many steps to measure. @requests: 0: as usual. */
static void plan_all(struct demo_run *runs, const char *text, uint32_t requests)
{
	static const struct demo_plan plan = {
		.batch_rows = 16,
		.prefill_chunk = 16,
		.hidden = 64,
		.steps_per_second = 60,
		.seed = 20,
	};

	for (unsigned int i = 0; i < RUNS; i++) {
		runs[i].plan = plan;
		runs[i].plan.text_path = text;
	}
	runs[0].title = "DeepSeek-V4-Flash";
	runs[0].plan.model = "deepseek-v4-flash";
	runs[0].plan.requests = requests ? requests : 16;
	runs[1].title = "Kimi-K3";
	runs[1].plan.model = "kimi-k3";
	runs[1].plan.requests = requests ? requests : 10;
}

/* 0 for what is no number of requests. */
static uint32_t parse_requests(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && number <= REQUESTS_MAX ? (uint32_t)number
									       : 0;
}

int main(int argc, char **argv)
{
	struct sigaction interrupt = {.sa_handler = on_interrupt};
	struct demo_run runs[RUNS] = {0};
	struct r3ring_error err = {0};
	bool good = true;
	int code;

	if (argc < 2 || argc > 3 || (argc == 3 && !parse_requests(argv[2]))) {
		fprintf(stderr, "usage: %s TEXT [REQUESTS], 1 to %d\n", argv[0], REQUESTS_MAX);
		return 2;
	}
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &interrupt, NULL);
	plan_all(runs, argv[1], argc == 3 ? parse_requests(argv[2]) : 0);
	report_introduction(argv[1]);
	code = run_all(runs, &err);
	if (code) {
		fprintf(stderr, "demo: %s\n", err.text[0] ? err.text : strerror(-code));
		good = false;
	} else {
		report_print(runs, RUNS);
		for (unsigned int i = 0; i < RUNS; i++)
			good &= findings_good(&runs[i].findings);
	}
	free_all(runs);
	return good ? 0 : 1;
}
