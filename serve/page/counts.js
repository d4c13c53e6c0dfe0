// SPDX-License-Identifier: Apache-2.0
// Counts as they are sent: bytes in base64, in units (docs/API.md).

/* A byte that stands for a count: small ones exactly, larger ones to 1/32 of themselves. */
const CODE8 = Float64Array.from({length: 256}, (none, code) =>
	code < 32 ? code : (16 + code % 16) * 2 ** (Math.floor(code / 16) - 1));

function bytesOf(text) {
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);

	for (let i = 0; i < bytes.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

/* [layers][experts], row by row. */
function countsOf(frame) {
	const bytes = bytesOf(frame.counts);
	const values = new Float64Array(frame.layers.length * frame.experts);

	for (let i = 0; i < values.length; i++) {
		if (frame.code === 'u16')
			values[i] = (bytes[2 * i] | bytes[2 * i + 1] << 8) * frame.unit;
		else
			values[i] = (frame.code === 'm8' ? CODE8[bytes[i]] : bytes[i]) * frame.unit;
	}
	return values;
}

/* ---- how even they are ---- */

const ONE_IN = 20; // cases that may be beyond chance
const BISECTIONS = 40;

/* With few tokens the largest of many experts is far above their mean by chance alone. By the rule
 * of monitor/balance.h: the r with r ln r - r + 1 = ln(20 experts) / mean. */
function chanceOf(mean, experts) {
	const excess = (ratio) => ratio * Math.log(ratio) - ratio + 1;
	const wanted = Math.log(ONE_IN * experts) / mean;
	let low = 1, high = 2;

	if (!(mean > 0))
		return 0;
	while (excess(high) < wanted)
		high *= 2;
	for (let i = 0; i < BISECTIONS; i++) {
		const middle = (low + high) / 2;

		if (excess(middle) < wanted)
			low = middle;
		else
			high = middle;
	}
	return high;
}

const isUneven = (layer, experts, threshold) =>
	layer.ratio > threshold && layer.ratio > chanceOf(layer.mean, experts);

function balanceOf(values, layers, experts) {
	return layers.map((number, i) => {
		let sum = 0, max = 0, most = 0, idle = 0;

		for (let expert = 0; expert < experts; expert++) {
			const value = values[i * experts + expert];

			sum += value;
			idle += value === 0;
			if (value > max) {
				max = value;
				most = expert;
			}
		}
		return {number, sum, max, most, idle, mean: sum / experts, ratio: sum ? max * experts / sum : 0};
	});
}
