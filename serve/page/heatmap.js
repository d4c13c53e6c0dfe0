// SPDX-License-Identifier: Apache-2.0
// Layers x experts on a canvas, a pixel each; where there are more experts than pixels a column
// stands for several, and shows the hottest of them.

class Heatmap {
	constructor(box, say) {
		this.canvas = box.querySelector('canvas');
		this.cell = box.querySelector('.cell');
		this.tip = box.querySelector('.tip');
		this.say = say;
		this.at = null; // {row, column}
		this.picture = null;
		this.canvas.addEventListener('pointermove', (event) => this.point(event));
		this.canvas.addEventListener('pointerdown', (event) => this.point(event));
		this.canvas.addEventListener('pointerleave', () => this.leave());
		this.canvas.addEventListener('blur', () => this.leave());
		this.canvas.addEventListener('keydown', (event) => this.key(event));
	}

	/* {values, layers, experts, balance, scale} */
	draw(picture) {
		const {values, layers, experts} = picture;

		this.picture = picture;
		this.each = Math.ceil(experts / Math.max(1, this.pixels()));
		this.columns = Math.ceil(experts / this.each);
		picture.max = picture.balance.reduce((max, layer) => Math.max(max, layer.max), 0);
		this.resize(this.columns, layers.length);
		this.paint(values, experts, picture.max, picture.scale);
		this.show();
	}

	clear() {
		this.picture = null;
		clearCanvas(this.canvas);
		this.leave();
	}

	pixels() {
		return Math.floor(this.canvas.clientWidth * (window.devicePixelRatio || 1)) || 1;
	}

	resize(width, height) {
		if (this.canvas.width === width && this.canvas.height === height)
			return;
		this.canvas.width = width;
		this.canvas.height = height;
		this.canvas.style.height = `${Math.max(height * 4, Math.min(height * 14, 420))}px`;
		this.image = this.canvas.getContext('2d').createImageData(width, height);
		this.pixel = new Uint32Array(this.image.data.buffer);
		this.at = null;
	}

	paint(values, experts, max, scale) {
		const {each, columns, pixel} = this;

		for (let row = 0, to = 0; row < this.canvas.height; row++) {
			for (let column = 0; column < columns; column++) {
				const end = Math.min((column + 1) * each, experts);
				let value = 0;

				for (let expert = column * each; expert < end; expert++)
					value = Math.max(value, values[row * experts + expert]);
				pixel[to++] = colors[levelOf(value, max, scale)];
			}
		}
		this.canvas.getContext('2d').putImageData(this.image, 0, 0);
	}

	/* ---- one cell ---- */

	/* What the cell says; of several experts the hottest. */
	words() {
		const {values, layers, experts, balance} = this.picture;
		const {row, column} = this.at;
		const first = column * this.each, end = Math.min(first + this.each, experts);
		const layer = balance[row];
		let hottest = first;

		for (let expert = first; expert < end; expert++) {
			if (values[row * experts + expert] > values[row * experts + hottest])
				hottest = expert;
		}
		const value = values[row * experts + hottest];
		const of = this.each > 1 ? ` (hottest of ${first} to ${end - 1})` : '';

		return `Layer ${layers[row]}, expert ${hottest}${of}: ${asTokens(value)} tokens, ` +
			`${asShare(value, layer.sum)} of the layer, ` +
			`${asTimes(layer.mean ? value / layer.mean : 0)} its mean`;
	}

	show() {
		this.tip.hidden = this.cell.hidden = !this.at;
		if (!this.at)
			return;
		const width = this.canvas.clientWidth / this.columns;
		const height = this.canvas.clientHeight / this.canvas.height;
		const left = this.at.column * width, top = this.at.row * height;

		setText(this.tip, this.words());
		Object.assign(this.cell.style, {left: `${left}px`, top: `${top}px`,
			width: `${Math.max(width, 6)}px`, height: `${Math.max(height, 6)}px`});
		this.tip.style.top = `${top + height + 6}px`;
		this.tip.style.left =
			`${Math.max(0, Math.min(left, this.canvas.clientWidth - this.tip.offsetWidth))}px`;
	}

	leave() {
		this.at = null;
		this.show();
	}

	point(event) {
		const bounds = this.canvas.getBoundingClientRect();
		const part = (value, size, cells) =>
			Math.max(0, Math.min(cells - 1, Math.floor(value / size * cells)));

		if (!this.picture)
			return;
		this.at = {
			row: part(event.clientY - bounds.top, bounds.height, this.canvas.height),
			column: part(event.clientX - bounds.left, bounds.width, this.columns),
		};
		this.show();
	}

	key(event) {
		const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
			PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -Infinity], End: [0, Infinity]};
		const move = moves[event.key];
		const within = (value, cells) => Math.max(0, Math.min(cells - 1, value));

		if (event.key === 'Escape')
			this.leave();
		if (!move || !this.picture)
			return;
		event.preventDefault();
		const from = this.at || {row: 0, column: 0};

		this.at = this.at ? {row: within(from.row + move[0], this.canvas.height),
			column: within(from.column + move[1], this.columns)} : from;
		this.show();
		this.say(this.words());
	}
}
