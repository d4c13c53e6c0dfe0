/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: what this machine lacks, each with its remedy.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/doctor.h"
#include "tools/output.h"

struct check {
	const char *name;
	void (*look)(struct doctor_finding *finding);
};

static const struct check checks[] = {
	{"kernel", doctor_check_kernel},
	{"shared memory", doctor_check_shared_memory},
	{"locked memory", doctor_check_locked_memory},
	{"page size", doctor_check_page_size},
	{"sealed memory", doctor_check_sealed_memory},
	{"io_uring", doctor_check_io_uring},
	{"pidfd", doctor_check_pidfd},
	{"PID namespace", doctor_check_pid_namespace},
	{"runtime directory", doctor_check_runtime_dir},
	{"daemon", doctor_check_daemon},
	{"GPU", doctor_check_gpu},
	{"GPU buffers", doctor_check_gpu_buffers},
};

#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static const char usage[] =
	"usage: r3ring doctor [--json]\n"
	"\n"
	"Looks at what r3ring needs of this machine and says what is missing and what to do.\n"
	"Run it as the user, and in the container, that the engine or the daemon runs in.\n"
	"\n"
	"  --json  one object: \"failed\", and \"checks\" with name, verdict, detail, remedy\n"
	"  --help  this text\n"
	"\n"
	"exit codes: 0 nothing failed (warnings are no failures), 1 something will not work,\n"
	"2 usage\n";

/* ---- findings --------------------------------------------------------- */

void doctor_ok(struct doctor_finding *finding, const char *format, ...)
{
	va_list arguments;

	finding->verdict = DOCTOR_OK;
	finding->remedy[0] = '\0';
	va_start(arguments, format);
	vsnprintf(finding->detail, sizeof(finding->detail), format, arguments);
	va_end(arguments);
}

void doctor_lacks(struct doctor_finding *finding, enum doctor_verdict verdict, const char *remedy,
		  const char *format, ...)
{
	va_list arguments;

	finding->verdict = verdict;
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
	va_start(arguments, format);
	vsnprintf(finding->detail, sizeof(finding->detail), format, arguments);
	va_end(arguments);
}

static const char *verdict_name(enum doctor_verdict verdict)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "OK",
		[DOCTOR_WARN] = "WARN",
		[DOCTOR_FAIL] = "FAIL",
	};

	return names[verdict];
}

/* ---- printing --------------------------------------------------------- */

static void print_text(const struct doctor_finding findings[CHECKS])
{
	for (size_t i = 0; i < CHECKS; i++) {
		printf("%-5s %-18s %s\n", verdict_name(findings[i].verdict), checks[i].name,
		       findings[i].detail);
		if (findings[i].remedy[0])
			printf("%24s remedy: %s\n", "", findings[i].remedy);
	}
}

static json_t *finding_object(const struct check *check, const struct doctor_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "check", check->name, "verdict",
			 verdict_name(finding->verdict), "detail", finding->detail, "remedy",
			 finding->remedy);
}

/* NULL when memory is out. */
static json_t *report_object(const struct doctor_finding findings[CHECKS], bool failed)
{
	json_t *list = json_array();
	json_t *report = json_pack("{s:b, s:o}", "failed", (int)failed, "checks", list);
	int code = report ? 0 : -1;

	for (size_t i = 0; !code && i < CHECKS; i++)
		code = json_array_append_new(list, finding_object(&checks[i], &findings[i]));
	if (!code)
		return report;
	json_decref(report);
	return NULL;
}

/* ---- command ---------------------------------------------------------- */

static bool look_at_all(struct doctor_finding findings[CHECKS])
{
	bool failed = false;

	for (size_t i = 0; i < CHECKS; i++) {
		checks[i].look(&findings[i]);
		failed |= findings[i].verdict == DOCTOR_FAIL;
	}
	return failed;
}

static int examine(bool json)
{
	struct doctor_finding findings[CHECKS] = {0};
	bool failed = look_at_all(findings);

	if (!json)
		print_text(findings);
	else if (output_json("r3ring doctor", report_object(findings, failed)))
		return TOOL_FAILED;
	return failed ? TOOL_FAILED : TOOL_DONE;
}

int cmd_doctor(int argc, char **argv)
{
	return arguments_json_only(argc, argv, usage, examine);
}
