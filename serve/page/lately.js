// SPDX-License-Identifier: Apache-2.0
// What was lost in the last ten seconds: from how much more each channel has lost since it was
// told of before.

const LATELY_MS = 10000;

class Lately {
	constructor() {
		this.forget();
	}

	forget() {
		this.told = new Map();  // by channel and generation: {at, steps by cause}
		this.losses = [];       // {at, channel, cause, steps}, oldest first
	}

	/* The channels as the daemon has just told of them. */
	take(channels) {
		const at = performance.now();

		for (const channel of channels) {
			const key = `${channel.channel} ${channel.generation}`;
			const before = this.told.get(key);

			this.told.set(key, {at, steps: stepsOf(channel.lost)});
			for (const [cause, steps] of Object.entries(this.moreOf(channel, before, at))) {
				if (steps > 0)
					this.losses.push({at, channel: channel.channel, cause, steps});
			}
		}
	}

	/* Of one that was not told of for longer, nobody here knows when it lost what is more: the
	 * server does, of the newest second. */
	moreOf(channel, before, at) {
		if (!before || at - before.at > LATELY_MS)
			return stepsOf(channel.lost_just_now);
		return Object.fromEntries(Object.entries(stepsOf(channel.lost))
			.map(([cause, steps]) => [cause, steps - (before.steps[cause] ?? 0)]));
	}

	/* Steps by cause; of all channels where none is named. */
	sum(channel) {
		const from = performance.now() - LATELY_MS, sum = {};

		this.losses = this.losses.filter((loss) => loss.at > from);
		for (const loss of this.losses) {
			if (!channel || loss.channel === channel)
				sum[loss.cause] = (sum[loss.cause] ?? 0) + loss.steps;
		}
		return sum;
	}
}

const stepsOf = (lost) =>
	Object.fromEntries(Object.entries(lost).map(([cause, {steps}]) => [cause, Number(steps)]));

const lately = new Lately();
