/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring doctor: the GPUs as the driver shows them. Its library is found at run time
 * and asked directly, so that a build without CUDA can say what is missing, too.
 *
 * Source: CUDA Driver API, "Device Management"; attributes' numbers from cuda.h.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "tools/doctor_gpu.h"

#define DRIVER_LIBRARY "libcuda.so.1"
#define ATTRIBUTE_MEMORY_AS_DESCRIPTOR 103
#define ATTRIBUTE_IPC 125
#define ATTRIBUTE_MPS_ENABLED 133

struct uuid {
	uint8_t bytes[16];
};

/* Functions of the CUDA driver API; 0 is CUDA_SUCCESS. */
struct driver {
	void *handle;
	int (*init)(unsigned int flags);
	int (*get_version)(int *version);
	int (*get_device_count)(int *count);
	int (*get_device)(int *device, int ordinal);
	int (*get_name)(char *name, int len, int device);
	int (*get_uuid)(struct uuid *uuid, int device);
	int (*get_attribute)(int *value, int attribute, int device);
};

static bool driver_load(struct driver *driver)
{
	driver->handle = dlopen(DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!driver->handle)
		return false;
	*(void **)&driver->init = dlsym(driver->handle, "cuInit");
	*(void **)&driver->get_version = dlsym(driver->handle, "cuDriverGetVersion");
	*(void **)&driver->get_device_count = dlsym(driver->handle, "cuDeviceGetCount");
	*(void **)&driver->get_device = dlsym(driver->handle, "cuDeviceGet");
	*(void **)&driver->get_name = dlsym(driver->handle, "cuDeviceGetName");
	*(void **)&driver->get_uuid = dlsym(driver->handle, "cuDeviceGetUuid_v2");
	*(void **)&driver->get_attribute = dlsym(driver->handle, "cuDeviceGetAttribute");
	if (driver->init && driver->get_version && driver->get_device_count && driver->get_device &&
	    driver->get_name && driver->get_uuid && driver->get_attribute)
		return true;
	dlclose(driver->handle);
	return false;
}

bool doctor_has_cuda(void)
{
	struct driver driver;

	if (!driver_load(&driver))
		return false;
	dlclose(driver.handle);
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

/* @unknown: for drivers that do not know the question. */
static bool has_attribute(const struct driver *driver, int attribute, int device, bool unknown)
{
	int value = 0;

	return driver->get_attribute(&value, attribute, device) ? unknown : value != 0;
}

static void write_uuid(struct doctor_gpu *gpu, const struct uuid *uuid)
{
	size_t at = (size_t)snprintf(gpu->uuid, sizeof(gpu->uuid), gpu->mig ? "MIG-" : "GPU-");

	for (int i = 0; i < 16; i++) {
		bool dash = i == 4 || i == 6 || i == 8 || i == 10;

		at += (size_t)snprintf(gpu->uuid + at, sizeof(gpu->uuid) - at, "%s%02x",
				       dash ? "-" : "", uuid->bytes[i]);
	}
}

static int look_at_gpu(const struct driver *driver, int ordinal, struct doctor_gpu *gpu)
{
	struct uuid uuid;
	int device;
	int code = driver->get_device(&device, ordinal);

	if (!code)
		code = driver->get_name(gpu->name, sizeof(gpu->name), device);
	if (!code)
		code = driver->get_uuid(&uuid, device);
	if (code)
		return code;
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	gpu->mig = strstr(gpu->name, "MIG") != NULL;
	gpu->mps = has_attribute(driver, ATTRIBUTE_MPS_ENABLED, device, false);
	gpu->handles = has_attribute(driver, ATTRIBUTE_IPC, device, true);
	gpu->descriptors = has_attribute(driver, ATTRIBUTE_MEMORY_AS_DESCRIPTOR, device, false);
	write_uuid(gpu, &uuid);
	return 0;
}

void doctor_look_at_gpus(struct doctor_gpus *gpus)
{
	struct driver driver;

	*gpus = (struct doctor_gpus){
		.device_file = gpu_is_there(),
		.built_version = device_cuda_ops.runtime_version,
	};
	if (!driver_load(&driver))
		return;
	gpus->driver = true;
	gpus->error = driver.get_version(&gpus->driver_version);
	if (!gpus->error)
		gpus->error = driver.init(0);
	if (!gpus->error)
		gpus->error = driver.get_device_count(&gpus->count);
	for (int i = 0; !gpus->error && i < gpus->count && i < DOCTOR_GPUS_MAX; i++)
		gpus->error = look_at_gpu(&driver, i, &gpus->gpu[i]);
	dlclose(driver.handle);
}
