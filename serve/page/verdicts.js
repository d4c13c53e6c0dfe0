// SPDX-License-Identifier: Apache-2.0
// What somebody has to know at once: is a layer out of balance, is anything lost, is this now?

const SILENT_MS = 3000; // without a step for so long an engine is called silent
const NAMED = 3;        // so many layers are named with their figures

function judge(id, mark, word, more) {
	const verdict = byId(id);

	verdict.className = `verdict ${mark}`;
	setText(verdict.querySelector('.word'), word);
	setText(verdict.querySelector('.more'), more);
}

const verdictWord = (id) => byId(id).querySelector('.word').textContent;

/* ---- balance ---- */

/* The server says what of GPUs is uneven: the same that an alert is of. */
function gpusWords(gpus) {
	if (!gpus)
		return '.';
	const worst = `GPU ${gpus.worst_gpu} has ${asTimes(gpus.worst)} the mean of layer ${gpus.worst_layer}`;

	if (gpus.uneven)
		return `. GPUs out of balance: ${worst}.`;
	return `. Of GPUs the worst: ${worst}.`;
}

function judgeBalance(balance, experts, threshold, gpus) {
	const uneven = balance.filter((layer) => isUneven(layer, experts, threshold))
		.sort((a, b) => b.ratio - a.ratio);
	const worst = balance.reduce((most, layer) => (layer.ratio > most.ratio ? layer : most), balance[0]);
	const onGpus = gpusWords(gpus);

	if (!worst?.sum)
		return judge('verdict-balance', '', 'no load', 'No step was counted in this window.');
	if (!uneven.length) {
		const few = worst.ratio > threshold;
		const word = few ? 'too few tokens to tell' : `all ${balance.length} layers in balance`;
		const largest = `The largest is layer ${worst.number}: ${asTimes(worst.ratio)} its mean`;

		if (gpus?.uneven)
			return judge('verdict-balance', 'warn', 'GPUs out of balance', largest + onGpus);
		return judge('verdict-balance', few ? '' : 'good', word, largest + (few ? ', by chance perhaps' : '') + onGpus);
	}
	const named = uneven.slice(0, NAMED).map((layer) =>
		`layer ${layer.number}: ${asTimes(layer.ratio)} its mean, expert ${layer.most}`);
	const others = asRuns(uneven.slice(NAMED).map((layer) => layer.number));

	return judge('verdict-balance', 'warn',
		`${uneven.length} of ${balance.length} layers out of balance${gpus?.uneven ? ', and GPUs' : ''}`,
		named.join('; ') + (others ? `; also ${others}` : '') + onGpus);
}

/* Before the first frame of an engine. */
function judgeNothing(engine) {
	judge('verdict-balance', '', 'waiting', engine === 'waiting' ? 'No such engine yet.' : 'No step was counted yet.');
}

/* ---- losses ---- */

const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
const causesOf = (counts) => Object.entries(counts)
	.map(([cause, count]) => `${cause} ${asCount(count)}${CAUSES[cause] ? ` (${CAUSES[cause]})` : ''}`).join(', ');

/* Steps by cause since the engine began, of all channels. */
function lostSteps(channels) {
	const sum = {};

	for (const channel of channels) {
		for (const [cause, steps] of Object.entries(stepsOf(channel.lost)))
			sum[cause] = (sum[cause] ?? 0) + steps;
	}
	return sum;
}

let told = ''; // of losses, newest

function forgetLosses() {
	lately.forget();
	told = '';
	judge('verdict-losses', '', 'waiting', 'The daemon was not asked yet.');
}

const outOfRange = (channels) =>
	channels.reduce((sum, channel) => sum + Number(channel.ids_out_of_range), 0);

/* An engine that binds no layer tells of none: what it misses is counted step by step. */
function unboundOf(channels) {
	return channels.filter((channel) => channel.bound_layers && channel.unbound_layers.length)
		.map((channel) => `${channel.channel}: layers ${channel.unbound_layers.join(', ')} are not captured`);
}

const lostWords = (now) =>
	`${plural(sumOf(now), 'step')} lost in the last ten seconds: ${causesOf(now)}.`;
const lostEver = (ever) => `${plural(sumOf(ever), 'step')} lost since the engine began`;

/* Mark, word and more. @lost: cells of the window by cause; what this monitor itself did not read
 * is told apart. */
function lossesOf(lost, daemon) {
	const {gap, ...window} = lost;
	const channels = daemon?.channels ?? [];
	const now = lately.sum(), ever = lostSteps(channels);
	const own = gap ? ` This monitor skipped ${asCount(gap)} cells.` : '';
	const doubt = channels.some((channel) => channel.crashed)
		? ' An engine ran on without a daemon: more may be lost.' : '';
	const unbound = unboundOf(channels);

	if (sumOf(window) || sumOf(now))
		return ['bad', 'being lost', (sumOf(now) ? `${lostWords(now)} ${lostEver(ever)}.`
			: `Rows x layers of the window: ${causesOf(window)}.`) + doubt + own];
	if (outOfRange(channels))
		return ['bad', 'ids that are no expert',
			`${asCount(outOfRange(channels))} ids were out of range: the capture is at the wrong place.` + own];
	if (unbound.length)
		return ['bad', 'layers are missing', unbound.join('; ') + '.' + own];
	if (sumOf(ever))
		return ['warn', doubt ? 'lost, perhaps more' : 'nothing just now',
			`${lostEver(ever)}: ${causesOf(ever)}.` + doubt + own];
	if (doubt)
		return ['warn', 'nothing that is known', doubt.trim() + own];
	if (daemon?.daemon !== 'live')
		return ['warn', 'not known', daemon?.reason || 'The daemon was not asked yet.'];
	if (!channels.length)
		return ['', 'waiting', 'No such engine yet.'];
	if (hasEnded(daemon))
		return ['', 'nothing lost', 'Until it ended every step that was announced came whole.' + own];
	return ['good', 'nothing lost', 'Every step that was announced came whole.' + own];
}

function judgeLosses(lost, daemon) {
	const [mark, word, more] = lossesOf(lost, daemon);

	told = `${word}. ${more}`;
	judge('verdict-losses', mark, word, more);
}

/* Once the server is gone. @age: of what was told, in ms. */
function fadeLosses(age) {
	if (told)
		judge('verdict-losses', '', 'not known now', `${asAge(age)} ago: ${told}`);
}

/* ---- is it now? ---- */

const AWAY = {'no daemon': 'no daemon', 'no answer': 'daemon does not answer'};

/* As the daemon says, closed or died; not who is waited for after a daemon's death. */
function hasEnded(daemon) {
	return Boolean(daemon?.channels.length) && daemon.channels.every((channel) => channel.state === 'ended');
}

/* {connected, since, error, frame, heardAt, paused, past, daemon} */
function judgeData(state) {
	const now = performance.now();
	const age = state.frame ? state.frame.age_ms + now - state.heardAt : Infinity;
	const shown = state.frame ? `What is shown is ${asAge(age)} old.` : 'Nothing was seen yet.';

	document.body.classList.toggle('stale', !state.connected || age > SILENT_MS);
	if (!state.connected)
		return judge('verdict-data', 'bad', 'server gone',
			`For ${asAge(now - state.since)}: ${state.error}. Trying again. ${shown}`);
	if (state.engine === 'waiting')
		return judge('verdict-data', 'bad', 'no engine', `${state.engineError}. ${shown}`);
	if (state.past)
		return judge('verdict-data', 'warn', 'the past', 'A moment of the last minutes is shown.');
	if (state.paused)
		return judge('verdict-data', 'warn', 'paused', shown);
	if (AWAY[state.daemon?.daemon] && age > SILENT_MS)
		return judge('verdict-data', 'bad', AWAY[state.daemon.daemon],
			`${state.daemon.reason}. The engine may run on. ${shown}`);
	if (hasEnded(state.daemon) || (state.engine === 'ended' && !byId('channel').value))
		return judge('verdict-data', 'bad', 'engine ended', `It closed its channels, or is gone. ${shown}`);
	if (state.engine === 'ended')
		return judge('verdict-data', 'bad', 'rank ended', `${byId('channel').value} was closed, or is gone. ${shown}`);
	if (!state.frame)
		return judge('verdict-data', '', 'waiting', 'No step was counted yet.');
	if (state.frame.left_out?.length)
		return judge('verdict-data', 'bad', 'two models', `Ranks are of different models: ${state.frame.model} is shown; left out: ` +
			`${state.frame.left_out.map((one) => `${one.channel} (${one.model})`).join(', ')}. ${shown}`);
	if (state.engine === 'silent' || age > SILENT_MS)
		return judge('verdict-data', 'warn', 'engine silent', `No step for ${asAge(age)}.`);
	return judge('verdict-data', 'good', 'live', `${plural(state.frame.rows, 'token')} in the window.`);
}
