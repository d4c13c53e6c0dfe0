// SPDX-License-Identifier: Apache-2.0
// Asking the server, and listening to it. EventSource sends no headers and so bears no token:
// events are read from a fetch.

const TOKEN = 'r3ring-token';
const QUIET_MS = 8000; // a stream that says nothing for so long is dead
const RETRY_MS = [500, 1000, 2000, 4000];

class Refused extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

function ask(path, options = {}) {
	const token = sessionStorage.getItem(TOKEN);
	const headers = token ? {Authorization: `Bearer ${token}`} : {};

	return fetch(path, {...options, headers, cache: 'no-store', credentials: 'omit'});
}

async function refusal(response) {
	const body = await response.json().catch(() => null);

	return new Refused(response.status, body?.error?.message ?? `status ${response.status}`);
}

async function askJson(path) {
	const response = await ask(path);

	if (!response.ok)
		throw await refusal(response);
	return response.json();
}

const pathOf = (path, query) => `${path}?${new URLSearchParams(query)}`;

/* Cuts what comes into events: {event, data}. */
class EventParser {
	constructor(take) {
		this.take = take;
		this.rest = '';
	}

	feed(text) {
		/* The blank line that ends an event may come in two pieces. */
		let from = Math.max(0, this.rest.length - 1), end;

		this.rest += text;
		while ((end = this.rest.indexOf('\n\n', from)) >= 0) {
			this.parse(this.rest.slice(0, end));
			this.rest = this.rest.slice(end + 2);
			from = 0;
		}
	}

	parse(text) {
		let event = 'message', data = '';

		for (const line of text.split('\n')) {
			if (line.startsWith('event: '))
				event = line.slice(7);
			else if (line.startsWith('data: '))
				data += line.slice(6);
		}
		if (data)
			this.take(event, JSON.parse(data));
	}
}

/* Listens to a path until it is closed, and begins anew whenever it breaks. */
class Stream {
	/* hear: (event, data); tell: (state, error) with "open", "broken" */
	constructor(path, hear, tell) {
		this.path = path;
		this.hear = hear;
		this.tell = tell;
		this.tries = 0;
		this.listen();
	}

	close() {
		this.closed = true;
		this.abort?.abort();
		clearTimeout(this.timer);
		clearTimeout(this.watchdog);
	}

	async listen() {
		this.abort = new AbortController();
		try {
			await this.read();
			throw new Error('the server ended the stream');
		} catch (error) {
			this.broke(error);
		}
	}

	broke(error) {
		clearTimeout(this.watchdog);
		if (this.closed)
			return;
		this.tell('broken', error);
		if (error.status === 401)
			return;
		this.timer = setTimeout(() => this.listen(),
			RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)]);
	}

	watch() {
		clearTimeout(this.watchdog);
		this.watchdog = setTimeout(() => this.abort.abort(), QUIET_MS);
	}

	async read() {
		const parser = new EventParser((event, data) => {
			if (!this.closed)
				this.hear(event, data);
		});

		this.watch();
		const response = await ask(this.path, {signal: this.abort.signal});

		if (!response.ok)
			throw await refusal(response);
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();

		this.tries = 0;
		this.tell('open');
		for (;;) {
			const {value, done} = await reader.read();

			if (done || this.closed)
				return;
			this.watch();
			parser.feed(value);
		}
	}
}
