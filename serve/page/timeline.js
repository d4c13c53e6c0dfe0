// SPDX-License-Identifier: Apache-2.0
// The last minutes: how uneven the worst layer was, and where anything was lost.

const PLOT_HEIGHT = 60;

class Timeline {
	/* show: (id of a frame, or null: now) */
	constructor(show) {
		this.show = show;
		this.frames = [];
		this.at = null; // id of the one that is looked at; null: now
		this.plot = byId('time-plot');
		this.range = byId('time');
		this.range.addEventListener('input', () => this.choose());
		byId('live').addEventListener('click', () => this.back());
	}

	clear() {
		this.frames = [];
		this.back();
	}

	/* {restart, most, frames} */
	take(history) {
		if (history.restart)
			this.frames = [];
		this.frames.push(...history.frames);
		this.frames.splice(0, this.frames.length - history.most);
		this.place();
		this.draw();
	}

	hasLost() {
		return this.frames.some((frame) => frame.lost);
	}

	choose() {
		const last = Number(this.range.value) === this.frames.length - 1;

		this.at = last ? null : this.frames[Number(this.range.value)]?.id ?? null;
		this.place();
		this.draw();
		this.show(this.at);
	}

	back() {
		this.at = null;
		this.place();
		this.draw();
		this.show(null);
	}

	/* The knob stays with the moment that is looked at, which grows older. */
	place() {
		let index = this.frames.length - 1;

		if (this.at !== null)
			index = Math.max(0, this.frames.findIndex((frame) => frame.id >= this.at));
		this.range.max = String(Math.max(0, this.frames.length - 1));
		this.range.value = String(index);
		byId('live').disabled = this.at === null;
		this.say(this.frames[index]);
	}

	say(frame) {
		let words = 'Nothing is kept yet.';

		if (frame)
			words = `${this.at === null ? 'Now. Kept:' : this.words(frame) + ' Kept:'} ` +
				`${asAge(this.frames.at(-1).time_ms - this.frames[0].time_ms)}.`;
		this.range.setAttribute('aria-valuetext',
			frame && this.at !== null ? this.words(frame) : 'now');
		setNote('time-says', words);
	}

	words(frame) {
		const balance = frame.rows ? `worst layer ${frame.worst}: ${asTimes(frame.balance)} its mean`
			: 'nothing ran';

		return `${new Date(frame.time_ms).toLocaleTimeString()}: ${balance}` +
			`${frame.lost ? ', something was lost' : ''}.`;
	}

	draw() {
		const plot = this.plot, width = plot.width = Math.max(1, plot.clientWidth);
		const context = plot.getContext('2d');
		const style = getComputedStyle(document.documentElement);
		const most = this.frames.reduce((max, frame) => Math.max(max, frame.balance), 1);
		const step = width / Math.max(1, this.frames.length);

		context.clearRect(0, 0, width, PLOT_HEIGHT);
		this.frames.forEach((frame, i) => {
			const high = frame.balance / most * (PLOT_HEIGHT - 6);

			context.fillStyle = style.getPropertyValue(frame.id === this.at ? '--text' : '--mark');
			context.fillRect(i * step, PLOT_HEIGHT - high, Math.max(1, step - 0.5), high);
			if (frame.lost) {
				context.fillStyle = style.getPropertyValue('--bad');
				context.fillRect(i * step, 0, Math.max(2, step), 5);
			}
		});
	}
}
