/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of tests/cuda where it is a real one: it finds nothing by itself, so those
 * tests only see whether ids, steps and accounts are right. Tests of what only the
 * stand-in sees are left out by tests/gpu/run.sh, or skipped here.
 */
#include <criterion/criterion.h>

#include <cuda_runtime_api.h>

#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"

void machine_make(void)
{
}

bool machine_is_real(void)
{
	return true;
}

void machine_check(void)
{
}

void machine_expect(const char *part)
{
	cr_skip_test("only the stand-in runtime sees a %s", part);
}

unsigned int fakecuda_finding_count(void)
{
	return 0;
}

const char *fakecuda_findings(void)
{
	return "";
}

/* GPUs of a real machine have other names; no test asks that runs on one. */
void fakecuda_uuid_text(unsigned int gpu, char *text)
{
	cr_assert(false, "asked for the name of GPU %u", gpu);
	*text = '\0';
}

void fakecuda_serving(bool serving)
{
	(void)serving;
}

struct fakecuda_work fakecuda_work(void)
{
	cr_assert(false, "asked of a real GPU");
	return (struct fakecuda_work){0};
}
