/* SPDX-License-Identifier: Apache-2.0 */
/* Where and when a process is struck. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/strike.h"

#define POINT_MS 250 /* a point that is not passed until then is given up */
#define MOMENT_MS 30
#define PASSINGS 8 /* of a point with a name, at most */
#define PASSINGS_ANY 400

#ifdef R3RING_TEST_POINTS
static const bool has_points = true;
#else
static const bool has_points;
#endif

/* ---- labels ------------------------------------------------------------- */

static const char *const daemon_labels[] = {
	"",
	"ring intent",
	"ring payload",
	"ring fields",
	"ring seq",
	"ring tail position",
	"ring tail",
	"ring counts",
	"ring marker",
	"ring reserved",
	"ring checked",
	"ring wake",
	"ring keyframe",
	"drain gap carried",
	"drain gap told",
	"drain drop announced",
	"drain rows noted",
	"drain step noted",
	"drain extent released",
	"drain step told",
	"drain copied",
	"drain said seq",
	"drain said entry",
	"drain side told",
	"drain entry told",
	"drain resumed",
	"lane consumed",
	"channel listed",
	"channel made",
	"channel begun",
	"channel opened",
	"channel welcomed",
	"channel unlinked",
	"generation written",
	"generation stored",
	"gate admitted",
	"gate let go",
};

/* What it passes while a lossless reader holds it back, or behind that. */
static const char *const stall_labels[] = {
	"gate demoted",      "stall nap",          "drain untold noted",
	"drain untold told", "drain step dropped",
};
static const char *const daemon_start_labels[] = {"ring adopted", "gate keeps", "orphan adopted"};
static const char *const daemon_end_labels[] = {
	"",
	"ring seq",
	"ring closed",
	"carried written",
	"carried stored",
	"carried removed",
	"channel unlinked",
};

static const char *const engine_labels[] = {
	"",
	"lane number",
	"lane position",
	"pages begun rows",
	"pages begun",
	"engine announced",
	"engine armed",
	"engine ended",
};
static const char *const engine_start_labels[] = {"engine connected", "engine welcomed"};

static const char *const reader_labels[] = {
	"",
	"reader cursor told",
	"reader waits",
	"reader woke",
	"reader shown",
	"reader registered anew",
	"reader moved on",
};
static const char *const reader_start_labels[] = {"reader asked", "reader attached",
						  "reader shown"};

#define LABELS(names)                                                                              \
	{                                                                                          \
		names, sizeof(names) / sizeof((names)[0])                                          \
	}

const struct labels daemon_points = LABELS(daemon_labels);
const struct labels daemon_stall = LABELS(stall_labels);
const struct labels daemon_start = LABELS(daemon_start_labels);
const struct labels daemon_end = LABELS(daemon_end_labels);
const struct labels engine_points = LABELS(engine_labels);
const struct labels engine_start = LABELS(engine_start_labels);
const struct labels reader_points = LABELS(reader_labels);
const struct labels reader_start = LABELS(reader_start_labels);

/* ---- chance ------------------------------------------------------------- */

static uint64_t state;

void strike_seed(uint64_t seed)
{
	state = seed;
}

/* Source: Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8(14), 2003. */
uint64_t strike_chance(uint64_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % bound;
}

/* ---- striking ----------------------------------------------------------- */

bool strike_has_points(void)
{
	return has_points;
}

bool strike_await(pid_t pid, uint64_t ms)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool dead = poll(&end, 1, (int)ms) > 0;

	close(end.fd);
	return dead;
}

static const char *any_of(const struct labels *labels)
{
	return labels->names[strike_chance(labels->count)];
}

/* What was done last, for who looks for a fault. */
static void note(const char *how, const char *label, bool dead)
{
	if (getenv("TRACE"))
		fprintf(stderr, "strike: %s '%s': %s\n", how, label, dead ? "dead" : "not passed");
}

bool strike(pid_t pid, struct test_points *points, const struct labels *labels)
{
	bool at_point = has_points && strike_chance(3) != 0;
	const char *label = any_of(labels);
	bool dead;

	if (at_point)
		test_points_arm(points, label,
				1 + (uint32_t)strike_chance(label[0] ? PASSINGS : PASSINGS_ANY));
	dead = strike_await(pid, at_point ? POINT_MS : strike_chance(MOMENT_MS));
	test_points_disarm(points);
	note(at_point ? "at" : "at any moment, not at", label, dead);
	return dead;
}

void strike_once(struct test_points *points, const struct labels *labels)
{
	const char *label = any_of(labels);

	test_points_arm(points, label, label[0] ? 1 : 1 + (uint32_t)strike_chance(PASSINGS));
	note("once at", label, false);
}
