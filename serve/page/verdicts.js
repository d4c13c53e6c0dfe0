// SPDX-License-Identifier: Apache-2.0
// What somebody has to know at once: is a layer out of balance, is this now? Whether anything is
// lost is in losses.js.

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
