/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions, asked for by name: those of devices, and those of vmm.c. */
#include <string.h>

#include "tests/support/fakecuda/runtime.h"

/* ---- devices ------------------------------------------------------------ */

static CUresult CUDAAPI device_get(CUdevice *device, int ordinal)
{
	struct call call;
	CUresult result = CUDA_SUCCESS;

	if (call_begin(&call, "cuDeviceGet", CALL_PLAIN)) {
		if (device_is(ordinal))
			*device = ordinal;
		else
			result = CUDA_ERROR_INVALID_DEVICE;
	}
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI device_get_uuid(CUuuid *uuid, CUdevice device)
{
	struct call call;
	CUresult result = CUDA_SUCCESS;

	if (call_begin(&call, "cuDeviceGetUuid", CALL_PLAIN)) {
		if (device_is(device))
			fakecuda_uuid(device_gpu(device), (uint8_t *)uuid->bytes);
		else
			result = CUDA_ERROR_INVALID_DEVICE;
	}
	return driver_call_end(&call, result);
}

/* ---- by name ------------------------------------------------------------ */

static const struct driver_function device_functions[] = {
	{"cuDeviceGet", (any_function)device_get},
	{"cuDeviceGetUuid", (any_function)device_get_uuid},
	{NULL, NULL},
};

static bool find(const struct driver_function *functions, const char *symbol, void **function)
{
	for (; functions->name; functions++) {
		if (strcmp(functions->name, symbol) == 0) {
			memcpy(function, &functions->function, sizeof(*function));
			return true;
		}
	}
	return false;
}

static cudaError_t entry_point(const char *symbol, void **function,
			       enum cudaDriverEntryPointQueryResult *status)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;

	*function = NULL;
	if (find(device_functions, symbol, function) || find(vmm_functions, symbol, function))
		found = cudaDriverEntryPointSuccess;
	if (status)
		*status = found;
	return found == cudaDriverEntryPointSuccess || status ? cudaSuccess
							      : cudaErrorSymbolNotFound;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *driverStatus)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	(void)flags;
	if (call_begin(&call, "cudaGetDriverEntryPoint", CALL_PLAIN))
		error = entry_point(symbol, funcPtr, driverStatus);
	return call_end(&call, error);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
					     unsigned int cudaVersion, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *driverStatus)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	(void)flags;
	(void)cudaVersion;
	if (call_begin(&call, "cudaGetDriverEntryPointByVersion", CALL_PLAIN))
		error = entry_point(symbol, funcPtr, driverStatus);
	return call_end(&call, error);
}
