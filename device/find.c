/* SPDX-License-Identifier: Apache-2.0 */
/* Which device operations go with a name or a buffer. */
#include <errno.h>
#include <string.h>

#include "device/device.h"

const struct device_ops *device_find(const char *name, struct r3ring_error *err)
{
	if (!name || strcmp(name, "auto") == 0 || strcmp(name, "host") == 0)
		return &device_host_ops;
	if (strcmp(name, "cuda") == 0)
		r3ring_error_set(err, -ENODEV,
				 "device \"cuda\": this build of r3ring has no CUDA device; use "
				 "\"host\" or \"auto\"");
	else
		r3ring_error_set(err, -EINVAL,
				 "device \"%.32s\": unknown; \"auto\", \"host\" and \"cuda\" are "
				 "known",
				 name);
	return NULL;
}

const struct device_ops *device_for_buffer(enum r3ring_buffer_kind kind)
{
	return kind == R3RING_BUFFER_HOST ? &device_host_ops : NULL;
}
