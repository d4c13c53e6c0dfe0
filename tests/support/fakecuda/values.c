/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the constants of include/fakecuda_values.h with the headers that this is
 * compiled with: with NVIDIA's, where there is a toolkit. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/support/fakecuda/include/fakecuda_values.h"

#define EQUAL(name, value) _Static_assert((long long)(name) == (value), #name);

FAKECUDA_ERRORS(EQUAL)
FAKECUDA_DEVICE_ATTRIBUTES(EQUAL)
FAKECUDA_DRIVER_ATTRIBUTES(EQUAL)
FAKECUDA_DRIVER_RESULTS(EQUAL)
FAKECUDA_COPY_KINDS(EQUAL)
FAKECUDA_CAPTURE_STATES(EQUAL)
FAKECUDA_CAPTURE_MODES(EQUAL)
FAKECUDA_ENTRY_POINT_RESULTS(EQUAL)
FAKECUDA_ENTRY_POINT_FLAGS(EQUAL)
FAKECUDA_FLAGS(EQUAL)
FAKECUDA_MEMORY_VALUES(EQUAL)

/* What is sent between processes as bytes, or read as fields. */
_Static_assert(sizeof(cudaIpcMemHandle_t) == 64, "memory handle");
_Static_assert(sizeof(cudaIpcEventHandle_t) == 64, "event handle");
_Static_assert(sizeof(CUuuid) == 16, "uuid");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "allocation properties");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "access description");
_Static_assert(sizeof(dim3) == 12, "dim3");
