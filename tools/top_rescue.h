/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a terminal back where the program crashes: what curses would write is prepared at the
 * start, as a handler of signals may do little more than write it.
 */
#ifndef TOOLS_TOP_RESCUE_H
#define TOOLS_TOP_RESCUE_H

/*
 * From now on a SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS or SIGTRAP first gives the
 * terminal back where it is taken, then does what it would have done: exit status and core
 * are the same. Call it before the terminal's modes are changed.
 *
 * @fd: the terminal; open until rescue_end(). One terminal a process, one thread.
 */
void rescue_prepare(int fd);

/* The terminal is taken, by curses; given back. */
void rescue_arm(void);
void rescue_disarm(void);

/* Signals do again what they did before rescue_prepare(). */
void rescue_end(void);

#endif
