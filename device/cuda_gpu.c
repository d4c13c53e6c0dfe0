/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs there are, and the functions of the driver. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda.h"

/* The interface that is asked for: a driver of 12.0 or later has it whole. */
#define DRIVER_INTERFACE 12000

/* cudaDevAttrIpcEventSupport, by which the manual tells CUDA IPC as a whole, and
 * cudaDevAttrMpsEnabled: some headers do not name them.
 *
 * Source: CUDA Runtime API, cudaIpcGetMemHandle. */
#define ATTRIBUTE_IPC ((enum cudaDeviceAttr)125)
#define ATTRIBUTE_MPS_ENABLED ((enum cudaDeviceAttr)133)

/* ---- is there one ------------------------------------------------------- */

static const char *version_text(int version, char text[24])
{
	if (!version)
		return "none";
	snprintf(text, 24, "%d.%d", version / 1000, version % 1000 / 10);
	return text;
}

int cuda_probe(struct r3ring_error *err)
{
	int count = 0, driver = 0, runtime = 0;
	char driver_text[24], runtime_text[24];
	struct r3ring_error why = {0};
	cudaError_t code = cudaGetDeviceCount(&count);

	if (code == cudaSuccess && count > 0)
		return 0;
	if (code == cudaSuccess)
		code = cudaErrorNoDevice;
	cuda_failed(&why, code, "cudaGetDeviceCount", NULL);
	if (cudaDriverGetVersion(&driver) != cudaSuccess)
		cudaGetLastError();
	if (cudaRuntimeGetVersion(&runtime) != cudaSuccess)
		cudaGetLastError();
	return r3ring_error_set(
		err, -ENODEV,
		"device \"cuda\": no GPU that can be used (driver for CUDA: %s, runtime: "
		"CUDA %s): %.300s",
		version_text(driver, driver_text), version_text(runtime, runtime_text), why.text);
}

/* ---- the driver's functions --------------------------------------------- */

static struct cuda_driver the_driver;
static bool driver_found;
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

static int find(const char *symbol, void *function, struct r3ring_error *err)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	cudaError_t code;

#if CUDART_VERSION >= 12050
	code = cudaGetDriverEntryPointByVersion(symbol, function, DRIVER_INTERFACE,
						cudaEnableDefault, &found);
#else
	code = cudaGetDriverEntryPoint(symbol, function, cudaEnableDefault, &found);
#endif
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaGetDriverEntryPoint", NULL);
	if (found == cudaDriverEntryPointSuccess)
		return 0;
	return r3ring_error_set(
		err, -ENODEV,
		"cudaGetDriverEntryPoint: the driver has no %s: install a driver for "
		"CUDA 12.0 or later",
		symbol);
}

static int find_all(struct cuda_driver *driver, struct r3ring_error *err)
{
	const struct {
		const char *symbol;
		void *function;
		bool optional;
	} wanted[] = {
		{"cuDeviceGet", &driver->device_get, false},
		{"cuDeviceGetUuid", &driver->device_get_uuid, false},
		{"cuMemGetAllocationGranularity", &driver->mem_get_allocation_granularity, false},
		{"cuMemCreate", &driver->mem_create, false},
		{"cuMemAddressReserve", &driver->mem_address_reserve, false},
		{"cuMemMap", &driver->mem_map, false},
		{"cuMemSetAccess", &driver->mem_set_access, false},
		{"cuMemUnmap", &driver->mem_unmap, false},
		{"cuMemAddressFree", &driver->mem_address_free, false},
		{"cuMemRelease", &driver->mem_release, false},
		{"cuMemExportToShareableHandle", &driver->mem_export_to_shareable_handle, false},
		{"cuMemImportFromShareableHandle", &driver->mem_import_from_shareable_handle,
		 false},
		{"cuMemGetAddressRange", &driver->mem_get_address_range, true},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		int ret =
			find(wanted[i].symbol, wanted[i].function, wanted[i].optional ? NULL : err);

		if (ret && !wanted[i].optional)
			return ret;
	}
	return 0;
}

const struct cuda_driver *cuda_driver(struct r3ring_error *err)
{
	int ret = 0;

	pthread_mutex_lock(&driver_lock);
	if (!driver_found) {
		ret = find_all(&the_driver, err);
		driver_found = !ret;
	}
	pthread_mutex_unlock(&driver_lock);
	return ret ? NULL : &the_driver;
}

/* ---- one of them -------------------------------------------------------- */

int cuda_gpu_uuid(int gpu, uint8_t uuid[CUDA_UUID_BYTES], struct r3ring_error *err)
{
	const struct cuda_driver *driver = cuda_driver(err);
	CUdevice device;
	CUuuid found;
	CUresult code;

	if (!driver)
		return -ENODEV;
	code = driver->device_get(&device, gpu);
	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuDeviceGet", NULL);
	code = driver->device_get_uuid(&found, device);
	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuDeviceGetUuid", NULL);
	memcpy(uuid, found.bytes, CUDA_UUID_BYTES);
	return 0;
}

int cuda_gpu_find(const uint8_t uuid[CUDA_UUID_BYTES], int *gpu, struct r3ring_error *err)
{
	char text[CUDA_UUID_TEXT];
	uint8_t other[CUDA_UUID_BYTES];
	int count = 0;
	cudaError_t code = cudaGetDeviceCount(&count);

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaGetDeviceCount", NULL);
	for (int i = 0; i < count; i++) {
		int ret = cuda_gpu_uuid(i, other, err);

		if (ret)
			return ret;
		if (memcmp(uuid, other, CUDA_UUID_BYTES) == 0) {
			*gpu = i;
			return 0;
		}
	}
	return r3ring_error_set(
		err, -ENODEV,
		"GPU-%s, which the producer uses, is none of the %d that r3ringd sees: "
		"start it with every GPU of the host visible (CUDA_VISIBLE_DEVICES, "
		"--gpus all)",
		cuda_uuid_text(uuid, text), count);
}

const char *cuda_uuid_text(const uint8_t uuid[CUDA_UUID_BYTES], char text[CUDA_UUID_TEXT])
{
	size_t at = 0;

	for (int i = 0; i < CUDA_UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		at += (size_t)snprintf(text + at, CUDA_UUID_TEXT - at, "%02x", uuid[i]);
	}
	return text;
}

/* Drivers that do not know the question have no answer, and that is no error. */
static bool attribute(int gpu, enum cudaDeviceAttr which, bool unknown)
{
	int value = 0;

	if (cudaDeviceGetAttribute(&value, which, gpu) != cudaSuccess) {
		cudaGetLastError();
		return unknown;
	}
	return value != 0;
}

bool cuda_gpu_has_ipc(int gpu)
{
	return attribute(gpu, ATTRIBUTE_IPC, true);
}

bool cuda_gpu_under_mps(int gpu)
{
	return attribute(gpu, ATTRIBUTE_MPS_ENABLED, false);
}
