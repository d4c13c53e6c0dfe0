/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of the CUDA runtime and driver that r3ring uses, with the values
 * that NVIDIA's headers give them: lists, so that one place defines them here and
 * another compares them with the real headers (values.c).
 */
#ifndef FAKECUDA_VALUES_H
#define FAKECUDA_VALUES_H

#define FAKECUDA_ERRORS(VALUE)                                                                     \
	VALUE(cudaSuccess, 0)                                                                      \
	VALUE(cudaErrorInvalidValue, 1)                                                            \
	VALUE(cudaErrorMemoryAllocation, 2)                                                        \
	VALUE(cudaErrorInitializationError, 3)                                                     \
	VALUE(cudaErrorInvalidMemcpyDirection, 21)                                                 \
	VALUE(cudaErrorStubLibrary, 34)                                                            \
	VALUE(cudaErrorInsufficientDriver, 35)                                                     \
	VALUE(cudaErrorCallRequiresNewerDriver, 36)                                                \
	VALUE(cudaErrorDevicesUnavailable, 46)                                                     \
	VALUE(cudaErrorInvalidDeviceFunction, 98)                                                  \
	VALUE(cudaErrorNoDevice, 100)                                                              \
	VALUE(cudaErrorInvalidDevice, 101)                                                         \
	VALUE(cudaErrorDeviceUninitialized, 201)                                                   \
	VALUE(cudaErrorMapBufferObjectFailed, 205)                                                 \
	VALUE(cudaErrorNoKernelImageForDevice, 209)                                                \
	VALUE(cudaErrorECCUncorrectable, 214)                                                      \
	VALUE(cudaErrorOperatingSystem, 304)                                                       \
	VALUE(cudaErrorInvalidResourceHandle, 400)                                                 \
	VALUE(cudaErrorIllegalState, 401)                                                          \
	VALUE(cudaErrorSymbolNotFound, 500)                                                        \
	VALUE(cudaErrorNotReady, 600)                                                              \
	VALUE(cudaErrorIllegalAddress, 700)                                                        \
	VALUE(cudaErrorLaunchOutOfResources, 701)                                                  \
	VALUE(cudaErrorContextIsDestroyed, 709)                                                    \
	VALUE(cudaErrorHostMemoryAlreadyRegistered, 712)                                           \
	VALUE(cudaErrorHostMemoryNotRegistered, 713)                                               \
	VALUE(cudaErrorMisalignedAddress, 716)                                                     \
	VALUE(cudaErrorLaunchFailure, 719)                                                         \
	VALUE(cudaErrorNotPermitted, 800)                                                          \
	VALUE(cudaErrorNotSupported, 801)                                                          \
	VALUE(cudaErrorSystemDriverMismatch, 803)                                                  \
	VALUE(cudaErrorMpsConnectionFailed, 805)                                                   \
	VALUE(cudaErrorStreamCaptureUnsupported, 900)                                              \
	VALUE(cudaErrorStreamCaptureInvalidated, 901)                                              \
	VALUE(cudaErrorStreamCaptureMerge, 902)                                                    \
	VALUE(cudaErrorStreamCaptureUnmatched, 903)                                                \
	VALUE(cudaErrorStreamCaptureUnjoined, 904)                                                 \
	VALUE(cudaErrorStreamCaptureIsolation, 905)                                                \
	VALUE(cudaErrorStreamCaptureImplicit, 906)                                                 \
	VALUE(cudaErrorCapturedEvent, 907)                                                         \
	VALUE(cudaErrorUnknown, 999)

#define FAKECUDA_DEVICE_ATTRIBUTES(VALUE)                                                          \
	VALUE(cudaDevAttrMaxThreadsPerBlock, 1)                                                    \
	VALUE(cudaDevAttrWarpSize, 10)                                                             \
	VALUE(cudaDevAttrMultiProcessorCount, 16)                                                  \
	VALUE(cudaDevAttrIntegrated, 18)                                                           \
	VALUE(cudaDevAttrCanMapHostMemory, 19)                                                     \
	VALUE(cudaDevAttrComputeMode, 20)                                                          \
	VALUE(cudaDevAttrMaxThreadsPerMultiProcessor, 39)                                          \
	VALUE(cudaDevAttrAsyncEngineCount, 40)                                                     \
	VALUE(cudaDevAttrUnifiedAddressing, 41)                                                    \
	VALUE(cudaDevAttrComputeCapabilityMajor, 75)                                               \
	VALUE(cudaDevAttrComputeCapabilityMinor, 76)                                               \
	VALUE(cudaDevAttrCanUseHostPointerForRegisteredMem, 91)                                    \
	VALUE(cudaDevAttrHostRegisterSupported, 99)                                                \
	VALUE(cudaDevAttrIpcEventSupport, 125)                                                     \
	VALUE(cudaDevAttrMpsEnabled, 133)

#define FAKECUDA_DRIVER_ATTRIBUTES(VALUE)                                                          \
	VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                        \
	VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                                          \
	VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                    \
	VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                    \
	VALUE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                        \
	VALUE(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)

#define FAKECUDA_DRIVER_RESULTS(VALUE)                                                             \
	VALUE(CUDA_SUCCESS, 0)                                                                     \
	VALUE(CUDA_ERROR_INVALID_VALUE, 1)                                                         \
	VALUE(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                         \
	VALUE(CUDA_ERROR_NOT_INITIALIZED, 3)                                                       \
	VALUE(CUDA_ERROR_NO_DEVICE, 100)                                                           \
	VALUE(CUDA_ERROR_INVALID_DEVICE, 101)                                                      \
	VALUE(CUDA_ERROR_INVALID_CONTEXT, 201)                                                     \
	VALUE(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                    \
	VALUE(CUDA_ERROR_INVALID_HANDLE, 400)                                                      \
	VALUE(CUDA_ERROR_NOT_FOUND, 500)                                                           \
	VALUE(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                     \
	VALUE(CUDA_ERROR_NOT_PERMITTED, 800)                                                       \
	VALUE(CUDA_ERROR_NOT_SUPPORTED, 801)                                                       \
	VALUE(CUDA_ERROR_UNKNOWN, 999)

#define FAKECUDA_COPY_KINDS(VALUE)                                                                 \
	VALUE(cudaMemcpyHostToHost, 0)                                                             \
	VALUE(cudaMemcpyHostToDevice, 1)                                                           \
	VALUE(cudaMemcpyDeviceToHost, 2)                                                           \
	VALUE(cudaMemcpyDeviceToDevice, 3)                                                         \
	VALUE(cudaMemcpyDefault, 4)

#define FAKECUDA_CAPTURE_STATES(VALUE)                                                             \
	VALUE(cudaStreamCaptureStatusNone, 0)                                                      \
	VALUE(cudaStreamCaptureStatusActive, 1)                                                    \
	VALUE(cudaStreamCaptureStatusInvalidated, 2)

#define FAKECUDA_CAPTURE_MODES(VALUE)                                                              \
	VALUE(cudaStreamCaptureModeGlobal, 0)                                                      \
	VALUE(cudaStreamCaptureModeThreadLocal, 1)                                                 \
	VALUE(cudaStreamCaptureModeRelaxed, 2)

#define FAKECUDA_ENTRY_POINT_RESULTS(VALUE)                                                        \
	VALUE(cudaDriverEntryPointSuccess, 0)                                                      \
	VALUE(cudaDriverEntryPointSymbolNotFound, 1)                                               \
	VALUE(cudaDriverEntryPointVersionNotSufficent, 2)

#define FAKECUDA_ENTRY_POINT_FLAGS(VALUE)                                                          \
	VALUE(cudaEnableDefault, 0)                                                                \
	VALUE(cudaEnableLegacyStream, 1)                                                           \
	VALUE(cudaEnablePerThreadDefaultStream, 2)

/* What NVIDIA's headers have as macros: enumerators here. */
#define FAKECUDA_FLAGS(VALUE)                                                                      \
	VALUE(cudaHostAllocDefault, 0)                                                             \
	VALUE(cudaHostAllocPortable, 1)                                                            \
	VALUE(cudaHostAllocMapped, 2)                                                              \
	VALUE(cudaHostRegisterDefault, 0)                                                          \
	VALUE(cudaHostRegisterPortable, 1)                                                         \
	VALUE(cudaHostRegisterMapped, 2)                                                           \
	VALUE(cudaHostRegisterReadOnly, 8)                                                         \
	VALUE(cudaStreamDefault, 0)                                                                \
	VALUE(cudaStreamNonBlocking, 1)                                                            \
	VALUE(cudaEventDefault, 0)                                                                 \
	VALUE(cudaEventBlockingSync, 1)                                                            \
	VALUE(cudaEventDisableTiming, 2)                                                           \
	VALUE(cudaEventInterprocess, 4)                                                            \
	VALUE(cudaIpcMemLazyEnablePeerAccess, 1)

#define FAKECUDA_MEMORY_VALUES(VALUE)                                                              \
	VALUE(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                         \
	VALUE(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                                                    \
	VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                               \
	VALUE(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                      \
	VALUE(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                    \
	VALUE(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                 \
	VALUE(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)

#endif
