/* SPDX-License-Identifier: Apache-2.0 */
/* GET_STATUS, answered in JSON so that an older tool can show what is new. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <r3ring/atomic.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/sizing.h"
#include "capture_daemon/status.h"
#include "channel/namespaces.h"
#include "channel/reader_label.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *time_text(int64_t seconds)
{
	time_t at = (time_t)seconds;
	char text[32];
	struct tm parts;

	gmtime_r(&at, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

static json_t *uuid_text(const uint8_t uuid[16])
{
	char text[37];
	size_t at = 0;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%02x", uuid[i]);
	}
	return json_string(text);
}

/* A daemon that is stopping has drained engines that live, and go on under the next one. */
static const char *state_name(const struct channel *channel)
{
	static const char *const names[] = {
		[CHANNEL_LIVE] = "live",
		[CHANNEL_ENDED] = "ended",
		[CHANNEL_ORPHAN] = "orphan",
	};

	return names[channel->producer ? CHANNEL_LIVE : channel->state];
}

static const char *buffer_name(enum r3ring_buffer_kind kind)
{
	switch (kind) {
	case R3RING_BUFFER_CUDA_IPC:
		return "cuda-ipc";
	case R3RING_BUFFER_CUDA_VMM:
		return "cuda-fd";
	default:
		return "host";
	}
}

static const char *export_reason_name(enum r3ring_export_reason reason)
{
	switch (reason) {
	case R3RING_EXPORT_SAME_NAMESPACES:
		return "same namespaces";
	case R3RING_EXPORT_OTHER_PID_NAMESPACE:
		return "other PID namespace";
	case R3RING_EXPORT_OTHER_IPC_NAMESPACE:
		return "other IPC namespace";
	case R3RING_EXPORT_FORCED:
		return "asked for";
	case R3RING_EXPORT_NO_HANDLE:
		return "GPU without CUDA IPC";
	case R3RING_EXPORT_HANDLE_REFUSED:
		return "handle could not be opened";
	default:
		return "host memory";
	}
}

/* ---- one channel -------------------------------------------------------- */

static void add_binding(json_t *object, struct channel *channel, const struct drain_report *report)
{
	const struct publisher *publisher = &channel->drain.publisher;
	json_t *bound = json_array(), *called = json_array(), *unbound = json_array();
	int64_t since = (int64_t)report->bound_since_ns + publisher->schema.realtime_offset_ns;

	for (uint32_t i = 0; i < publisher->schema.layers; i++) {
		json_t *layer = json_integer(publisher->layers[i].layer_id);

		if (drain_layer_bound(&channel->drain, i))
			json_array_append_new(bound, layer);
		else if (drain_layer_comes(&channel->drain, i))
			json_array_append_new(called, layer);
		else
			json_array_append_new(unbound, layer);
	}
	json_object_set_new(object, "bound_since",
			    json_array_size(bound) && report->bound_since_ns
				    ? time_text(since / (int64_t)NS_PER_SECOND)
				    : json_null());
	json_object_set_new(object, "bound_layers", bound);
	json_object_set_new(object, "called_layers", called);
	json_object_set_new(object, "unbound_layers", unbound);
}

static json_t *lost_object(const struct r3ring_totals *totals)
{
	json_t *lost = json_object();

	for (uint32_t cause = 1; cause < R3RING_CAUSE_COUNT; cause++) {
		json_t *counts;

		if (!totals->lost_steps[cause] && !totals->lost_rows[cause])
			continue;
		counts = json_object();
		json_object_set_new(counts, "steps", number(totals->lost_steps[cause]));
		json_object_set_new(counts, "rows", number(totals->lost_rows[cause]));
		json_object_set_new(lost, r3ring_cause_name(cause), counts);
	}
	return lost;
}

static double steps_per_s(const struct channel *channel, const struct drain_report *report,
			  uint64_t age_ns)
{
	/* A rate of the past is none: after a long silence it is 0, and where nobody steps. */
	if (!channel->producer && channel->state != CHANNEL_LIVE)
		return 0;
	if (!report->step_period_ns || age_ns > 16 * report->step_period_ns + NS_PER_SECOND)
		return 0;
	return (double)NS_PER_SECOND / (double)report->step_period_ns;
}

static void add_totals(json_t *object, const struct channel *channel,
		       const struct drain_report *report)
{
	const struct r3ring_totals *totals = &report->totals;
	uint64_t age = report->last_step_ns ? clock_now_ns() - report->last_step_ns : 0;

	json_object_set_new(object, "steps", number(totals->steps));
	json_object_set_new(object, "steps_complete", number(totals->steps_complete));
	json_object_set_new(object, "steps_partial", number(totals->steps_partial));
	json_object_set_new(object, "rows", number(totals->rows));
	json_object_set_new(object, "layer_records", number(totals->layer_records));
	json_object_set_new(object, "bytes", number(report->bytes));
	json_object_set_new(object, "steps_per_s", json_real(steps_per_s(channel, report, age)));
	json_object_set_new(object, "ids_out_of_range", number(totals->ids_out_of_range));
	json_object_set_new(object, "ids_missing", number(totals->ids_missing));
	json_object_set_new(object, "flagged", json_boolean(totals->ids_out_of_range != 0));
	json_object_set_new(object, "lost", lost_object(totals));
	json_object_set_new(object, "last_step_age_ms",
			    report->last_step_ns ? number(age / NS_PER_MS) : json_null());
}

static void add_ring(json_t *object, const struct channel *channel,
		     const struct drain_report *report)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	json_t *ring = json_object();

	json_object_set_new(ring, "bytes", number(header->segment_size));
	json_object_set_new(ring, "arena",
			    number(1ull << header->regions[R3RING_REGION_ARENA].count_log2));
	json_object_set_new(ring, "depth",
			    number(1ull << header->regions[R3RING_REGION_DESCS].count_log2));
	json_object_set_new(ring, "tail_seq", number(report->tail_seq));
	json_object_set_new(object, "ring", ring);
}

static void add_waits(json_t *object, const struct channel *channel)
{
	const struct stall *stall = &channel->drain.publisher.stall;

	json_object_set_new(object, "reader_wakes", number(gate_wakes(stall->gate)));
	json_object_set_new(object, "waits_for_readers",
			    number(r3ring_load_relaxed_u64(&stall->waits)));
	json_object_set_new(object, "waited_for_readers_ms",
			    number(r3ring_load_relaxed_u64(&stall->waited_ns) / NS_PER_MS));
	json_object_set_new(object, "readers_demoted",
			    number(r3ring_load_relaxed_u64(&stall->demoted)));
}

static json_t *reader_object(const struct gate_member_report *report)
{
	const struct session *session = report->owner;
	char label[R3RING_READER_LABEL_BYTES];
	json_t *object = json_object();

	reader_label_load(session->registration.page, label);
	json_object_set_new(object, "pid", json_integer(session->peer.pid));
	json_object_set_new(object, "label", json_string(label));
	json_object_set_new(object, "mode", json_string(report->lossless ? "lossless" : "lossy"));
	json_object_set_new(object, "lag_records", number(report->lag_records));
	json_object_set_new(object, "lag_bytes", number(report->lag_bytes));
	json_object_set_new(object, "got", number(report->got));
	json_object_set_new(object, "lost", number(report->lost));
	json_object_set_new(object, "skipped", number(report->skipped));
	json_object_set_new(object, "demoted", json_boolean(report->demoted));
	if (report->demoted) {
		json_object_set_new(object, "demoted_from", number(report->demoted_from));
		json_object_set_new(object, "demoted_to", number(report->demoted_to));
	}
	return object;
}

static void add_readers(json_t *object, const struct channel *channel)
{
	struct gate_member_report reports[GATE_MEMBERS_MAX];
	unsigned int count = gate_list(channel->drain.publisher.stall.gate, reports);
	json_t *readers = json_array();

	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(readers, reader_object(&reports[i]));
	json_object_set_new(object, "readers", readers);
}

static uint64_t count_readers(const struct channel *channel)
{
	uint64_t count = 0;

	for (const struct session *s = channel->daemon->sessions; s; s = s->next)
		count += s->is_reader && channel_find(channel->daemon, &s->reads) == channel;
	return count;
}

static void add_buffer(json_t *object, const struct channel *channel)
{
	json_t *buffer = json_object();

	json_object_set_new(buffer, "kind", json_string(buffer_name(channel->buffer_kind)));
	if (channel->buffer_kind == R3RING_BUFFER_CUDA_IPC ||
	    channel->buffer_kind == R3RING_BUFFER_CUDA_VMM) {
		json_object_set_new(buffer, "why",
				    json_string(export_reason_name(channel->export_reason)));
		json_object_set_new(
			buffer, "order",
			json_string(channel->order == R3RING_ORDER_EVENT ? "event" : "bell"));
		json_object_set_new(buffer, "gpu", uuid_text(channel->gpu_uuid));
	}
	json_object_set_new(object, "buffer_bytes", number(channel->buffer_bytes));
	json_object_set_new(object, "buffer", buffer);
}

/* Of each kind of parallelism the rank's index, and how many there are; 0: the engine did not say. */
static json_t *rank_object(const struct r3ring_coordinates *rank)
{
	return json_pack("{s:[i, i], s:[i, i], s:[i, i], s:[i, i], s:[i, i], s:[i, i]}", "dp",
			 rank->dp.index, rank->dp.size, "tp", rank->tp.index, rank->tp.size, "sp",
			 rank->sp.index, rank->sp.size, "pp", rank->pp.index, rank->pp.size, "ep",
			 rank->ep.index, rank->ep.size, "cp", rank->cp.index, rank->cp.size);
}

static json_t *channel_object(struct channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	const struct publisher *publisher = &channel->drain.publisher;
	struct drain_report report;
	json_t *object = json_object();

	drain_get_report(&channel->drain, &report);
	json_object_set_new(object, "channel", json_string(channel->text));
	json_object_set_new(object, "generation", number(header->generation));
	json_object_set_new(object, "uuid", uuid_text(header->uuid));
	json_object_set_new(object, "segment", json_string(r3ring_segment_name(channel->segment)));
	json_object_set_new(object, "state", json_string(state_name(channel)));
	json_object_set_new(object, "crashed", json_boolean(channel->crashed));
	json_object_set_new(
		object, "producer_died",
		json_boolean(drain_producer_state(&channel->drain) == DRAIN_PRODUCER_DIED));
	json_object_set_new(object, "model", json_string(publisher->schema.model));
	json_object_set_new(object, "rank", rank_object(&publisher->schema.rank));
	json_object_set_new(object, "producer_pid",
			    channel->producer_pid ? json_integer(channel->producer_pid)
						  : json_null());
	json_object_set_new(object, "device", json_string(channel->device));
	json_object_set_new(object, "lossless_policy",
			    json_string(channel_policy(channel).drop ? "drop" : "demote"));
	json_object_set_new(object, "since", time_text(channel->since));
	json_object_set_new(object, "id_space", json_string("logical"));
	add_binding(object, channel, &report);
	add_totals(object, channel, &report);
	add_ring(object, channel, &report);
	add_buffer(object, channel);
	json_object_set_new(object, "attached_readers", number(count_readers(channel)));
	add_readers(object, channel);
	add_waits(object, channel);
	return object;
}

/* ---- the daemon --------------------------------------------------------- */

static json_t *daemon_object(const struct daemon *daemon)
{
	json_t *object = json_object(), *limits = json_object();
	uint64_t channels = 0;

	for (const struct channel *c = daemon->channels; c; c = c->next)
		channels += !c->retiring;
	json_object_set_new(object, "pid", json_integer(getpid()));
	json_object_set_new(object, "pid_namespace", number(namespaces_of_this_process().pid));
	json_object_set_new(object, "version", json_string(R3RING_VERSION));
	json_object_set_new(object, "uptime_s",
			    number((clock_now_ns() - daemon->started_ns) / NS_PER_SECOND));
	json_object_set_new(object, "loop", json_string(loop_name(daemon->loop)));
	json_object_set_new(object, "runtime_dir", json_string(daemon->dir.path));
	json_object_set_new(object, "channels", number(channels));
	json_object_set_new(object, "ring_bytes",
			    number(sizing_usual_bytes(daemon->options.ring_size)));
	json_object_set_new(limits, "max_channels", number(daemon->options.max_channels));
	json_object_set_new(limits, "max_memory", number(daemon->options.max_memory));
	json_object_set_new(limits, "max_readers", number(daemon->options.max_readers));
	json_object_set_new(limits, "buffer_size", number(daemon->options.buffer_size));
	json_object_set_new(limits, "lossless_limit", number(daemon->options.lossless_limit));
	json_object_set_new(limits, "stall_limit_ms", number(daemon->options.stall_limit));
	json_object_set_new(
		limits, "lossless_policy",
		json_string(daemon->options.lossless_policy == LOSSLESS_DROP ? "drop" : "demote"));
	json_object_set_new(object, "limits", limits);
	return object;
}

/* Takes @object over. */
static int send_object(struct session *session, uint16_t type, json_t *object)
{
	struct r3ring_message head = {.type = type};
	char *text = json_dumps(object, JSON_COMPACT);
	int r = -ENOMEM;

	json_decref(object);
	if (text)
		r = session_send(session, &head, sizeof(head), text, strlen(text), NULL, 0);
	free(text);
	return r;
}

int status_send(struct session *session, struct r3ring_error *err)
{
	struct daemon *daemon = session->daemon;
	int r = 0;

	for (struct channel *c = daemon->channels; r == 0 && c; c = c->next) {
		if (!c->retiring)
			r = send_object(session, R3RING_MSG_STATUS_CHANNEL, channel_object(c));
	}
	if (r == 0)
		r = send_object(session, R3RING_MSG_STATUS_DONE, daemon_object(daemon));
	return r < 0 ? r3ring_error_set(err, r, "status cannot be sent: %s", strerror(-r)) : 0;
}
