/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring doctor: what it makes of GPUs and their driver. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/doctor_gpu.h"

static struct doctor_finding finding;

static struct doctor_gpus two_gpus(void)
{
	return (struct doctor_gpus){
		.device_file = true,
		.driver = true,
		.driver_version = 13000,
		.built_version = 12080,
		.count = 2,
		.gpu = {{"NVIDIA H200", "GPU-one", .handles = true, .descriptors = true},
			{"NVIDIA H200", "GPU-two", .handles = true, .descriptors = true}},
	};
}

static void expect(enum doctor_verdict verdict, const char *detail, const char *remedy)
{
	cr_expect_eq(finding.verdict, verdict, "%s", finding.detail);
	cr_expect(strstr(finding.detail, detail), "\"%s\" is not in: %s", detail, finding.detail);
	cr_expect(strstr(finding.remedy, remedy), "\"%s\" is not in: %s", remedy, finding.remedy);
}

Test(doctor_gpu, versions_and_devices_are_told)
{
	struct doctor_gpus gpus = two_gpus();

	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_OK,
	       "2, driver for CUDA 13.0, runtime 12.8; 0: NVIDIA H200 GPU-one; 1: NVIDIA H200 "
	       "GPU-two",
	       "");
}

Test(doctor_gpu, more_devices_than_fit_are_counted)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.count = 64;
	for (int i = 0; i < DOCTOR_GPUS_MAX; i++) {
		gpus.gpu[i] = gpus.gpu[0];
		memset(gpus.gpu[i].name, 'x', sizeof(gpus.gpu[i].name) - 1);
	}
	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_OK, "64, driver for CUDA 13.0", "");
}

Test(doctor_gpu, a_machine_without_gpu_lacks_nothing)
{
	const struct doctor_gpus none = {0};

	doctor_judge_gpus(&finding, &none);
	expect(DOCTOR_OK, "none: models run", "");
	doctor_judge_gpu_buffers(&finding, &none, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_OK, "no GPU", "");
}

Test(doctor_gpu, a_gpu_without_its_driver_fails)
{
	const struct doctor_gpus no_driver = {.device_file = true};

	doctor_judge_gpus(&finding, &no_driver);
	expect(DOCTOR_FAIL, "libcuda.so.1 cannot be loaded", "--gpus all");
}

Test(doctor_gpu, a_driver_that_is_too_old_fails)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.driver_version = 11080;
	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_FAIL, "for CUDA 11.8", "12.0 or later");
	gpus.driver_version = 12040;
	gpus.built_version = 13000;
	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_FAIL, "driver for CUDA 12.4, older than the runtime 13.0", "older toolkit");
}

Test(doctor_gpu, a_driver_that_gives_an_error_is_told_with_it)
{
	struct doctor_gpus gpus = {.driver = true, .error = 803};

	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_WARN, "error 803", "nvidia-smi");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_OK, "no GPU", "");
}

Test(doctor_gpu, a_build_without_cuda_is_told)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.built_version = 0;
	doctor_judge_gpus(&finding, &gpus);
	expect(DOCTOR_WARN, "this build has no CUDA", "nvcc");
}

Test(doctor_gpu, failure_31_how_buffers_reach_the_daemon_goes_by_namespaces)
{
	struct doctor_gpus gpus = two_gpus();

	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_OK, "by CUDA IPC", "");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_OTHER_PID_NAMESPACE);
	expect(DOCTOR_OK, "by descriptor: the daemon is in another PID namespace", "");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_OTHER_IPC_NAMESPACE);
	expect(DOCTOR_OK, "by descriptor: the daemon is in another IPC namespace", "");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_NO_DAEMON);
	expect(DOCTOR_WARN, "by descriptor to others", "start r3ringd");
}

Test(doctor_gpu, failure_31_no_way_at_all_fails_and_says_what_to_add_to_a_container)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.gpu[1].descriptors = false;
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_OTHER_PID_NAMESPACE);
	expect(DOCTOR_FAIL, "exports no memory as a descriptor", "--pid=host --ipc=host");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_NO_DAEMON);
	expect(DOCTOR_WARN, "not at all to others", "");
}

Test(doctor_gpu, failure_31_a_gpu_without_cuda_ipc_goes_by_descriptor)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.gpu[0].handles = false;
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_OK, "by descriptor: a GPU has no CUDA IPC", "");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_NO_DAEMON);
	expect(DOCTOR_WARN, "by descriptor to one that shares", "");
	gpus.gpu[0].descriptors = false;
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_FAIL, "no CUDA IPC", "device 'host'");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_OTHER_PID_NAMESPACE);
	expect(DOCTOR_FAIL, "exports no memory as a descriptor", "device 'host'");
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_NO_DAEMON);
	expect(DOCTOR_WARN, "not at all to one that shares", "");
}

Test(doctor_gpu, mps_and_mig_are_told)
{
	struct doctor_gpus gpus = two_gpus();

	gpus.gpu[1].mig = true;
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_OK, "MIG: the daemon must see the engine's slice", "");
	gpus.gpu[1].mps = true;
	doctor_judge_gpu_buffers(&finding, &gpus, DOCTOR_SHARES_NAMESPACES);
	expect(DOCTOR_WARN, "under MPS", "--allow-mps");
}
