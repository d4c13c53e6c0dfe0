// SPDX-License-Identifier: Apache-2.0
// Numbers beside a heatmap: as many as there is room for, each in the middle of its row or column.

/* @numbers, even spread over @length pixels, at least @apart from each other; @place: the side
 * that they are measured from. */
function drawAxis(axis, numbers, length, apart, place) {
	const each = length / numbers.length;
	let step = 1;

	while (step * each < apart && step < numbers.length)
		step *= 2;
	const drawn = `${numbers[0]} ${numbers.at(-1)} ${numbers.length} ${length}`;

	if (axis.dataset.drawn === drawn)
		return;
	axis.dataset.drawn = drawn;
	axis.replaceChildren(...numbers.flatMap((number, index) => {
		if (index % step)
			return [];
		const mark = document.createElement('span');

		setText(mark, String(number));
		mark.style[place] = `${(index + 0.5) * each}px`;
		return [mark];
	}));
}
