// SPDX-License-Identifier: Apache-2.0
// Everything in words and figures, for those who read instead of looking.

function fillBalance(balance, experts, threshold) {
	const most = balance.reduce((max, layer) => Math.max(max, layer.ratio), 1);

	fillTable('balance', balance.map((layer) => {
		const cells = [String(layer.number),
			{text: asTimes(layer.ratio), part: 100 * layer.ratio / most},
			layer.sum ? String(layer.most) : 'none', asShare(layer.max, layer.sum),
			whole.format(layer.idle)];

		if (isUneven(layer, experts, threshold))
			cells.mark = 'warn';
		return cells;
	}), 'no layer yet');
}

function fillGpus(gpus, past, differ) {
	if (!gpus) {
		byId('gpus-says').className = 'note';
		setNote('gpus-says', `No EPLB map ${past ? 'was known then' : 'is known'}, so nobody can say which GPU an expert is on.`);
		return fillTable('gpus', [], 'not known');
	}
	const sum = gpus.load.reduce((all, load) => all + load, 0), mean = sum / gpus.load.length;
	const most = Math.max(...gpus.load, 1);

	byId('gpus-says').className = gpus.uneven ? 'note warn' : 'note';
	setNote('gpus-says', `EPLB map ${gpus.epoch}${differ ? ', the newest of a rank: the newest steps of others ran with earlier ones' : ''}${gpus.uneven ? ', out of balance' : ''}. The slowest GPU of each layer decides: worst is ` +
		`layer ${gpus.worst_layer}, GPU ${gpus.worst_gpu}, ${asTimes(gpus.worst)} its mean; ` +
		`${asTimes(gpus.average)} on average.`);
	return fillTable('gpus', gpus.load.map((load, gpu) => [String(gpu),
		{text: asTimes(mean ? load / mean : 0), part: 100 * load / most}, asShare(load, sum)]));
}

function fillLosses(daemon) {
	const partial = daemon.channels.filter((channel) => Number(channel.steps_partial)).map((channel) => {
		const cells = [channel.channel, 'layers or rows missing', asCount(channel.steps_partial), '', ''];

		cells.mark = 'warn';
		return cells;
	});
	const rows = daemon.channels.flatMap((channel) =>
		Object.entries(channel.lost).map(([cause, lost]) => {
			const now = lately.sum(channel.channel)[cause] ?? 0;
			const cells = [channel.channel, asCause(cause), asCount(lost.steps), asCount(lost.rows), asCount(now)];

			cells.mark = now ? 'bad' : 'warn';
			return cells;
		}));

	setNote('losses-says', daemon.daemon === 'live' ? 'As the daemon counts them in the present generation of each channel: one that starts again counts anew.'
		: `${daemon.daemon}: ${daemon.reason}`);
	fillTable('losses', rows.concat(partial), daemon.daemon === 'live' && daemon.channels.length ? 'nothing lost' : 'not known');
}

/* Parts of the engine that the daemon has no channel of. */
function absentWords(absent) {
	const more = (absent?.ranks ?? 0) - (absent?.told.length ?? 0);

	if (!absent?.ranks)
		return '';
	return `No channel here of ${absent.told.join('; ')}${more ? `; and of ${plural(more, 'more rank')}` : ''}: ` +
		'not started, without capture, or with another daemon. What it computes is not shown.';
}

function fillChannels(daemon) {
	setNote('channels-says', absentWords(daemon.absent));
	fillTable('channels', daemon.channels.map((channel) => {
		const bound = channel.bound_layers, all = bound + channel.unbound_layers.length;
		const cells = [channel.channel, channel.producer_died && channel.state === 'ended' ? 'died' : channel.state, isolated(channel.model),
			tenth.format(channel.steps_per_s), whole.format(channel.rows_per_s),
			`${asBytes(channel.bytes_per_s)}/s`,
			channel.last_step_age_ms === null ? 'none yet' : `${asAge(channel.last_step_age_ms)} ago`,
			bound ? `${bound} of ${all}` : 'not told'];

		if (channel.state === 'live' && bound && bound < all)
			cells.mark = 'bad';
		return cells;
	}), 'no channel');
}

function fillReaders(daemon) {
	fillTable('readers', daemon.channels.flatMap((channel) => channel.readers.map((reader) => {
		const cells = [channel.channel, `${reader.pid || 'not known'} ${reader.label}`.trim(),
			reader.demoted ? 'was lossless, demoted' : reader.mode, asCount(reader.lag_records),
			asBytes(reader.lag_bytes), asCount(reader.lost)];

		if (reader.demoted || Number(reader.lost))
			cells.mark = 'warn';
		return cells;
	})), 'no reader that can be seen');
}

function fillDaemon(daemon) {
	fillLosses(daemon);
	fillChannels(daemon);
	fillReaders(daemon);
}
