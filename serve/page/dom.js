// SPDX-License-Identifier: Apache-2.0
// What is shown is text, whoever it came from: nothing here makes elements of strings.

const byId = (id) => document.getElementById(id);

/* Characters that are not seen, or reorder what stands beside them, in names that users give: told
 * by their numbers, as the tools' text does (channel/utf8.c). Not so marks that begin and end what
 * stands apart: isolated() makes them; nor what some scripts and pictures need. */
const UNSEEN = /(?![\u2068\u2069\u200c\u200d\ufe00-\ufe0f])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;
const ISOLATES = /[\u2068\u2069]/g;

const numberOf = (character) =>
	`\u27e8U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
const visible = (text) => text.replace(UNSEEN, numberOf);

/* A user's text within a sentence: letters that are written from the right leave the rest in its
 * order. */
function isolated(text) {
	const inner = visible(text).replace(ISOLATES, numberOf);

	return /^[ -~]*$/.test(inner) ? inner : `\u2068${inner}\u2069`;
}

function setText(element, shown) {
	const text = visible(shown);

	if (element.textContent !== text)
		element.textContent = text;
}

function setNote(id, text) {
	setText(byId(id), text);
}

function clearCanvas(canvas) {
	canvas.getContext('2d').clearRect(0, 0, canvas.width, canvas.height);
}

/* Makes the body of a table say @rows: lists of texts, or {text, part} for one with a bar of
 * so many per cent; a row may have a property `mark`, a class. Cells that stay are left alone,
 * so that what somebody has selected or is being read stays. */
function fillTable(id, rows, whenEmpty) {
	const body = byId(id).tBodies[0];
	const columns = byId(id).tHead.rows[0].cells.length;

	if (!rows.length)
		rows = [[whenEmpty]];
	while (body.rows.length > rows.length)
		body.deleteRow(-1);
	rows.forEach((cells, i) => {
		const row = body.rows[i] || body.insertRow();

		row.className = cells.mark || '';
		while (row.cells.length > cells.length)
			row.deleteCell(-1);
		cells.forEach((cell, column) => fillCell(row, column, cell));
		row.cells[0].colSpan = cells.length === 1 ? columns : 1;
	});
}

function fillCell(row, column, cell) {
	const element = row.cells[column] || row.insertCell();
	const bar = typeof cell === 'object';

	setText(element, bar ? cell.text : cell);
	element.classList.toggle('bar', bar);
	if (bar)
		element.style.setProperty('--part', String(Math.min(100, cell.part)));
}

/* Makes a select offer @values, and keeps what was chosen where that is still there. */
function offer(select, values, words) {
	const same = select.options.length === values.length &&
		values.every((value, i) => select.options[i].value === value);

	if (same)
		return;
	const chosen = select.value;

	select.replaceChildren(...values.map((value, i) => new Option(visible(words ? words[i] : value), value)));
	if (values.includes(chosen))
		select.value = chosen;
}

/* ---- numbers as people read them ---- */

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const tenth = new Intl.NumberFormat('en', {maximumFractionDigits: 1});
const hundredth = new Intl.NumberFormat('en', {minimumFractionDigits: 2, maximumFractionDigits: 2});

/* Counts beyond what numbers hold exactly come as text. */
const asCount = (value) => whole.format(BigInt(value));
const asTokens = (value) => (Number.isInteger(value) ? whole : tenth).format(value);
const asShare = (part, sum) => (sum > 0 ? hundredth.format(100 * part / sum) + ' %' : 'none');
const asTimes = (ratio) => hundredth.format(ratio) + ' \u00d7';
const plural = (count, word) => `${whole.format(count)} ${word}${count === 1 ? '' : 's'}`;

/* Bytes, by the thousand, so that little is not nothing. */
function asBytes(count) {
	const bytes = Number(count);

	if (bytes >= 1e6)
		return `${tenth.format(bytes / 1e6)} MB`;
	return bytes >= 1e3 ? `${tenth.format(bytes / 1e3)} KB` : `${whole.format(bytes)} B`;
}

function asAge(ms) {
	if (ms < 1000)
		return `${Math.round(ms / 100) / 10} s`;
	if (ms < 120000)
		return `${Math.round(ms / 1000)} s`;
	return `${Math.round(ms / 60000)} min`;
}

/* "0 to 9, 21": whole numbers, in whatever order; of many runs the first eight. */
function asRuns(numbers) {
	const runs = [];

	for (const number of [...numbers].sort((a, b) => a - b)) {
		if (runs.at(-1)?.at(-1) === number - 1)
			runs.at(-1).push(number);
		else
			runs.push([number]);
	}
	const words = runs.slice(0, 8).map((run) =>
		(run.length > 1 ? `${run[0]} to ${run.at(-1)}` : `${run[0]}`));
	const left = runs.slice(8).flat().length;

	return words.join(', ') + (left ? ` and ${left} more` : '');
}
