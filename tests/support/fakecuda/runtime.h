/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in runtime's inside, shared by its files. One lock of the process
 * guards all of it; the executor lets go of it while work is done.
 */
#ifndef FAKECUDA_RUNTIME_H
#define FAKECUDA_RUNTIME_H

#define FAKECUDA_INSIDE

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/fakecuda/include/fakecuda_values.h"
#include "tests/support/fakecuda/machine.h"

#define LANES_MAX 128u /* streams that have existed at a time, and branches of graphs */
#define RANGES_MAX 8u  /* of one piece of work */

/* ---- calls (calls.c) ---------------------------------------------------- */

enum call_kind {
	CALL_PLAIN = 0,
	CALL_ALLOCATES = 1,  /* not between open and close */
	CALL_WAITS = 2,      /* likewise */
	CALL_NO_CAPTURE = 4, /* illegal while a stream is captured */
	CALL_NO_CONTEXT = 8, /* works without a usable GPU */
};

/* Where something was called. */
struct place {
	const char *call;
	const char *file;
	int line;
};

struct call {
	struct place place;
	cudaError_t early; /* what it returns without doing anything */
};

/* Notes where the call that follows stands; see include/cuda_runtime_api.h. */
void fakecuda_at(const char *file, int line);

/* Takes the lock; false when the call is over already (call->early says with what). */
bool call_begin(struct call *call, const char *name, unsigned int kind);
/* Gives the lock back, notes an error as the thread's last; returns it. */
cudaError_t call_end(const struct call *call, cudaError_t error);
/* The same of the driver's, which are nobody's last. */
CUresult driver_call_end(const struct call *call, CUresult result);

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed; /* work was enqueued or done */

/* Of one thing that went wrong on the GPU, every later call knows. */
void sticky_set(cudaError_t error);
cudaError_t sticky_get(void);

bool failure_due(const char *call, cudaError_t *error);

void findings_add(const struct place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Pseudo-random numbers of this process; with the lock. */
uint32_t chance(uint32_t below);
/* Those of the executor thread, without it. */
uint32_t executor_chance(uint32_t below);

/* ---- devices (devices.c) ------------------------------------------------ */

int device_current(void);            /* ordinal, of the calling thread */
unsigned int device_gpu(int device); /* of a visible ordinal, the machine's number */
int device_count(void);
bool device_is(int device);
/* Makes the context of the current device, if there is none yet. */
cudaError_t device_context(void);

/* ---- memory (memory.c) -------------------------------------------------- */

enum region_kind {
	REGION_DEVICE,     /* cudaMalloc */
	REGION_IMPORTED,   /* another process's */
	REGION_PINNED,     /* cudaHostAlloc */
	REGION_REGISTERED, /* cudaHostRegister */
	REGION_RESERVED,   /* cuMemAddressReserve; maybe with memory mapped */
};

/* Addresses, and what lies behind them. Never freed: who uses one that is gone is told. */
struct region {
	struct region *next;
	enum region_kind kind;
	bool gone;
	bool accessible;  /* of reserved ones: cuMemSetAccess was called */
	uintptr_t device; /* address for kernels and copies; nothing can be touched there */
	uint8_t *memory;  /* where it really is; host address of host memory */
	size_t bytes;
	uint64_t identity; /* the same in all processes that have the memory */
	unsigned int gpu;
	int fd;
	struct place made, freed;
};

extern struct region *regions;

struct region *region_add(enum region_kind kind, const struct place *place);
struct region *region_of_device(const void *address); /* of the first byte; gone ones too */
struct region *region_of_host(const void *address);   /* pinned or registered, alive */
void region_gone(struct region *region, const struct place *place);
/* Reserves addresses that nobody can touch. 0 without. */
uintptr_t addresses_reserve(size_t bytes);

/* Part of a region, as a piece of work uses it. */
struct range {
	struct region *region;
	uint64_t from, to; /* offsets in the memory */
	bool write;
	bool atomic; /* such accesses do not conflict with one another */
};

/* ---- clocks, lanes and work (streams.c, executor.c) --------------------- */

/* How much of every lane comes before. */
struct stamp {
	uint64_t at[LANES_MAX];
};

void stamp_join(struct stamp *stamp, const struct stamp *other);

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_HOST, WORK_EVENT_RECORD, WORK_EVENT_WAIT };

struct kernel_work;

struct copy_work {
	void *to;
	const void *from;
	size_t bytes;
	uint8_t *target; /* resolved when it starts */
	const uint8_t *source;
	uint32_t chunks, chunk, step; /* done in an order of their own */
};

struct event_work {
	uint32_t slot; /* of the machine's table */
	uint64_t number;
};

struct host_work {
	cudaHostFn_t fn;
	void *data;
};

/* One piece of work in a lane. */
struct work {
	struct work *next;
	enum work_kind kind;
	unsigned int lane;
	uint64_t number;    /* in its lane, from 1 */
	struct stamp after; /* all that must be done before */
	struct place place;
	bool started;
	unsigned int device;
	struct range ranges[RANGES_MAX];
	unsigned int range_count;
	uint32_t accesses[RANGES_MAX]; /* entries of the machine's table, from 1 */
	union {
		struct kernel_work *kernel;
		struct copy_work copy;
		struct event_work event;
		struct host_work host;
	} u;
};

struct lane {
	struct work *head, *tail;
	uint64_t issued, done;
	bool taken;
};

extern struct lane lanes[LANES_MAX];

/* A stream of the caller. */
struct CUstream_st {
	struct CUstream_st *next;
	unsigned int lane;
	unsigned int flags;
	int device;
	bool gone;
	bool legacy;        /* the default stream of its device */
	struct stamp stamp; /* all that was enqueued, and what it follows */
	struct graph_recording *recording;
	unsigned int branch;         /* of the recording */
	struct stamp recorded_after; /* in it, by branch */
	struct place made;
};

struct CUevent_st {
	struct CUevent_st *next;
	unsigned int flags;
	bool gone;
	bool imported;
	uint32_t slot;          /* of the machine's table, from 1; 0: no interprocess event */
	uint64_t slot_recorded; /* the newest record of this process */
	struct stamp stamp;
	struct graph_recording *recording; /* it was recorded in one */
	unsigned int branch;
	uint64_t branch_number;
	struct stamp recorded_after;
};

extern struct CUstream_st *streams;
extern struct CUevent_st *events;
extern struct stamp host_stamp; /* what this process has seen to be done */

/* The stream of a handle, NULL being the default one; NULL when there is none. */
struct CUstream_st *stream_find(cudaStream_t handle, const struct place *place);
/* Lanes come from here and go back when their work is done. */
unsigned int lane_take(void);

struct work *work_new(enum work_kind kind, const struct place *place);
void work_free(struct work *work);
/* Enqueues it, or records it where the stream is being captured. */
cudaError_t stream_enqueue(struct CUstream_st *stream, struct work *work);
/* Straight into a lane, after all of @after. */
void lane_enqueue(unsigned int lane, struct work *work, const struct stamp *after);
/* What work that is enqueued now on the stream follows. */
void stream_before(const struct CUstream_st *stream, struct stamp *stamp);
void stream_after(struct CUstream_st *stream, const struct stamp *stamp);

bool stamp_is_done(const struct stamp *stamp);
/* Waits until it is, or the GPU has failed; with the lock. */
cudaError_t stamp_wait(const struct stamp *stamp);
/* The same of everything. */
cudaError_t lanes_wait(void);

/* ---- order (order.c) ---------------------------------------------------- */

/* Notes what work that starts now uses; reports what it conflicts with. */
void order_check(const struct work *work);
/* Resolves an address that a kernel was given, and notes that it is used. NULL, and a
 * finding, when nothing usable is there. */
void *work_use(struct work *work, const void *address, size_t bytes, bool write, bool atomic);

/* ---- kernels (kernels.c) ------------------------------------------------ */

/* NULL when @function is none of ours. */
struct kernel_work *kernel_work_new(const void *function, dim3 grid, dim3 block, void **args,
				    const struct place *place);
struct kernel_work *kernel_work_copy(const struct kernel_work *run);
void kernel_work_free(struct kernel_work *run);
const char *kernel_work_name(const struct kernel_work *run);
/* Resolves its addresses; false when it cannot run. */
bool kernel_work_start(struct work *work);
/* Does a little of it; true when it is done. Without the lock. */
bool kernel_work_some(struct work *work);
/* Its code is loaded by the first use; @capturing: a finding if that is now. */
void kernel_load(const void *function, bool capturing, const struct place *place);
bool kernel_is_ours(const void *function);

/* ---- graphs (graphs.c) -------------------------------------------------- */

/* Whether any stream of this process is being captured in a way that forbids
 * unsafe calls to the calling thread. */
bool capture_forbids(void);
/* The captures that an illegal call spoils. */
void captures_invalidate(void);
cudaError_t capture_work(struct CUstream_st *stream, struct work *work);
cudaError_t capture_record(struct CUstream_st *stream, struct CUevent_st *event);
cudaError_t capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
unsigned int graphs_count(void);

/* ---- driver (driver.c, vmm.c) ------------------------------------------- */

typedef void (*any_function)(void);

struct driver_function {
	const char *name;
	any_function function;
};

extern const struct driver_function vmm_functions[]; /* up to one without a name */

unsigned int vmm_memories(void);
uint64_t vmm_bytes(void);

#endif
