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

/* With few tokens the largest of many experts is far above their mean by chance alone: what an
 * even layer would have as its maximum now and then is no imbalance (Poisson, mean m, n experts:
 * about m + sqrt(2 m ln n)). */
function isUneven(layer, experts, threshold) {
	const chance = layer.mean + 1.5 * Math.sqrt(2 * layer.mean * Math.log(experts)) + 1;

	return layer.ratio >= threshold && layer.max > chance;
}

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
