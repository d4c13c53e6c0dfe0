/* SPDX-License-Identifier: Apache-2.0 */
/* Which device operations go with a name or a buffer. */
#include <errno.h>
#include <string.h>

#include "device/device.h"

const struct device_ops *device_find(const char *name, struct r3ring_error *err)
{
	if (strcmp(name, "host") == 0)
		return &device_host_ops;
	if (strcmp(name, "auto") == 0)
		return device_cuda_ops.probe(NULL) ? &device_host_ops : &device_cuda_ops;
	if (strcmp(name, "cuda") == 0)
		return device_cuda_ops.probe(err) ? NULL : &device_cuda_ops;
	r3ring_error_set(err, -EINVAL,
			 "device \"%.32s\": unknown; \"auto\", \"host\" and \"cuda\" are known",
			 name);
	return NULL;
}

const struct device_ops *device_for_buffer(enum r3ring_buffer_kind kind, struct r3ring_error *err)
{
	switch (kind) {
	case R3RING_BUFFER_HOST:
		return &device_host_ops;
	case R3RING_BUFFER_CUDA_IPC:
	case R3RING_BUFFER_CUDA_VMM:
		return device_cuda_ops.probe(err) ? NULL : &device_cuda_ops;
	}
	r3ring_error_set(err, -ENODEV, "a capture buffer of kind %u is none that is known", kind);
	return NULL;
}
