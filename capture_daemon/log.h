/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log: one line per event on standard error. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <r3ring/error.h>

/*
 * Decides the form of the lines: under systemd (standard error is the journal)
 * each begins with <N>, its syslog priority; elsewhere with time and level.
 */
void log_open(void);

/* Events above this level are left out. Any thread. */
void log_set_level(enum r3ring_log_level level);

/* "error", "warn", "info", "debug"; returns 0 or -EINVAL. */
int log_level_parse(const char *name, enum r3ring_log_level *level);

/* Writes one event with one write(2), so that lines of threads never mix. */
void log_line(enum r3ring_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(R3RING_LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(R3RING_LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(R3RING_LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(R3RING_LOG_DEBUG, __VA_ARGS__)

#endif
