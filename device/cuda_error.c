/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of CUDA calls, in words: the call, the error's name, what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "device/cuda.h"

static int errno_of(cudaError_t code)
{
	switch (code) {
	case cudaErrorMemoryAllocation:
		return -ENOMEM;
	case cudaErrorInsufficientDriver:
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorDevicesUnavailable:
	case cudaErrorInitializationError:
	case cudaErrorStubLibrary:
	case cudaErrorSystemDriverMismatch:
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorNotSupported:
	case cudaErrorNotPermitted:
	case cudaErrorMpsConnectionFailed:
		return -ENODEV;
	default:
		return -EIO;
	}
}

static const char *remedy_of(cudaError_t code)
{
	switch (code) {
	case cudaErrorMemoryAllocation:
		return "free GPU memory, or set a smaller buffer";
	case cudaErrorInsufficientDriver:
		return "install a driver for this runtime or a later one; in containers start with "
		       "--gpus all";
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
		return "look at nvidia-smi and CUDA_VISIBLE_DEVICES; in containers start with "
		       "--gpus all";
	case cudaErrorDevicesUnavailable:
		return "another process has the GPU to itself: set its compute mode to DEFAULT "
		       "(nvidia-smi -c 0)";
	case cudaErrorNoKernelImageForDevice:
		return "the GPU is older than sm_80: use device \"host\", or build with "
		       "CUDA_TARGETS for it";
	case cudaErrorSystemDriverMismatch:
		return "libcuda and the kernel's driver are of different releases: reboot, or "
		       "reinstall the driver";
	case cudaErrorMpsConnectionFailed:
		return "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY";
	case cudaErrorInvalidResourceHandle:
		return "the stream is of another GPU, or was destroyed";
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchFailure:
	case cudaErrorECCUncorrectable:
		return "the context is spoiled; the process must be started anew (see dmesg for "
		       "the cause)";
	default:
		return "r3ring doctor says what this machine lacks";
	}
}

int cuda_failed(struct r3ring_error *err, cudaError_t code, const char *call, const char *remedy)
{
	cudaGetLastError();
	return r3ring_error_set(err, errno_of(code), "%s: %s (%s): %s", call,
				cudaGetErrorName(code), cudaGetErrorString(code),
				remedy ? remedy : remedy_of(code));
}

int cuda_driver_failed(struct r3ring_error *err, CUresult code, const char *call,
		       const char *remedy)
{
	return cuda_failed(err, (cudaError_t)code, call, remedy);
}

int cuda_work_failed(struct device *device, cudaError_t code, const char *call)
{
	cudaGetLastError();
	snprintf(device->fault, sizeof(device->fault), "%s: %s (%s): %s", call,
		 cudaGetErrorName(code), cudaGetErrorString(code), remedy_of(code));
	return -EIO;
}

void cuda_check_release(const struct device *device, cudaError_t code, const char *call)
{
	if (code == cudaSuccess)
		return;
	cudaGetLastError();
	cuda_log(device, R3RING_LOG_WARN, "giving back what is on the GPU: %s: %s", call,
		 cudaGetErrorName(code));
}

void cuda_log(const struct device *device, enum r3ring_log_level level, const char *format, ...)
{
	char line[R3RING_ERROR_TEXT];
	va_list args;

	if (!device->options.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	device->options.log(device->options.log_ctx, level, line);
}
