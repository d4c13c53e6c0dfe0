/* SPDX-License-Identifier: Apache-2.0 */
/* A producer opened at a fake daemon, and what its tests ask of both. */
#ifndef TESTS_UNIT_PRODUCER_FIXTURE_H
#define TESTS_UNIT_PRODUCER_FIXTURE_H

#include <stdint.h>

#include <r3ring/producer.h>

#include "producer/producer.h"
#include "tests/support/fake_service.h"

extern struct fake_service service;
extern struct r3ring_producer *producer;

/* For .init: the daemon alone; with a producer; with one whose queue is small. */
void start_closed(void);
void start(void);
void start_small(void);

/* For .fini. */
void stop(void);

void open_with(struct r3ring_producer_options options);

struct r3ring_producer_stats stats_now(void);

/* Asserts that the newest message says this. */
void assert_says(const char *what);

/* A step of @rows, all of them tokens of this rank. */
struct r3ring_step step_of(uint32_t rows);

/* Begins and ends a step of one row. */
void run_step(void);

/* Announces a request; returns its handle or the error. */
int64_t begin_request(const char *id);

/* The next entry, waited for, which must be a record of @type, or a step. */
void next_record(uint16_t type, struct r3ring_record *record);
struct lane_step next_step(struct r3ring_record *record);

void assert_nothing_announced(void);

/* Waiting for an event: a moment from now, and whether it has passed. */
uint64_t deadline_after(int seconds);
int is_over(uint64_t deadline);

#endif
