/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a reader's descriptor readable: one epoll for its whole life, over whatever
 * the reader waits for at present, and a timer for what nobody tells it of.
 */
#ifndef CONSUMER_READINESS_H
#define CONSUMER_READINESS_H

#include <stdbool.h>
#include <stdint.h>

struct readiness {
	int epoll_fd; /* -1: nobody polls, and nothing else counts */
	int timer_fd;
	uint64_t timer_ns; /* when the timer goes off or has gone off; 0: never set */
	int connection;    /* what is watched, -1: none */
	int request;
	bool hung_up; /* the present connection is over */
};

void readiness_init(struct readiness *readiness);

/* Makes its descriptors. Returns 0 or a negative errno. */
int readiness_open(struct readiness *readiness);
void readiness_close(struct readiness *readiness);

/* No more of the present connection, or question: to be called before it is closed, for a
 * child that has it would keep it watched. */
void readiness_drop_connection(struct readiness *readiness);
void readiness_drop_request(struct readiness *readiness);

/* Watches a descriptor of which @watched is the note. Returns whether it is watched. */
bool readiness_watch(struct readiness *readiness, int *watched, int fd);

/* Sees to it that the timer goes off at @due_ns at the latest: now and then earlier, so
 * that a moment that moves on costs no system call; a millisecond from @now at least. */
void readiness_set_timer(struct readiness *readiness, uint64_t now, uint64_t due_ns);

#endif
