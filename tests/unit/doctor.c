/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring doctor: what it makes of what it finds. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/doctor.h"

#define MIB (1ull << 20)

Test(doctor, failure_1_too_little_shared_memory_names_need_free_and_remedy)
{
	struct doctor_finding finding = {0};

	doctor_judge_shared_memory(&finding, 64 * MIB, 20 * MIB, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_FAIL);
	cr_expect(strstr(finding.detail, "20.0 MiB free of 64.0 MiB"), "%s", finding.detail);
	cr_expect(strstr(finding.detail, "needs 32.0 MiB"), "%s", finding.detail);
	cr_expect(strstr(finding.remedy, "--shm-size"), "%s", finding.remedy);
}

Test(doctor, a_containers_default_shared_memory_is_a_warning)
{
	struct doctor_finding finding = {0};

	doctor_judge_shared_memory(&finding, 64 * MIB, 64 * MIB, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_WARN);
	cr_expect(strstr(finding.detail, "2 rings"), "%s", finding.detail);
}

Test(doctor, plenty_of_shared_memory_is_fine)
{
	struct doctor_finding finding = {.verdict = DOCTOR_FAIL, .remedy = "left over"};

	doctor_judge_shared_memory(&finding, 8192 * MIB, 8000 * MIB, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_OK);
	cr_expect_str_empty(finding.remedy);
}

Test(doctor, locked_memory_is_judged_by_its_limit)
{
	struct doctor_finding finding = {0};

	doctor_judge_locked_memory(&finding, UINT64_MAX, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_OK);
	doctor_judge_locked_memory(&finding, 32 * MIB, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_OK);
	doctor_judge_locked_memory(&finding, 32 * MIB - 1, 32 * MIB);
	cr_expect_eq(finding.verdict, DOCTOR_WARN);
	cr_expect(strstr(finding.remedy, "memlock"), "%s", finding.remedy);
}

Test(doctor, kernels_older_than_5_15_are_a_warning)
{
	static const struct {
		const char *release;
		enum doctor_verdict verdict;
	} cases[] = {
		{"5.15.0-91-generic", DOCTOR_OK}, {"6.1.0", DOCTOR_OK}, {"5.14.21", DOCTOR_WARN},
		{"4.18.0", DOCTOR_WARN},          {"odd", DOCTOR_WARN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct doctor_finding finding = {0};

		doctor_judge_kernel(&finding, cases[i].release);
		cr_expect_eq(finding.verdict, cases[i].verdict, "%s", cases[i].release);
	}
}
