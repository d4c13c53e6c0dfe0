// SPDX-License-Identifier: Apache-2.0
// Which experts a request's tokens went to.

const MOST_EXPERTS = 8; // that a layer's line names

class Lookup {
	constructor(say, scale) {
		this.scale = scale;
		this.map = new Heatmap(byId('request-box'), say);
		byId('request-form').addEventListener('submit', (event) => {
			event.preventDefault();
			this.find();
		});
		byId('request-phase').addEventListener('change', () => this.show());
	}

	async find() {
		const id = byId('request').value;

		this.found = null;
		try {
			this.found = await askJson(pathOf('/v1/signature', {request: id}));
		} catch (error) {
			setNote('request-says', `${id}: ${error.message}`);
		}
		this.show();
	}

	show() {
		byId('request-box').hidden = byId('request-layers').hidden = !this.found;
		if (!this.found)
			return;
		const {found} = this, phase = byId('request-phase').value;
		const layers = found.layers.map((layer) => layer.layer);
		const values = Float64Array.from(found.layers.flatMap((layer) => phase === 'both'
			? layer.prefill.map((count, i) => count + layer.decode[i]) : layer[phase]));
		const balance = balanceOf(values, layers, found.experts);

		setNote('request-says', `${found.request} on ${found.instance}, ${found.ended ? 'ended' : 'running'}: ` +
			`${asCount(found.prefill_rows)} rows of prefill, ${asCount(found.decode_rows)} of decode; ` +
			`${asCount(found.inherited_rows)} from a prefix cache, ${asCount(found.missing_rows)} missing.`);
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
