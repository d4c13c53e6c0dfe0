/* SPDX-License-Identifier: Apache-2.0 */
/* tests/gpu/run.sh with programs that stand in for those it calls: it ends in time. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64], said[8192];

static void remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (dir[0] && system(command))
		fprintf(stderr, "%s failed\n", command);
}

TestSuite(gpu_script, .fini = remove_dir, .timeout = 60);

static void make_program(const char *name, const char *body)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	cr_assert(file);
	fprintf(file, "#!/bin/sh\n%s\n", body);
	fclose(file);
	cr_assert_eq(chmod(path, 0755), 0);
}

static void make_machine(const char *nvidia_smi, const char *program)
{
	char path[1024];

	snprintf(dir, sizeof(dir), "/tmp/r3ring-test.%d.XXXXXX", getpid());
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tests", dir);
	cr_assert_eq(mkdir(path, 0755), 0);
	make_program("nvidia-smi", nvidia_smi);
	make_program("r3ringd", "exec sleep 100");
	make_program("r3ring", "exit 0");
	make_program("tests/run-gpu", program);
	make_program("tests/bench-gpu", program);
	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	setenv("PATH", path, 1);
}

/* Returns its exit code; what it printed is in `said`. */
static int run_script(void)
{
	char command[160];
	FILE *output;
	size_t len;
	int status;

	snprintf(command, sizeof(command), "tests/gpu/run.sh %s 2>&1", dir);
	output = popen(command, "re");
	cr_assert(output);
	len = fread(said, 1, sizeof(said) - 1, output);
	said[len] = '\0';
	status = pclose(output);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_said(const char *part)
{
	cr_expect(strstr(said, part), "\"%s\" is not in:\n%s", part, said);
}

Test(gpu_script, without_a_gpu_it_says_that_all_is_skipped)
{
	make_machine("exit 9", "exit 1");
	cr_expect_eq(run_script(), 0, "%s", said);
	expect_said("skipped: no GPU on this machine");
}

Test(gpu_script, programs_that_hang_are_ended_and_the_rest_is_left_out)
{
	time_t began = time(NULL);

	make_machine("echo 'GPU 0: none'", "exec sleep 100");
	setenv("GPU_BUDGET", "3", 1);
	cr_expect_eq(run_script(), 1, "%s", said);
	cr_expect_lt(time(NULL) - began, 30, "%s", said);
	expect_said("tests: ended, its time was over");
	expect_said("litmus: left out");
	expect_said("bench: left out");
}

Test(gpu_script, a_failed_test_and_a_failed_benchmark_are_told_by_its_status)
{
	make_machine("echo 'GPU 0: none'", "exit 1");
	cr_expect_eq(run_script(), 1, "%s", said);
	expect_said("tests: 0 passed, 0 failed");
	expect_said("all: ");
}
