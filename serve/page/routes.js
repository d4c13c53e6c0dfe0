// SPDX-License-Identifier: Apache-2.0
// The routes of a request, position by position: a page of a table, layers across.

const ROWS_SHOWN = 32;
const RUNS_OFFERED = 8;

/* Where the routes of a request are: of one that was offered, by all bytes of its id. */
const routesPath = (id) => `/v1/requests/${encodeURIComponent(id)}/routes`;
const idOf = (path) => path.slice('/v1/requests/'.length, -'/routes'.length);

const nameOf = (layer) => (layer.kind === 'mtp' ? `mtp ${layer.layer}` : String(layer.layer));

/* What was nobody's to have here is no loss. */
const markOf = (cause) => (cause === 'not_fed' || cause === 'external' ? 'elsewhere' : 'missing');

/* Rows that a request's length promises; its last token is fed back to nobody, which is no loss. */
function coverageOf(found) {
	const {not_fed: last = 0, ...missing} = found.coverage.rows_missing;

	return {missing, known: Number(found.coverage.rows_known), rows: found.tokens - Number(last)};
}

class Routes {
	constructor() {
		this.path = null;
		this.asked = 0; // of several answers the one to the newest question is shown
		byId('routes-back').addEventListener('click', () => this.turn(this.found.from - ROWS_SHOWN));
		byId('routes-on').addEventListener('click', () => this.turn(this.found.from + ROWS_SHOWN));
		byId('routes-form').addEventListener('submit', (event) => {
			event.preventDefault();
			this.turn(Number(byId('routes-from').value));
		});
	}

	/* Shows the first rows that there are: what is missing in front of them is told. */
	async look(path, instance) {
		this.path = path;
		this.instance = instance;
		await this.turn(0);
		const first = this.found?.coverage.missing[0];

		if (first?.from === 0 && first.to >= ROWS_SHOWN && first.to < this.found.tokens)
			await this.turn(first.to);
	}

	/* Shows the rows from @from on. */
	async turn(from) {
		const asked = ++this.asked, start = Math.max(0, Math.floor(from) || 0);
		const query = {instance: this.instance, positions: `${start}:${start + ROWS_SHOWN}`};

		try {
			const found = await askJson(pathOf(this.path, query));

			if (asked === this.asked)
				this.show(found);
		} catch (error) {
			if (asked === this.asked)
				this.refuse(error);
		}
	}

	refuse(error) {
		this.forget();
		byId('routes-says').className = error.status === 410 ? 'note warn' : 'note';
		setNote('routes-says', `Its routes: ${error.message}.`);
	}

	forget() {
		this.asked++;
		this.found = null;
		byId('routes-box').hidden = true;
		setNote('routes-says', '');
	}

	show(found) {
		const {missing, known, rows} = coverageOf(found);
		const causes = Object.entries(missing).map(([cause, count]) => `${asCount(count)} ${asCause(cause)}`);
		const before = found.evicted_before ? ' It was evicted once, and went on: what came before is missing.' : '';
		const mixed = found.mixed ? ' Several engines ran a request of this id at a time: these rows are of different runs.' : '';

		this.found = found;
		byId('routes-box').hidden = false;
		byId('routes-says').className = Object.keys(missing).some((cause) => markOf(cause) === 'missing') || found.mixed
			? 'note warn' : 'note';
		setNote('routes-says', `${found.state === 'running' ? 'So far ' : ''}${asCount(known)} of ${plural(rows, 'row')} known` +
			`${causes.length ? `; missing: ${causes.join('; ')}` : ''}.${before}${mixed}`);
		this.offerRuns(found.coverage);
		this.fill(found);
		setNote('routes-shown', found.rows.length
			? `Positions ${found.from} to ${found.to - 1} of ${asCount(found.tokens)}` +
				`${found.prompt_tokens ? `; the prompt is 0 to ${found.prompt_tokens - 1}` : ''}.`
			: `No position ${byId('routes-from').value}: there are ${asCount(found.tokens)}.`);
		byId('routes-from').max = String(Math.max(0, found.tokens - 1));
		byId('routes-from').value = String(found.from);
		byId('routes-back').disabled = found.from === 0;
		byId('routes-on').disabled = found.to >= found.tokens;
	}

	/* A way to where rows are missing. */
	offerRuns(coverage) {
		const runs = coverage.missing.filter((run) => run.cause !== 'not_fed');
		const buttons = runs.slice(0, RUNS_OFFERED).map((run) => {
			const button = document.createElement('button');
			const where = run.to - run.from > 1 ? `${run.from} to ${run.to - 1}` : String(run.from);

			button.type = 'button';
			setText(button, `${run.cause} at ${where}`);
			button.addEventListener('click', () => this.turn(run.from));
			return button;
		});
		const more = runs.length > RUNS_OFFERED ? ' and more' : '';

		byId('routes-runs').replaceChildren(...buttons, more);
	}

	fill(found) {
		const table = byId('routes');
		const head = table.tHead.rows[0];
		const columns = ['Position', 'Weights', ...found.layers.map((layer) => `L${nameOf(layer)}`)];

		head.replaceChildren(...columns.map((name, i) => {
			const cell = document.createElement('th');

			cell.scope = 'col';
			setText(cell, name);
			if (i > 1)
				cell.title = `Layer ${nameOf(found.layers[i - 2])}`;
			return cell;
		}));
		table.tBodies[0].replaceChildren(...found.rows.map((row) => this.rowOf(found, row)));
	}

	rowOf(found, row) {
		const element = document.createElement('tr');
		const position = document.createElement('th');
		const weights = document.createElement('td');

		position.scope = 'row';
		setText(position, String(row.position));
		setText(weights, row.weight_version === null ? '' : String(row.weight_version) +
			(row.attempt ? `, attempt ${row.attempt}` : ''));
		if (typeof row.routes[0] === 'string' && row.routes.every((cell) => cell === row.routes[0]))
			element.append(position, weights, this.wholeOf(row));
		else
			element.append(position, weights, ...row.routes.map((cell, i) => this.cellOf(found, row, cell, i)));
		return element;
	}

	/* Of a row that is missing in all layers for one cause. */
	wholeOf(row) {
		const element = document.createElement('td');

		element.colSpan = row.routes.length;
		setText(element, asCause(row.routes[0]));
		element.className = markOf(row.routes[0]);
		return element;
	}

	cellOf(found, row, cell, i) {
		const element = document.createElement('td');
		const where = `Position ${row.position}, layer ${nameOf(found.layers[i])}: `;
		const known = Array.isArray(cell);

		setText(element, known ? cell.join(' ') : cell);
		element.title = where + (known ? `experts ${cell.join(', ')}; weights ${row.weight_version}`
			: `missing, ${asCause(cell)}`);
		if (!known)
			element.className = markOf(cell);
		return element;
	}
}
