// SPDX-License-Identifier: Apache-2.0
// Whether anything is lost: what somebody has to know at once, as verdicts.js.

const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
const causesOf = (counts) => Object.entries(counts)
	.map(([cause, count]) => `${cause} ${asCount(count)}${CAUSES[cause] ? ` (${CAUSES[cause]})` : ''}`).join(', ');

/* Steps by cause, of all channels, each since its generation began: a daemon that starts again
 * counts anew. */
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
/* Of steps that came, but for some of their layers or rows. */
const partialOf = (channels) =>
	channels.reduce((sum, channel) => sum + Number(channel.steps_partial ?? 0), 0);

const lostEver = (ever) => `${plural(sumOf(ever), 'step')} lost in this generation`;

function everWords(ever, partial) {
	const whole = sumOf(ever) ? [`${lostEver(ever)}: ${causesOf(ever)}`] : [];

	if (partial)
		whole.push(`${plural(partial, 'step')} came with layers or rows missing`);
	return whole.join('; ');
}

/* Mark, word and more. @lost: cells of the window by cause; what this monitor itself did not read
 * is told apart. @before: whether anything is marked as lost in the last minutes, perhaps of ranks
 * and generations that the daemon lists no more. @unfollowed: ends behind which only the engine knows
 * what it ran. */
function lossesOf(lost, daemon, before, unfollowed) {
	const {gap, ...window} = lost;
	const channels = daemon?.channels ?? [];
	const now = lately.sum(), ever = lostSteps(channels), partial = partialOf(channels);
	const own = gap ? ` This monitor skipped ${asCount(gap)} cells.` : '';
	const doubt = channels.some((channel) => channel.crashed) || unfollowed
		? ` An engine ran on without a daemon${unfollowed > 1 ? ` ${unfollowed} times` : ''}: more may be lost.` : '';
	const unbound = unboundOf(channels);

	if (sumOf(window) || sumOf(now))
		return ['bad', 'being lost', (sumOf(now) ? `${lostWords(now)} ${lostEver(ever)}.`
			: `Rows x layers of the window: ${causesOf(window)}.`) + doubt + own];
	if (outOfRange(channels))
		return ['bad', 'ids that are no expert',
			`${asCount(outOfRange(channels))} ids were out of range: the capture is at the wrong place.` + own];
	if (unbound.length)
		return ['bad', 'layers are missing', unbound.join('; ') + '.' + own];
	if (sumOf(ever) || partial)
		return ['warn', doubt ? 'lost, perhaps more' : 'nothing just now',
			`${everWords(ever, partial)}.` + doubt + own];
	if (before)
		return ['warn', doubt ? 'lost, perhaps more' : 'nothing just now',
			'Something was lost, or skipped by this monitor, in the last minutes: the red marks of the time line say when.' + doubt + own];
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

function judgeLosses(lost, daemon, before, unfollowed) {
	const [mark, word, more] = lossesOf(lost, daemon, before, unfollowed);

	told = `${word}. ${more}`;
	judge('verdict-losses', mark, word, more);
}

/* Once the server is gone. @age: of what was told, in ms. */
function fadeLosses(age) {
	if (told)
		judge('verdict-losses', '', 'not known now', `${asAge(age)} ago: ${told}`);
}
