/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring doctor: what it sees of the GPUs, apart from what it makes of that. */
#ifndef TOOLS_DOCTOR_GPU_H
#define TOOLS_DOCTOR_GPU_H

#include "tools/doctor.h"

#define DOCTOR_GPUS_MAX 16

struct doctor_gpu {
	char name[64];
	char uuid[48];    /* "GPU-..." or "MIG-..." */
	bool mig;         /* a slice of one */
	bool mps;         /* its contexts share one server */
	bool handles;     /* memory can be opened by CUDA IPC handle */
	bool descriptors; /* memory can be exported as a descriptor */
};

struct doctor_gpus {
	bool device_file;   /* a GPU is there, whatever the driver says */
	bool driver;        /* its library was loaded */
	int error;          /* of the driver, 0: none */
	int driver_version; /* 13000 is CUDA 13.0 */
	int built_version;  /* of the CUDA runtime in this build, 0: none */
	int count;
	struct doctor_gpu gpu[DOCTOR_GPUS_MAX]; /* the first ones */
};

/* Whether a daemon shares this process's namespaces. */
enum doctor_sharing {
	DOCTOR_NO_DAEMON,
	DOCTOR_SHARES_NAMESPACES,
	DOCTOR_OTHER_PID_NAMESPACE,
	DOCTOR_OTHER_IPC_NAMESPACE,
};

void doctor_look_at_gpus(struct doctor_gpus *gpus);

/* Driver, runtime and devices. */
void doctor_judge_gpus(struct doctor_finding *finding, const struct doctor_gpus *gpus);

/* How a capture buffer on a GPU would go from an engine here to the daemon. */
void doctor_judge_gpu_buffers(struct doctor_finding *finding, const struct doctor_gpus *gpus,
			      enum doctor_sharing sharing);

#endif
