// SPDX-License-Identifier: Apache-2.0
// From a count to a level, and from a level to a colour: 0 is for nothing, and nothing else.

const LEVELS = 255;
const STOPS = {
	light: [[226, 233, 245], [158, 192, 226], [74, 136, 196], [38, 70, 140], [58, 6, 66]],
	dark: [[40, 34, 78], [104, 42, 122], [188, 58, 104], [243, 128, 62], [252, 232, 130]],
};
const NOTHING = {light: [255, 255, 255], dark: [17, 20, 27]};
const darkness = matchMedia('(prefers-color-scheme: dark)');

function blend(stops, part) {
	const place = part * (stops.length - 1);
	const first = Math.min(Math.floor(place), stops.length - 2);

	return stops[first].map((from, i) =>
		Math.round(from + (stops[first + 1][i] - from) * (place - first)));
}

const pack = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;

/* [LEVELS + 1] pixels of the theme that is on. */
function palette() {
	const theme = darkness.matches ? 'dark' : 'light';

	return Uint32Array.from({length: LEVELS + 1}, (none, level) =>
		pack(level ? blend(STOPS[theme], (level - 1) / (LEVELS - 1)) : NOTHING[theme]));
}

let colors = palette();

darkness.addEventListener('change', () => {
	colors = palette();
});

function levelOf(value, max, scale) {
	if (value <= 0)
		return 0;
	if (scale === 'log')
		return Math.ceil(LEVELS * Math.log1p(value) / Math.log1p(max));
	return Math.ceil(LEVELS * value / max);
}

function drawLegend(canvas) {
	const context = canvas.getContext('2d');
	const image = context.createImageData(canvas.width, 1);

	new Uint32Array(image.data.buffer).set(colors);
	context.putImageData(image, 0, 0);
}
