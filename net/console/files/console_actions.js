// What an operator can do: sizes of pools, drains, reload, and harm where the service allows it.
import { ask, ask_key, by_id, element, refused, tell, write } from './common.js';
import { bytes } from './console_state.js';
import { links_of, round_trip, state_of } from './console_topology.js';

/// Whether the reader means it.
function sure(title, text, word) {
  const dialog = by_id('sure');
  write(by_id('sure_title'), title);
  write(by_id('sure_text'), text);
  write(by_id('sure_yes'), word);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/// Sends an order; asks for the key where the listener wants one.
async function order(path, body, words) {
  for (;;) {
    try {
      const reply = await ask(path, { body, signal: AbortSignal.timeout(20000) });
      tell(words(JSON.parse(await reply.text())));
      return;
    } catch (error) {
      if (error instanceof refused && error.status === 401 && await ask_key(true)) continue;
      tell(error.message, true);
      return;
    }
  }
}

/// The table of pools.
export class pool_table {
  #rows = new Map();

  constructor(place) {
    this.place = place;
  }

  draw(changes) {
    for (const change of changes) {
      if (!this.#rows.has(change.pool)) this.#add(change);
      const row = this.#rows.get(change.pool);
      write(row.members, String(change.state === 'done' || change.state === 'none' ? change.members : change.from));
      write(row.state, change.state === 'none' ? 'none yet'
        : `${change.state}: ${change.from} → ${change.members}${change.reason ? ` (${change.reason})` : ''}`);
    }
  }

  #add({ pool, members }) {
    const row = { members: element('td', { class: 'number' }), state: element('td', { class: 'muted' }) };
    const wish = element('input', { type: 'number', min: 0, max: 9999, value: members, class: 'number', 'aria-label': `Members of ${pool}` });
    const scale = async () => {
      const wanted = Number(wish.value);
      if (!Number.isInteger(wanted) || wanted < 0) return tell('The number of members is a whole number.', true);
      if (!await sure(`Scale ${pool} to ${wanted}?`, 'Streams go on while the pool changes.', `Scale to ${wanted}`)) return;
      await order('/admin/scale', { pool, members: wanted }, (x) => `${pool}: ${x.state}, ${x.from} → ${x.members}`);
    };
    this.place.append(element('tr', {}, element('th', { scope: 'row' }, pool), row.members, row.state,
      element('td', {}, element('span', { class: 'actions' }, wish, element('button', { type: 'button', onclick: scale }, 'Scale')))));
    this.#rows.set(pool, row);
  }
}

export async function drain_service() {
  if (await sure('Drain the service and end it?', 'It takes no new request, finishes those it has, and ends. '
    + 'This page ends with it.', 'Drain and end it'))
    await order('/admin/drain', {}, () => 'The service drains.');
}

export function reload_configuration() {
  return order('/admin/reload', {}, () => 'The configuration was read again.');
}

const harms = ['kill', 'stop', 'pause', 'slow', 'partition', 'isolate', 'corrupt', 'drop', 'oom'];

/// The panel about one worker.
export class worker_detail {
  #seat = null;
  #before = null;

  constructor(place) {
    this.place = place;
    this.show(null);
  }

  show(seat) {
    this.#seat = seat;
    this.#before = null;
    if (seat === null) {
      this.place.replaceChildren(element('p', { class: 'muted' }, 'Choose a worker to see its links and what can be done with it.'));
      return;
    }
    this.facts = element('dl');
    this.links = element('tbody');
    this.tools = element('p', { class: 'actions' });
    this.place.replaceChildren(element('h3', { class: 'mono' }, seat), this.facts,
      element('table', {}, element('thead', {}, element('tr', {}, ...['Link to', 'Tier', 'Round trip', 'Sent']
        .map((word) => element('th', { scope: 'col' }, word)))), this.links), this.tools);
  }

  draw(page, events, now) {
    if (this.#seat === null || !page.status) return;
    const worker = [...page.status.workers, ...page.status.missing].find((each) => each.seat === this.#seat);
    if (!worker) return this.show(null);
    const facts = [['state', state_of(worker, events, now).word], ['part', worker.part || '–'],
      ['worker', worker.name ?? 'nobody'], ['life', String(worker.incarnation)],
      ['host', worker.host ? `${worker.host}, pid ${worker.pid}` : '–'], ['device', worker.device ?? '–']];
    if (worker.trouble) facts.push(['trouble', worker.trouble]);
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
    this.#draw_links(worker, links_of(page.status.workers), now);
    if (!this.tools.firstChild && worker.name) this.tools.append(...this.#buttons(worker, page));
  }

  #draw_links(worker, links, now) {
    const sent = new Map((worker.peers ?? []).map((peer) => [peer.seat, peer.bytes]));
    const rate = (peer) => {
      const was = this.#before?.sent.get(peer.seat);
      if (was === undefined || peer.bytes < was || now <= this.#before.at) return bytes(peer.bytes);
      return `${bytes(((peer.bytes - was) * 1000) / (now - this.#before.at))}/s`;
    };
    this.links.replaceChildren(...(worker.peers ?? []).map((peer) => element('tr', {},
      element('td', { class: 'mono' }, peer.seat), element('td', {}, peer.transport || 'none'),
      element('td', { class: 'number' }, peer.rtt_us > 0 ? round_trip(links.get([worker.seat, peer.seat].sort().join(' '))?.rtt_us ?? peer.rtt_us) : '–'),
      element('td', { class: 'number' }, rate(peer)))));
    if (!this.#before || now - this.#before.at > 500) this.#before = { at: now, sent };
  }

  #buttons(worker, page) {
    const drain = async () => {
      if (await sure(`Drain ${worker.name}?`, 'Its part goes to another worker, without a gap, and it leaves.', 'Drain it'))
        await order('/admin/drain-worker', { worker: worker.name }, () => `${worker.name} leaves.`);
    };
    const found = [element('button', { type: 'button', onclick: drain }, 'Drain')];
    if (!page.chaos) return found;
    const harm = element('select', { 'aria-label': 'Harm' }, ...harms.map((each) => element('option', {}, each)));
    const injure = async () => {
      if (await sure(`${harm.value} ${worker.seat}?`, 'Chaos is enabled here: this harms the worker for real.', 'Do it'))
        await order('/admin/chaos', { action: harm.value, target: worker.seat, duration_ms: 1000 }, (x) => `${harm.value}: ${x.injured}`);
    };
    return [...found, harm, element('button', { type: 'button', class: 'danger', onclick: injure }, 'Injure')];
  }
}
