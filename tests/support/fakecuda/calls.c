/* SPDX-License-Identifier: Apache-2.0 */
/* What every call goes through: the lock, counts, errors that stay, and the rules of
 * when it may be made. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fakecuda/runtime.h"

#define CALLS_MAX 128u
#define FAILURES_MAX 16u

struct counted {
	const char *call;
	unsigned int times;
};

struct failure {
	char call[48];
	unsigned int after; /* so many are left */
	cudaError_t error;
	char text[128];
};

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

static struct counted counted[CALLS_MAX];
static struct failure failures[FAILURES_MAX];
static unsigned int failure_count;
static bool has_failed, is_ready, is_serving;
static cudaError_t sticky, sticky_seen;
static struct place sticky_place;
static uint64_t random_state, executor_state;

static __thread const char *at_file;
static __thread int at_line;
static __thread cudaError_t last_error;

/* ---- names of errors ---------------------------------------------------- */

struct named {
	const char *name;
	cudaError_t error;
};

#define NAMED(name, value) {#name, (cudaError_t)(value)},

static const struct named all_errors[] = {FAKECUDA_ERRORS(NAMED)};

static const char *error_name(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(all_errors) / sizeof(*all_errors); i++) {
		if (all_errors[i].error == error)
			return all_errors[i].name;
	}
	return "unrecognized error code";
}

static bool error_named(const char *name, cudaError_t *error)
{
	for (size_t i = 0; i < sizeof(all_errors) / sizeof(*all_errors); i++) {
		if (strcmp(all_errors[i].name, name) == 0) {
			*error = all_errors[i].error;
			return true;
		}
	}
	return false;
}

const char *cudaGetErrorName(cudaError_t error)
{
	return error_name(error);
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaSuccess ? "no error" : error_name(error);
}

/* ---- chance ------------------------------------------------------------- */

static uint32_t next(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return below ? (uint32_t)((*state >> 16) % below) : 0;
}

uint32_t chance(uint32_t below)
{
	return next(&random_state, below);
}

uint32_t executor_chance(uint32_t below)
{
	return next(&executor_state, below);
}

/* ---- findings ----------------------------------------------------------- */

void findings_add(const struct place *place, const char *format, ...)
{
	char what[300], text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(text, sizeof(text), "%s[%d]: %s at %s:%d: %s", program_invocation_short_name,
		 getpid(), place->call, place->file ? place->file : "?", place->line, what);
	machine_add_finding(text);
}

void fakecuda_at(const char *file, int line)
{
	at_file = file;
	at_line = line;
}

/* ---- failing ------------------------------------------------------------ */

/* "CALL:NTH:ERROR[@PROGRAM]" */
static void failure_parse(char *text)
{
	struct failure *failure = &failures[failure_count];
	char *program = strchr(text, '@');
	char *nth, *error;

	snprintf(failure->text, sizeof(failure->text), "%s", text);
	if (program) {
		*program++ = '\0';
		if (strcmp(program, program_invocation_short_name) != 0)
			return;
	}
	nth = strchr(text, ':');
	error = nth ? strchr(nth + 1, ':') : NULL;
	if (!error || failure_count == FAILURES_MAX || !error_named(error + 1, &failure->error)) {
		fprintf(stderr, "fakecuda: cannot make fail: %s\n", text);
		abort();
	}
	*nth++ = '\0';
	snprintf(failure->call, sizeof(failure->call), "%s", text);
	failure->after = (unsigned int)strtoul(nth, NULL, 10);
	failure_count++;
}

static void failures_parse(const char *spec)
{
	char copy[1024], *at, *saved = NULL;

	failure_count = 0;
	has_failed = false;
	if (!spec)
		return;
	snprintf(copy, sizeof(copy), "%s", spec);
	for (at = strtok_r(copy, ",", &saved); at; at = strtok_r(NULL, ",", &saved))
		failure_parse(at);
}

/* Those that are as if the GPU had broken down: nothing works any more. */
static bool is_sticky(cudaError_t error)
{
	return error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure ||
	       error == cudaErrorECCUncorrectable || error == cudaErrorMisalignedAddress;
}

bool failure_due(const char *call, cudaError_t *error)
{
	for (unsigned int i = 0; i < failure_count; i++) {
		struct failure *failure = &failures[i];

		if (strcmp(failure->call, call) != 0 || !failure->after || --failure->after)
			continue;
		/* A program that executes itself anew starts to count anew. */
		if (getenv("FAKECUDA_FAIL") && strstr(getenv("FAKECUDA_FAIL"), failure->text) &&
		    !machine_once(failure->text))
			continue;
		has_failed = true;
		*error = failure->error;
		return true;
	}
	return false;
}

void sticky_set(cudaError_t error)
{
	if (sticky)
		return;
	sticky = error;
	pthread_cond_broadcast(&fake_changed);
}

cudaError_t sticky_get(void)
{
	return sticky;
}

/* ---- starting and ending ------------------------------------------------ */

static void look_at_the_end(void)
{
	if (sticky && !sticky_seen)
		findings_add(&sticky_place, "the GPU failed with %s, and nobody looked",
			     error_name(sticky));
}

static void get_ready(void)
{
	const char *seed = getenv("FAKECUDA_SEED");
	uint64_t number = seed ? strtoull(seed, NULL, 10) : 1;

	is_ready = true;
	random_state = (number + 1) * 0x9E3779B97F4A7C15u + machine_process_number();
	executor_state = random_state * 0xBF58476D1CE4E5B9u | 1;
	failures_parse(getenv("FAKECUDA_FAIL"));
	sticky_place = (struct place){"exit", "the end", 0};
	atexit(look_at_the_end);
}

/* ---- the rules ---------------------------------------------------------- */

static void count(const char *name)
{
	for (unsigned int i = 0; i < CALLS_MAX; i++) {
		if (counted[i].call && strcmp(counted[i].call, name) != 0)
			continue;
		counted[i].call = name;
		counted[i].times++;
		return;
	}
}

static cudaError_t check_driver(unsigned int kind)
{
	if (kind & CALL_NO_CONTEXT)
		return cudaSuccess;
	if (machine_driver_version() < 12000)
		return cudaErrorInsufficientDriver;
	return device_count() ? cudaSuccess : cudaErrorNoDevice;
}

static cudaError_t check_rules(const struct call *call, unsigned int kind)
{
	cudaError_t error;

	if (failure_due(call->place.call, &error)) {
		if (is_sticky(error))
			sticky_set(error);
		return error;
	}
	error = check_driver(kind);
	if (!error && sticky && !(kind & CALL_NO_CONTEXT))
		error = sticky;
	if (is_serving && (kind & (CALL_ALLOCATES | CALL_WAITS)))
		findings_add(&call->place, "a call that %s, while the engine serves",
			     kind & CALL_WAITS ? "waits" : "allocates");
	if (!error && (kind & CALL_NO_CAPTURE) && capture_forbids()) {
		findings_add(&call->place, "illegal while a stream is being captured");
		captures_invalidate();
		error = cudaErrorStreamCaptureUnsupported;
	}
	if (!error && (kind & CALL_ALLOCATES))
		error = device_context();
	return error;
}

bool call_begin(struct call *call, const char *name, unsigned int kind)
{
	call->place = (struct place){name, at_file, at_line};
	call->early = cudaSuccess;
	at_file = NULL;
	at_line = 0;
	machine();
	pthread_mutex_lock(&fake_lock);
	if (!is_ready)
		get_ready();
	count(name);
	call->early = check_rules(call, kind);
	return call->early == cudaSuccess;
}

static cudaError_t end_quietly(const struct call *call, cudaError_t error)
{
	if (call->early)
		error = call->early;
	if (sticky && error == sticky)
		sticky_seen = error;
	pthread_mutex_unlock(&fake_lock);
	return error;
}

cudaError_t call_end(const struct call *call, cudaError_t error)
{
	error = end_quietly(call, error);
	if (error && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

CUresult driver_call_end(const struct call *call, CUresult result)
{
	return (CUresult)end_quietly(call, (cudaError_t)result);
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

/* ---- for tests ---------------------------------------------------------- */

void fakecuda_fail(const char *spec)
{
	machine();
	pthread_mutex_lock(&fake_lock);
	if (!is_ready)
		get_ready();
	failures_parse(spec);
	pthread_mutex_unlock(&fake_lock);
}

bool fakecuda_has_failed(void)
{
	bool failed;

	pthread_mutex_lock(&fake_lock);
	failed = has_failed;
	pthread_mutex_unlock(&fake_lock);
	return failed;
}

unsigned int fakecuda_calls(const char *call)
{
	unsigned int times = 0;

	pthread_mutex_lock(&fake_lock);
	for (unsigned int i = 0; i < CALLS_MAX && counted[i].call; i++) {
		if (strcmp(counted[i].call, call) == 0)
			times = counted[i].times;
	}
	pthread_mutex_unlock(&fake_lock);
	return times;
}

const char *fakecuda_called(unsigned int index)
{
	return index < CALLS_MAX ? counted[index].call : NULL;
}

void fakecuda_serving(bool serving)
{
	pthread_mutex_lock(&fake_lock);
	is_serving = serving;
	pthread_mutex_unlock(&fake_lock);
}
