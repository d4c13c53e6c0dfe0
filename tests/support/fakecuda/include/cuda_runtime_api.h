/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA runtime's interface that r3ring uses, declared anew for
 * the stand-in runtime of the tests, so that it builds without a toolkit. What is
 * declared here has the name, type and value that NVIDIA's headers give it; where
 * a toolkit is installed, the stand-in is compiled against those as well.
 *
 * Every call notes file and line, for what is reported of it.
 */
#ifndef FAKECUDA_CUDA_RUNTIME_API_H
#define FAKECUDA_CUDA_RUNTIME_API_H

#include <stddef.h>

#include "fakecuda_values.h"

#define FAKECUDA 1
#define CUDART_VERSION 13000
#define CUDARTAPI
#define CUDART_CB

#define FAKECUDA_ENUMERATOR(name, value) name = (value),

typedef enum cudaError { FAKECUDA_ERRORS(FAKECUDA_ENUMERATOR) } cudaError_t;
enum cudaDeviceAttr { FAKECUDA_DEVICE_ATTRIBUTES(FAKECUDA_ENUMERATOR) };
enum cudaMemcpyKind { FAKECUDA_COPY_KINDS(FAKECUDA_ENUMERATOR) };
enum cudaStreamCaptureStatus { FAKECUDA_CAPTURE_STATES(FAKECUDA_ENUMERATOR) };
enum cudaStreamCaptureMode { FAKECUDA_CAPTURE_MODES(FAKECUDA_ENUMERATOR) };
enum cudaDriverEntryPointQueryResult { FAKECUDA_ENTRY_POINT_RESULTS(FAKECUDA_ENUMERATOR) };
enum cudaGetDriverEntryPointFlags { FAKECUDA_ENTRY_POINT_FLAGS(FAKECUDA_ENUMERATOR) };
enum fakecuda_flags { FAKECUDA_FLAGS(FAKECUDA_ENUMERATOR) };

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef void(CUDART_CB *cudaHostFn_t)(void *userData);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

#define CUDA_IPC_HANDLE_SIZE 64

typedef struct cudaIpcMemHandle_st {
	char reserved[CUDA_IPC_HANDLE_SIZE];
} cudaIpcMemHandle_t;

typedef struct cudaIpcEventHandle_st {
	char reserved[CUDA_IPC_HANDLE_SIZE];
} cudaIpcEventHandle_t;

struct uint3 {
	unsigned int x, y, z;
};

typedef struct dim3 {
	unsigned int x, y, z;
} dim3;

struct cudaFuncAttributes {
	size_t sharedSizeBytes;
	size_t constSizeBytes;
	size_t localSizeBytes;
	int maxThreadsPerBlock;
	int numRegs;
	int ptxVersion;
	int binaryVersion;
};

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDriverGetVersion(int *driverVersion);
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority);

cudaError_t cudaMalloc(void **devPtr, size_t size);
cudaError_t cudaFree(void *devPtr);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags);
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *ptr);

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr);
cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *devPtr);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
				  enum cudaStreamCaptureStatus *pCaptureStatus);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
				 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream);
cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
			     size_t sharedMem, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
					     unsigned int cudaVersion, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *driverStatus);

/* Notes where the call that follows stands. */
void fakecuda_at(const char *file, int line);

#ifdef __cplusplus
}
#endif

#ifndef FAKECUDA_INSIDE
#define FAKECUDA_AT(call, ...) (fakecuda_at(__FILE__, __LINE__), (call)(__VA_ARGS__))
#define cudaMemGetInfo(...) FAKECUDA_AT(cudaMemGetInfo, __VA_ARGS__)
#define cudaDeviceReset() FAKECUDA_AT(cudaDeviceReset)
#define cudaDeviceSynchronize() FAKECUDA_AT(cudaDeviceSynchronize)
#define cudaMalloc(...) FAKECUDA_AT(cudaMalloc, __VA_ARGS__)
#define cudaFree(...) FAKECUDA_AT(cudaFree, __VA_ARGS__)
#define cudaMemcpy(...) FAKECUDA_AT(cudaMemcpy, __VA_ARGS__)
#define cudaHostRegister(...) FAKECUDA_AT(cudaHostRegister, __VA_ARGS__)
#define cudaHostUnregister(...) FAKECUDA_AT(cudaHostUnregister, __VA_ARGS__)
#define cudaHostGetDevicePointer(...) FAKECUDA_AT(cudaHostGetDevicePointer, __VA_ARGS__)
#define cudaHostAlloc(...) FAKECUDA_AT(cudaHostAlloc, __VA_ARGS__)
#define cudaFreeHost(...) FAKECUDA_AT(cudaFreeHost, __VA_ARGS__)
#define cudaIpcGetMemHandle(...) FAKECUDA_AT(cudaIpcGetMemHandle, __VA_ARGS__)
#define cudaIpcOpenMemHandle(...) FAKECUDA_AT(cudaIpcOpenMemHandle, __VA_ARGS__)
#define cudaIpcCloseMemHandle(...) FAKECUDA_AT(cudaIpcCloseMemHandle, __VA_ARGS__)
#define cudaIpcGetEventHandle(...) FAKECUDA_AT(cudaIpcGetEventHandle, __VA_ARGS__)
#define cudaIpcOpenEventHandle(...) FAKECUDA_AT(cudaIpcOpenEventHandle, __VA_ARGS__)
#define cudaEventCreateWithFlags(...) FAKECUDA_AT(cudaEventCreateWithFlags, __VA_ARGS__)
#define cudaEventRecord(...) FAKECUDA_AT(cudaEventRecord, __VA_ARGS__)
#define cudaEventQuery(...) FAKECUDA_AT(cudaEventQuery, __VA_ARGS__)
#define cudaEventDestroy(...) FAKECUDA_AT(cudaEventDestroy, __VA_ARGS__)
#define cudaStreamCreateWithFlags(...) FAKECUDA_AT(cudaStreamCreateWithFlags, __VA_ARGS__)
#define cudaStreamCreateWithPriority(...) FAKECUDA_AT(cudaStreamCreateWithPriority, __VA_ARGS__)
#define cudaStreamDestroy(...) FAKECUDA_AT(cudaStreamDestroy, __VA_ARGS__)
#define cudaStreamQuery(...) FAKECUDA_AT(cudaStreamQuery, __VA_ARGS__)
#define cudaStreamSynchronize(...) FAKECUDA_AT(cudaStreamSynchronize, __VA_ARGS__)
#define cudaStreamWaitEvent(...) FAKECUDA_AT(cudaStreamWaitEvent, __VA_ARGS__)
#define cudaStreamIsCapturing(...) FAKECUDA_AT(cudaStreamIsCapturing, __VA_ARGS__)
#define cudaStreamBeginCapture(...) FAKECUDA_AT(cudaStreamBeginCapture, __VA_ARGS__)
#define cudaStreamEndCapture(...) FAKECUDA_AT(cudaStreamEndCapture, __VA_ARGS__)
#define cudaGraphInstantiate(...) FAKECUDA_AT(cudaGraphInstantiate, __VA_ARGS__)
#define cudaGraphLaunch(...) FAKECUDA_AT(cudaGraphLaunch, __VA_ARGS__)
#define cudaMemcpyAsync(...) FAKECUDA_AT(cudaMemcpyAsync, __VA_ARGS__)
#define cudaLaunchKernel(...) FAKECUDA_AT(cudaLaunchKernel, __VA_ARGS__)
#define cudaLaunchHostFunc(...) FAKECUDA_AT(cudaLaunchHostFunc, __VA_ARGS__)
#define cudaFuncGetAttributes(...) FAKECUDA_AT(cudaFuncGetAttributes, __VA_ARGS__)
#endif

#endif
