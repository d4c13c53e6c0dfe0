/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: the GPU's driver, found at run time as the library finds it.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stddef.h>

#include "tools/doctor.h"

#define DRIVER_LIBRARY "libcuda.so.1"
#define DRIVER_NEEDED 11000 /* CUDA 11.0: sm_80 */

/* Functions of the CUDA driver API; 0 is CUDA_SUCCESS. */
struct driver {
	void *library;
	int (*init)(unsigned int flags);
	int (*get_version)(int *version);
	int (*get_device_count)(int *count);
};

static bool driver_load(struct driver *driver)
{
	driver->library = dlopen(DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!driver->library)
		return false;
	*(void **)&driver->init = dlsym(driver->library, "cuInit");
	*(void **)&driver->get_version = dlsym(driver->library, "cuDriverGetVersion");
	*(void **)&driver->get_device_count = dlsym(driver->library, "cuDeviceGetCount");
	if (driver->init && driver->get_version && driver->get_device_count)
		return true;
	dlclose(driver->library);
	return false;
}

bool doctor_has_cuda(void)
{
	struct driver driver;

	if (!driver_load(&driver))
		return false;
	dlclose(driver.library);
	return true;
}

/* Without its driver library a GPU still shows as a device file. */
static bool gpu_is_there(void)
{
	glob_t found;
	bool any = !glob("/dev/nvidia[0-9]*", 0, NULL, &found);

	if (any)
		globfree(&found);
	return any;
}

static void judge_absence(struct doctor_finding *finding)
{
	if (gpu_is_there())
		doctor_lacks(finding, DOCTOR_FAIL,
			     "install the NVIDIA driver's libcuda; in containers the NVIDIA "
			     "container toolkit and --gpus all",
			     "a GPU is there, but " DRIVER_LIBRARY " cannot be loaded");
	else
		doctor_ok(finding, "none: models run, and are captured, on the 'host' device");
}

static void judge_driver(struct doctor_finding *finding, const struct driver *driver)
{
	int version = 0;
	int devices = 0;
	int code = driver->get_version(&version);

	if (!code)
		code = driver->init(0);
	if (!code)
		code = driver->get_device_count(&devices);
	if (code)
		doctor_lacks(finding, DOCTOR_WARN,
			     "look at 'nvidia-smi'; in containers start with --gpus all",
			     "the CUDA driver is there but gives error %d: no GPU can be used",
			     code);
	else if (version < DRIVER_NEEDED)
		doctor_lacks(finding, DOCTOR_FAIL, "install a driver for CUDA 11.0 or later",
			     "the driver is for CUDA %d.%d", version / 1000, version % 1000 / 10);
	else
		doctor_ok(finding, "%d, driver for CUDA %d.%d", devices, version / 1000,
			  version % 1000 / 10);
}

void doctor_check_gpu(struct doctor_finding *finding)
{
	struct driver driver;

	if (!driver_load(&driver)) {
		judge_absence(finding);
		return;
	}
	judge_driver(finding, &driver);
	dlclose(driver.library);
}
