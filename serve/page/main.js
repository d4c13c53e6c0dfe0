// SPDX-License-Identifier: Apache-2.0
// One stream of events, and what is made of it. Frames are drawn when the browser draws, the
// newest only; tables and words are renewed twice a second.

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const TABLES_MS = 500;
const SPOKEN_MS = 15000; // verdicts are read out when they change, not more often than so

const state = {
	connected: false, since: performance.now(), error: 'not connected yet',
	engine: '', engineError: '', frame: null, heardAt: 0, paused: false, past: null, daemon: null, toldAt: 0,
	shown: null, // the frame on the screen, with values and balance
	drawn: 0, heard: 0,
};
let stream = null;
let drawing = 0;

const say = (words) => setNote('say', words);
const scaleOf = () => byId('scale').value;
const thresholdOf = () => Math.max(1.1, Number(byId('threshold').value) || 2);
const heat = new Heatmap(byId('heat-box'), say);
const lookup = new Lookup(say, scaleOf);
const timeline = new Timeline(showMoment);

/* ---- drawing ---- */

function draw() {
	const shown = state.shown;

	drawing = 0;
	if (!shown)
		return;
	if (!shown.values) {
		shown.values = countsOf(shown);
		shown.balance = balanceOf(shown.values, shown.layers, shown.experts);
	}
	heat.draw({...shown, scale: scaleOf()});
	state.drawn++;
	byId('heat').dataset.drawn = String(state.drawn);
	byId('heat').dataset.sequence = String(shown.sequence ?? '');
}

function drawSoon() {
	if (!drawing)
		drawing = requestAnimationFrame(draw);
}

function showFrame(frame) {
	state.shown = frame;
	drawSoon();
}

/* A mark beside each layer that is out of balance. */
function markUneven(shown) {
	const marks = byId('uneven'), height = shown.balance.length;
	const context = marks.getContext('2d');

	marks.height = height;
	marks.style.height = `${byId('heat').offsetHeight}px`;
	context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--warn');
	shown.balance.forEach((layer, row) => {
		if (isUneven(layer, shown.experts, thresholdOf()))
			context.fillRect(0, row, 1, 1);
	});
}

function number(shown) {
	const canvas = byId('heat');

	byId('layer-axis').style.height = `${canvas.offsetHeight}px`;
	drawAxis(byId('layer-axis'), shown.layers, canvas.offsetHeight, 12, 'top');
	drawAxis(byId('expert-axis'), Array.from({length: shown.experts}, (_, expert) => expert),
		canvas.offsetWidth, 28, 'left');
}

/* ---- words and tables ---- */

function describe(shown) {
	const past = state.past === null ? '' : `At ${new Date(shown.time_ms).toLocaleTimeString()}, all channels, to 1/32. `;
	const fold = heat.each > 1 ? ` Each column is the hottest of ${heat.each} experts.` : '';

	return `${past}${plural(shown.layers.length, 'layer')}, ${shown.layers[0]} to ${shown.layers.at(-1)} (down), ` +
		`of ${plural(shown.experts, 'expert')} (across), ` +
		`${plural(shown.rows, 'token')}. ` +
		`Hover, or use the arrow keys.${fold}`;
}

function refresh() {
	const shown = state.shown;

	judgeData(state);
	if (!shown)
		judgeNothing(state.engine);
	if (state.daemon)
		fillDaemon(state.daemon);
	if (!state.connected)
		fadeLosses(performance.now() - state.toldAt);
	else if (state.frame || state.daemon)
		judgeLosses(state.frame?.lost ?? {}, state.daemon, timeline.hasLost(), Number(state.unfollowed ?? 0));
	if (shown?.balance) {
		setNote('heat-says', describe(shown));
		setNote('legend-max', `${asTokens(heat.picture?.max ?? 0)} tokens, ${scaleOf() === 'log' ? 'logarithmic' : 'linear'}`);
		drawLegend(byId('legend'));
		markUneven(shown);
		number(shown);
		judgeBalance(shown.balance, shown.experts, thresholdOf(), shown.gpus);
		fillBalance(shown.balance, shown.experts, thresholdOf());
		fillGpus(shown.gpus, state.past !== null, shown.epochs_differ);
	}
}

let spoken = '', spokenAt = 0;

function speak() {
	const words = ['balance', 'losses', 'data'].map((name) =>
		`${name}: ${verdictWord(`verdict-${name}`)}`).join('; ');

	if (words === spoken || performance.now() - spokenAt < SPOKEN_MS)
		return;
	spoken = words;
	spokenAt = performance.now();
	say(words);
}

/* ---- what comes ---- */

function hear(event, data) {
	state.engine = data.state ?? state.engine;
	state.engineError = data.error ?? '';
	state.unfollowed = data.ends_unfollowed ?? state.unfollowed;
	if (event === 'frame') {
		state.frame = data;
		state.heardAt = performance.now();
		byId('heat').dataset.heard = String(++state.heard);
		if (state.past === null && (!state.paused || !state.shown))
			showFrame(data);
	} else if (event === 'tick' && state.frame) {
		state.frame.age_ms = data.age_ms ?? state.frame.age_ms;
		state.heardAt = performance.now();
	} else if (event === 'history') {
		timeline.take(data);
	} else if (event === 'daemon') {
		state.daemon = data;
		state.toldAt = performance.now();
		lately.take(data.channels);
		offer(byId('channel'), ['', ...data.channels.filter((channel) => channel.state === 'live' && !channel.draft)
			.map((channel) => channel.channel)], undefined);
		byId('channel').options[0].text = 'all together';
	}
}

function tell(what, error) {
	const connected = what === 'open';

	if (connected !== state.connected)
		state.since = performance.now();
	state.connected = connected;
	state.error = error?.message ?? '';
	if (error?.status === 401)
		askForToken();
	else if (error?.status === 404 && byId('channel').value)
		setTimeout(showAllChannels); // it has ended
	if (!connected)
		byId('controls').dataset.broken = 'yes';
	else
		delete byId('controls').dataset.broken;
	judgeData(state);
}

function showAllChannels() {
	byId('channel').value = '';
	connect();
}

function connect() {
	const query = {instance: byId('instance').value, over: byId('over').value,
		interval_ms: calm.matches ? '1000' : '100'};

	if (byId('channel').value)
		query.channel = byId('channel').value;
	setText(byId('where'), query.instance);
	stream?.close();
	state.frame = null;
	stream = new Stream(pathOf('/v1/events', query), hear, tell);
}

/* Of an engine that is not looked at any more nothing stays. */
function forget() {
	state.frame = state.shown = state.daemon = null;
	state.engine = state.engineError = '';
	forgetLosses();
	timeline.clear();
	heat.clear();
	lookup.forget();
	clearCanvas(byId('uneven'));
	setNote('heat-says', '');
	setNote('legend-max', '');
	fillBalance([]);
	fillGpus(null, false);
	fillDaemon({daemon: 'waiting', reason: 'nothing was told of this engine yet', channels: []});
	refresh();
}

async function showMoment(id) {
	state.past = id;
	if (id === null) {
		if (state.frame && !state.paused)
			showFrame(state.frame);
		return;
	}
	try {
		const frame = await askJson(pathOf(`/v1/history/${id}`, {instance: byId('instance').value}));

		if (state.past === id)
			showFrame(frame);
	} catch (error) {
		setNote('time-says', error.message);
	}
}

/* ---- who asks ---- */

function askForToken() {
	const form = byId('token-form');

	setNote('token-said', sessionStorage.getItem(TOKEN) ? 'The server does not know this token.' : '');
	form.hidden = false;
	byId('token').focus();
}

byId('token-form').addEventListener('submit', (event) => {
	event.preventDefault();
	sessionStorage.setItem(TOKEN, byId('token').value);
	byId('token').value = '';
	byId('token-form').hidden = true;
	begin();
});

/* Which engine is shown stands in the address, so that a link leads to it. */
const linked = () => new URL(location).searchParams.get('instance');

function link() {
	const address = new URL(location);

	address.searchParams.set('instance', byId('instance').value);
	history.replaceState(null, '', address);
}

/* The instances first, until they are told; then the stream goes on by itself. */
async function begin() {
	try {
		const {instances} = await askJson('/v1');

		offer(byId('instance'), instances);
		if (instances.includes(linked()))
			byId('instance').value = linked();
		else if (linked() !== null)
			link();
		connect();
	} catch (error) {
		tell('broken', error);
		if (error.status !== 401)
			setTimeout(begin, RETRY_MS.at(-1));
	}
}

/* ---- controls ---- */

byId('controls').addEventListener('submit', (event) => event.preventDefault());
byId('instance').addEventListener('change', () => {
	byId('channel').value = '';
	link();
	forget();
	connect();
});
byId('channel').addEventListener('change', connect);
byId('over').addEventListener('change', connect);
byId('scale').addEventListener('change', drawSoon);
byId('threshold').addEventListener('input', refresh);
byId('reset').addEventListener('click', () => {
	byId('over').value = 'sum'; // it begins with its stream
	connect();
});
byId('pause').addEventListener('click', () => {
	state.paused = !state.paused;
	byId('pause').setAttribute('aria-pressed', String(state.paused));
	setText(byId('pause'), state.paused ? 'Go on' : 'Pause');
	if (!state.paused && state.past === null && state.frame)
		showFrame(state.frame);
	refresh();
});
calm.addEventListener('change', connect);
darkness.addEventListener('change', () => {
	drawSoon();
	timeline.draw();
	lookup.show();
});
window.addEventListener('resize', () => {
	drawSoon();
	timeline.draw();
	lookup.show();
});
setInterval(() => {
	refresh();
	speak();
}, TABLES_MS);
begin();
