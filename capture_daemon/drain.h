/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane: one thread per channel takes what the producer submitted,
 * copies ids from its buffer into the ring, and publishes. Nothing that the
 * producer wrote is trusted; a fault in it ends this channel and no other.
 */
#ifndef DAEMON_DRAIN_H
#define DAEMON_DRAIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture_daemon/pace.h"
#include "capture_daemon/publish.h"
#include "channel/lane.h"
#include "channel/pages.h"
#include "device/device.h"

/* What became of the producer, as the control plane knows it. */
enum drain_producer {
	DRAIN_PRODUCER_ALIVE = 0,
	DRAIN_PRODUCER_CLOSED = 1, /* said BYE */
	DRAIN_PRODUCER_DIED = 2,
};

/* What `status` says of a channel; a copy that is whole. */
struct drain_report {
	struct r3ring_totals totals;
	uint64_t bytes;          /* payload of all records */
	uint64_t tail_seq;       /* newest record */
	uint64_t last_step_ns;   /* when the newest step ended; 0 when none has */
	uint64_t step_period_ns; /* lost steps too; mean over a second or more, 0 before that */
	uint64_t pace_since_ns;  /* of the mean being taken: since then, */
	uint64_t pace_from;      /* when so many steps had begun */
	uint64_t bound_since_ns;
	bool failed; /* the producer was cut off for what it submitted */
	char failure[R3RING_ERROR_TEXT];
};

/* One layer's part whose room in the ring is reserved. */
struct drain_part {
	struct r3ring_slot slot;
	const uint8_t *from;
	uint32_t layer;
	uint32_t part;
	uint32_t missing; /* of the layer, as its bell said */
	uint32_t out_of_range;
};

/* What readers were told of the step that was at work when another daemon died. */
struct drain_said {
	struct r3ring_step_record step; /* its number is 0 when none was */
	uint32_t gap_records;           /* LOST of the steps before it, not yet all; maybe
					 * in the ring before */
	uint32_t map_records;           /* STEP, and SPANS with the rest of its map */
	uint32_t rows;                  /* in ROWS records */
	uint32_t *layer_parts;          /* [layers]: LAYER records; owned */
	bool unknown;                   /* the ring does not hold all of it any more, or has
					 * told it as lost in this generation */
};

struct drain {
	const char *label; /* for the log */
	struct pages pages;
	struct lane_reader steps, side;
	const struct device_ops *ops;
	struct device *device;
	struct device_buffer buffer;
	void *arena; /* prepared as a target of copies; NULL: not yet */
	struct extent_geometry geometry;
	struct publisher publisher;
	struct pace pace;

	uint64_t last_step;  /* newest step number taken from the lane */
	uint64_t rows_seen;  /* valid rows of all steps up to it */
	bool resumed;        /* another daemon drained these pages before */
	uint64_t told_step;  /* newest that it told its readers all of; 0: not to come again */
	uint64_t gap_passed; /* steps of a gap that its ring counts as not yet told; all is */
	uint64_t told_ahead; /* the same, where only its ring said so; 0: the pages do */
	bool step_waits;     /* the next step, for an announcement not yet in the side lane */
	struct drain_said said;
	uint64_t said_entry;   /* number of the side entry that was at work then; 0: none */
	uint32_t said_records; /* how many of its records are published */
	uint64_t heartbeat_ns; /* when it was last shown */
	struct stall_policy policy;
	bool gpu_lost;      /* no copy works any more: nothing is published */
	bool left_alive;    /* the thread has ended, and left a producer that lived then */
	bool left_out_told; /* that keyframes have no room for all live requests */
	bool goes_on;       /* in a dead daemon's ring: that is to be said first */
	int held;           /* in the gate, for readers that have yet to come back; -1: nothing */
	uint64_t hold_until_ns;              /* atomic */
	uint64_t hold_look_ns;               /* when to look next whether they are back */
	struct r3ring_lost_record cut_short; /* the step at work when its daemon died */
	struct r3ring_lost_record untold[R3RING_CAUSE_COUNT]; /* lost while the ring was full */
	uint64_t untold_steps;                                /* in all of them */
	uint64_t untold_from; /* the first; then all up to last_step */
	bool dropping;        /* the ring was full at the newest step */

	uint8_t *payload; /* private copy of one entry's payload */
	size_t payload_bytes;
	uint8_t *layer_state;                 /* [layers] of the step at work */
	uint32_t *layer_comes;                /* [layers] atomic: 1: came with nothing bound */
	struct r3ring_missing_layer *missing; /* [layers] */
	struct drain_part *parts;             /* [parts_max]: reserved, not yet copied */
	uint32_t parts_max;
	uint32_t part_count;
	uint64_t imported_bytes; /* of the producer's pages and host buffer */

	pthread_t thread;
	bool running;
	int done_fd;               /* eventfd, readable once the thread is about to end */
	uint32_t producer;         /* enum drain_producer; stored by the control plane */
	uint32_t stopping;         /* likewise */
	uint64_t stop_deadline_ns; /* stored before stopping */

	pthread_mutex_t report_lock;
	struct drain_report report;
};

struct drain_options {
	const struct r3ring_hello_producer_message *hello;
	int pages_fd; /* taken over on success, as is buffer_fd (-1 when none) */
	int buffer_fd;
	uint64_t imported_bytes;
	struct device_options device;
};

/* Makes it one that drain_close() takes. @label must live as long. */
void drain_init(struct drain *drain, const char *label);

/*
 * Takes the producer's pages and buffer over: maps and checks them. The first buffer on a
 * GPU takes seconds. Any thread.
 * Returns 0 or a negative errno with a message for the producer.
 */
int drain_attach(struct drain *drain, const struct drain_options *options,
		 const struct r3ring_schema_record *schema, struct r3ring_error *err);

/* What it keeps of each layer of its geometry, as drain_attach() makes it; drain_close() frees it.
 * Returns 0 or -ENOMEM. */
int drain_alloc_layers(struct drain *drain);

/* Prepares the arena of the ring to come as a target of copies; it must stay until
 * drain_join(). Any thread. Returns likewise. */
int drain_prepare(struct drain *drain, const struct r3ring_segment *segment,
		  struct r3ring_error *err);

/*
 * Takes its place in the producer's lanes.
 * @told_step: newest that a dead daemon told all of; 0: not known.
 * @policy:    towards lossless readers.
 */
int drain_take_place(struct drain *drain, uint64_t told_step, struct stall_policy policy,
		     struct r3ring_error *err);

/* Publishes SCHEMA into @segment, then maps and BEGIN of the requests in @carried
 * (emptied); and KEYFRAME, where a step that was told before may come again. */
int drain_begin(struct drain *drain, struct r3ring_segment *segment,
		const struct r3ring_record *schema, struct live *carried, struct r3ring_error *err);

/*
 * Goes on in the ring of a daemon that died: the publisher is open, what it had
 * told is known. The thread will publish LOST and a keyframe (after the step, where one
 * is at work) before all else.
 */
int drain_resume(struct drain *drain, struct r3ring_error *err);

/* Starts the thread, which takes from the producer's pages from here on. */
int drain_launch(struct drain *drain, struct r3ring_error *err);

/*
 * While the generation before is drained, its lossless readers have not come here yet:
 * what they will need is kept, though no single wait is longer than the stall limit.
 * Then, for the stall limit from now. Any thread.
 */
void drain_hold_open_ended(struct drain *drain);
void drain_hold_on(struct drain *drain);

/* Tells the thread what became of the producer; it drains the rest and ends. */
void drain_producer_gone(struct drain *drain, enum drain_producer how);

/* Whether the producer says that it will submit nothing more. */
bool drain_closing(const struct drain *drain);

/* Tells the thread to drain what was submitted, until @deadline_ns, and end. */
void drain_stop(struct drain *drain, uint64_t deadline_ns);

/* Waits for the thread (at once, when done_fd is readable) and lets go of the
 * producer's pages and buffer. The publisher stays, for the last record. */
void drain_join(struct drain *drain);

/* Frees all; the thread must be joined, or never have been started. */
void drain_close(struct drain *drain);

/* Serves readers of a dead daemon's channel, which has no thread; its publisher is open. */
int drain_serve_idle(struct drain *drain, struct stall_policy policy);

/* A reader has registered: the thread is to admit it, be it asleep. */
void drain_nudge(struct drain *drain);

/* Any thread. */
void drain_get_report(struct drain *drain, struct drain_report *report);
/* Whether layer @index of the schema is bound. Any thread. */
bool drain_layer_bound(struct drain *drain, uint32_t index);
/* Whether it has come though nothing is bound to it: of engines that capture by call. Any thread. */
bool drain_layer_comes(const struct drain *drain, uint32_t index);

/* ---- within the data plane --------------------------------------------- */

/* Works one STEP entry off, up to its end bell. Returns 0, 1 when the daemon ends
 * before (then the entry is left to the next one), or -EBADMSG when the producer
 * is to be cut off. */
int drain_step(struct drain *drain, const uint8_t *payload, size_t bytes, struct r3ring_error *err);

/*
 * Steps are numbered without gaps: a jump to @step says how many found no entry. What
 * another daemon told of them is left out.
 *
 * @rows_before: valid rows of all steps before it.
 * @causes:      what the producer says of them; believed as far as it fits.
 */
void drain_say_gap(struct drain *drain, uint64_t step, uint64_t rows_before,
		   const struct lane_gap *causes);

/* Works one entry of another kind off. Returns likewise. */
int drain_record(struct drain *drain, const uint8_t *payload, size_t bytes, uint16_t type,
		 struct r3ring_error *err);

/*
 * Whether there is room for a whole step. Always, but where a channel drops steps
 * instead of demoting readers; there it waits for room, as long as the policy says,
 * and once it has waited in vain no more until there is.
 */
bool drain_finds_room(struct drain *drain, const struct r3ring_record *step);

/* Adds to the losses that are told when there is room again, by their cause. */
void drain_note_untold(struct drain *drain, const struct r3ring_lost_record *lost);

/* Adds them to @totals: who monitors learns of a loss at once, whoever reads the ring when
 * there is room. */
void drain_add_untold(const struct drain *drain, struct r3ring_totals *totals);

/* So that the next daemon can tell them, should this one die. */
void drain_store_untold(struct drain *drain);

/* Takes over what another daemon had yet to tell of @drain's pages. */
void drain_take_untold(struct drain *drain);

/* Publishes them; @now: though a reader must be demoted for it, else only where there
 * is room. */
void drain_say_untold(struct drain *drain, bool now);

/* Tells the next daemon up to where steps were told. */
void drain_note_told(struct drain *drain);

/* Between entries of whatever kind: so there is one in the ring however many come, and with it
 * the schema. */
/* Logs the first time that it has to leave out live requests. */
void drain_keyframe(struct drain *drain);
void drain_keyframe_when_due(struct drain *drain);

/* Publishes what has to be said of a producer that is gone. */
void drain_say_gone(struct drain *drain, enum drain_producer how);

/* Publishes the end of the requests that still live, for @reason. Once the thread has ended,
 * or from within it. */
void drain_end_requests(struct drain *drain, enum r3ring_end_reason reason);

/* Once the thread has ended: the producer may have submitted more, and gone, behind the
 * thread's last look. */
void drain_work_off_late(struct drain *drain);

/* The thread. @arg: the struct drain. */
void *drain_main(void *arg);

enum drain_producer drain_producer_state(const struct drain *drain);
/* Whether the daemon ends. */
bool drain_stopping(const struct drain *drain);
/* Whether the buffer may be read: one on a GPU goes with the process that made it. */
bool drain_may_copy(const struct drain *drain);
/* Whether it does, and its patience is over; or nothing can be copied any more. */
bool drain_expired(const struct drain *drain);
/* Admits readers that have registered. */
void drain_admit_readers(struct drain *drain);
/* Says in a dead daemon's ring what is kept for its lossless readers, in a new generation
 * that all is for those of the one before. */
void drain_keep(struct drain *drain);
void drain_keep_from_the_first(struct drain *drain);
/* Of what is kept nothing is overwritten until all lossless readers that live are back and
 * have not more unread than that, or the stall limit is over; in a new generation until that
 * is over. */
void drain_hold(struct drain *drain);
/* While the writer waits for a reader: whether it still may. @ctx: the struct drain. */
bool drain_carry_on(void *ctx);
/* Shows a sign of life, to readers and to the producer, twice a second at most. */
void drain_heartbeat(struct drain *drain);
/* Says in the log that a record could not be published, where @result is an error. */
void drain_check(const struct drain *drain, int result, const char *what);
/* Makes what changed visible to drain_get_report(). */
void drain_update_report(struct drain *drain);

#endif
