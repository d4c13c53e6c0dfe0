// SPDX-License-Identifier: Apache-2.0
// Why something is missing, in words (docs/OPERATIONS.md, "What a loss means").

const CAUSES = {
	buffer_full: 'the capture buffer had no room',
	ring_full: 'the ring had no room',
	queue_full: 'the queue to the daemon had no room',
	producer_died: 'the engine died',
	daemon_restart: 'no daemon ran',
	copy_failed: 'the copy failed',
	too_big: 'the step was larger than the buffer',
	conflict: 'two passes over it say different things',
	not_captured: 'the layer was not captured',
	too_few_rows: 'not all rows of the layer came',
	overlap: 'rows of the layer came twice',
	gap: 'this monitor came late, or did not read it in time',
	external: 'its KV came from elsewhere: it did not run here',
	unknown_key: 'from a prefix cache, under a key nobody remembers',
	no_expert: 'an id was no expert',
	not_run: 'no pass over it is known',
	not_fed: 'the last token, which was never fed back',
	spans: 'its position never came',
	evicted: 'memory was needed for others',
	other_layers: 'no channel has the layer',
	other_shards: 'no channel has the rows of the shard that may have run it',
	not_recorded: 'who recorded it left the layer out',
};

const asCause = (cause) => (CAUSES[cause] ? `${cause} (${CAUSES[cause]})` : cause);
