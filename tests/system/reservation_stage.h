/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations that tests of `r3ring serve` make and count. */
#ifndef TESTS_SYSTEM_RESERVATION_STAGE_H
#define TESTS_SYSTEM_RESERVATION_STAGE_H

#include "tests/system/serve_stage.h"

/* How many reservations there are; then waits until it is @count. */
size_t reservations(void);
bool reservations_become(size_t count);

/* Room at the tightest place for a request that nothing is known of. */
double margin_left(void);

struct http_reply reserve(const char *key, int tokens, int ttl_ms);
void expect_reserved(const char *key, int tokens, int ttl_ms, int status);
/* Reserves a token's room for an hour; @where receives the path of the reservation. */
void reserve_at(char where[256], const char *key);

/* What is left in ms, as the answer to this tells; below 0: no time ends it. */
double time_left(const char *method, const char *what, const char *body, int status);

#endif
