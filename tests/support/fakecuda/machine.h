/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of one fake machine share: findings, interprocess events,
 * who has which memory open, and which memory is being read or written just now.
 */
#ifndef FAKECUDA_MACHINE_H
#define FAKECUDA_MACHINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINE_GPUS_MAX 8u
#define MACHINE_GPU_BYTES (80ull << 30)
#define MACHINE_CONTEXT_BYTES (300ull << 20)

/* Processes are known by the number that they got when they came to the machine. */
struct machine_process {
	pid_t pid; /* 0: free */
	uint32_t number;
	uint64_t bytes[MACHINE_GPUS_MAX];
};

struct machine_event {
	uint64_t recorded, completed;
	uint32_t taken;
	uint32_t unused;
};

/* Memory that is open in a process that did not make it. */
struct machine_import {
	uint64_t identity;
	pid_t pid; /* 0: free */
	uint32_t number;
};

/* Memory in use by work that runs. */
struct machine_access {
	uint64_t identity, from, to;
	pid_t pid; /* 0: free; with its number filled in by machine_access_begin() */
	uint32_t number;
	uint32_t write;
	uint32_t unused;
	char what[64];
};

/* The machine's table; with its own lock, which outlives a killed process. */
struct machine;

struct machine *machine(void); /* opened, or made, by the first call */

uint32_t machine_process_number(void); /* of this one, from 1 */
unsigned int machine_gpus(void);
int machine_driver_version(void); /* 0: none */
bool machine_refuses(const char *what);

void machine_add_finding(const char *text);

/* Once on the machine for each text: true the first time. */
bool machine_once(const char *text);

/* Of the GPU's memory; false when there is not so much. */
bool machine_take_bytes(unsigned int gpu, uint64_t bytes);
void machine_give_bytes(unsigned int gpu, uint64_t bytes);
uint64_t machine_free_bytes(unsigned int gpu);

uint32_t machine_event_take(void); /* from 1; 0: all are taken */
void machine_event_give(uint32_t slot);
struct machine_event *machine_event(uint32_t slot);

void machine_import_add(uint64_t identity);
void machine_import_remove(uint64_t identity);
pid_t machine_import_of(uint64_t identity); /* of another live process, or 0 */

/*
 * Notes that memory is used from now on. Fills @other (64 bytes) and returns its
 * process when another process uses it too, one of the two writing.
 * @entry: receives what machine_access_end() takes.
 */
pid_t machine_access_begin(const struct machine_access *access, uint32_t *entry, char *other);
void machine_access_end(uint32_t entry);

void machine_count_kernel(void);
void machine_count_copy(uint64_t bytes);
void machine_count_event(bool is_record);
void machine_count_stream_wait(void);

#endif
