/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the CUDA device in a build without it: there is none to open. */
#include <errno.h>

#include "device/device.h"
#include "device/gpu_work.h"

static int absent_probe(struct r3ring_error *err)
{
	return r3ring_error_set(err, -ENODEV,
				"device \"cuda\": this build of r3ring has no CUDA: build it where "
				"the CUDA toolkit's nvcc is, or use \"host\" or \"auto\"");
}

static int absent_stream_create(r3ring_stream *stream, struct r3ring_error *err)
{
	(void)stream;
	return absent_probe(err);
}

const struct gpu_work_ops gpu_work = {
	.stream_create = absent_stream_create,
};

const struct device_ops device_cuda_ops = {
	.name = "cuda",
	.probe = absent_probe,
};
