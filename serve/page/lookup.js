// SPDX-License-Identifier: Apache-2.0
// A request: which there are, which experts its tokens went to, and how often, layer by layer.

const MOST_EXPERTS = 8; // that a layer's line names

class Lookup {
	constructor(say, scale) {
		this.scale = scale;
		this.map = new Heatmap(byId('request-box'), say);
		this.routes = new Routes();
		this.offered = new Map(); // id as it is written: path of its routes
		byId('request-form').addEventListener('submit', (event) => {
			event.preventDefault();
			this.find();
		});
		byId('request').addEventListener('focus', () => this.offer());
		byId('request-phase').addEventListener('change', () => this.show());
	}

	/* Who can be asked for, and how much of them is kept. */
	async offer() {
		try {
			const {requests, kept} = await askJson(pathOf('/v1/requests', {instance: byId('instance').value}));

			this.offered = new Map(requests.map((one) => [one.request, one.routes]));
			byId('requests').replaceChildren(...requests.map((one) =>
				new Option(`${isolated(one.request)}, ${one.state}`, one.request)));
			setNote('request-kept', kept.length ? this.keptWords(kept[0]) : 'Routes are not kept: --routes-memory is 0.');
		} catch (error) {
			setNote('request-kept', error.message);
		}
	}

	keptWords(kept) {
		const gone = [[kept.evicted, 'evicted while they ran'], [kept.forgotten, 'forgotten once they had ended']]
			.filter(([count]) => Number(count)).map(([count, how]) => `${asCount(count)} ${how}`);

		return `Routes of ${asCount(kept.running)} running and ${asCount(kept.ended)} ended requests are kept, in ` +
			`${asBytes(kept.bytes)} of ${asBytes(kept.bytes_max)}` +
			`${gone.length ? `; for want of room ${gone.join(', ')}` : ''}.` +
			`${Number(kept.gaps) ? ` Not read in time: ${asCount(kept.gaps)} times.` : ''}`;
	}

	async find() {
		const id = byId('request').value;
		const path = this.offered.get(id) ?? routesPath(id.toWellFormed?.() ?? id);

		this.found = null;
		this.routes.look(path, byId('instance').value);
		try {
			this.found = await askJson(`/v1/signature?request=${idOf(path)}`);
		} catch (error) {
			setNote('request-says', `${isolated(id)}: ${error.message}`);
		}
		this.show();
		this.offer();
	}

	/* Of an engine that is not looked at any more nothing stays. */
	forget() {
		this.found = null;
		this.offered = new Map();
		byId('requests').replaceChildren();
		setNote('request-kept', '');
		setNote('request-says', '');
		this.routes.forget();
		this.show();
	}

	show() {
		byId('request-counts').hidden = !this.found;
		if (!this.found)
			return;
		const {found} = this, phase = byId('request-phase').value;
		const layers = found.layers.map((layer) => layer.layer);
		const values = Float64Array.from(found.layers.flatMap((layer) => phase === 'both'
			? layer.prefill.map((count, i) => count + layer.decode[i]) : layer[phase]));
		const balance = balanceOf(values, layers, found.experts);

		setNote('request-says', `${isolated(found.request)} on ${found.instance}, ${found.ended ? 'ended' : 'running'}.`);
		setNote('request-counted', `Since it was first seen here: ${asCount(found.prefill_rows)} rows of prefill, ` +
			`${asCount(found.decode_rows)} of decode; ${asCount(found.inherited_rows)} from a prefix cache, ` +
			`${asCount(found.missing_rows)} missing.`);
		this.map.draw({values, layers, experts: found.experts, balance, scale: this.scale()});
		fillTable('request-layers', layers.map((layer, i) =>
			[String(layer), this.hottest(values.subarray(i * found.experts, (i + 1) * found.experts))]));
	}

	hottest(counts) {
		const order = [...counts.keys()].filter((expert) => counts[expert] > 0)
			.sort((a, b) => counts[b] - counts[a] || a - b);
		const named = order.slice(0, MOST_EXPERTS).map((expert) => `${expert}: ${asTokens(counts[expert])}`);

		return named.join(', ') + (order.length > MOST_EXPERTS ? `, and ${order.length - MOST_EXPERTS} more` : '') ||
			'none';
	}
}
