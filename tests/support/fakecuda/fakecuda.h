/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the CUDA runtime and driver: the functions that r3ring uses, over
 * shared memory and one executor thread a process, so that the device, the kernels
 * and the daemon run unmodified, in several processes, on a machine without GPU.
 *
 * It is strict. What a real GPU would forgive, or would only punish now and then,
 * is a finding: a line that names call, stream and place. Tests end with none.
 *
 * The machine that it plays is told by the environment:
 *	FAKECUDA_DIR     a directory that the machine's processes share: without it
 *	                 a process has a machine of its own
 *	FAKECUDA_GPUS    how many GPUs there are (1)
 *	FAKECUDA_DRIVER  the driver's version (13000), or "none"
 *	FAKECUDA_SEED    of the order in which streams, blocks and copies run (1)
 *	FAKECUDA_FAIL    "CALL:NTH:ERROR[@PROGRAM]", more behind commas: the n-th such
 *	                 call of a process fails, once on the machine; CALL may also be
 *	                 "execute": the n-th piece of work on a stream; "hang": that
 *	                 never ends, nor does any other from then on
 *	FAKECUDA_COPIES_ONLY  a program that must not launch kernels
 *	FAKECUDA_REFUSE  comma-separated: "register" (host memory), "ipc", "vmm"
 *	FAKECUDA_MPS     set: its GPUs are under MPS
 *	CUDA_VISIBLE_DEVICES  as the real one
 */
#ifndef FAKECUDA_FAKECUDA_H
#define FAKECUDA_FAKECUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- findings ----------------------------------------------------------- */

/* How many there are on the machine, of all its processes. */
unsigned int fakecuda_finding_count(void);

/* The text of all of them, a line each; a static text. */
const char *fakecuda_findings(void);

/* Whether one contains @part. */
bool fakecuda_found(const char *part);

/* Forgets them. */
void fakecuda_clear_findings(void);

/* ---- failing ------------------------------------------------------------ */

/* As FAKECUDA_FAIL; counts from now on, in this process; replaces what was asked before.
 * NULL: nothing fails. */
void fakecuda_fail(const char *spec);

/* Whether anything that was asked for has failed since. */
bool fakecuda_has_failed(void);

/* How often a function was called in this process. */
unsigned int fakecuda_calls(const char *call);

/* The functions called so far, one after the other; NULL at the end. */
const char *fakecuda_called(unsigned int index);

/* ---- looking on --------------------------------------------------------- */

/*
 * From now on (until false) a call of this process that synchronises, allocates or
 * blocks is a finding. For the time between open and close; what the engine itself
 * calls stands between false and true.
 */
void fakecuda_serving(bool serving);

/* Streams of this process do nothing while it is true. */
void fakecuda_pause(bool paused);

/* What this process has not given back. */
struct fakecuda_usage {
	unsigned int allocations; /* cudaMalloc, and memory of cuMemCreate */
	unsigned int pinned;      /* cudaHostAlloc */
	unsigned int registered;  /* cudaHostRegister */
	unsigned int imported;    /* memory of other processes */
	unsigned int reserved;    /* address ranges */
	unsigned int streams, events, graphs;
	uint64_t device_bytes;
};
struct fakecuda_usage fakecuda_usage(void);

/* What was executed on the machine so far, by all its processes. */
struct fakecuda_work {
	uint64_t kernels;
	uint64_t copies;
	uint64_t copied_bytes;
	uint64_t event_records; /* of interprocess events */
	uint64_t event_waits;   /* for them, enqueued */
	uint64_t stream_waits;  /* of a stream for another of its process */
};
struct fakecuda_work fakecuda_work(void);

/* UUID of a GPU of the machine, whatever is visible; @text: 41 bytes. */
void fakecuda_uuid(unsigned int gpu, uint8_t uuid[16]);
void fakecuda_uuid_text(unsigned int gpu, char *text);

#endif
