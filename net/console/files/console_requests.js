// The requests that have not ended, and what the planner would be asked about them.
import { element, write } from './common.js';
import { number, seconds, total } from './console_state.js';

const tones = { recovering: 'bad', stalled: 'warn', waiting: 'warn' };
/// The planner is asked about the load of so many seconds, of a third of them and so many requests at
/// least: in a short time what ends is not what began.
const load_seconds = 60;
const load_requests = 5;

/// A row for each request that the service lists: those that pause first, then the oldest.
export class request_table {
  #rows = new Map();

  constructor(place, words) {
    this.place = place;
    this.words = words;
  }

  draw(page) {
    const shown = new Set();
    for (const each of page.requests) {
      let row = this.#rows.get(each.number);
      if (!row) this.#rows.set(each.number, row = this.#new_row(each));
      this.#fill(row, each);
      this.place.append(row.whole); // in the order of the list
      shown.add(each.number);
    }
    for (const [which, row] of this.#rows)
      if (!shown.has(which)) {
        row.whole.remove();
        this.#rows.delete(which);
      }
    write(this.words, this.#told(page));
  }

  #told(page) {
    if (page.all_requests === 0) return 'none';
    const states = new Map();
    for (const each of page.requests) states.set(each.state, (states.get(each.state) ?? 0) + 1);
    const counts = [...states].map(([state, count]) => `${count} ${state}`).join(', ');
    return page.all_requests > page.requests.length
      ? `${page.all_requests}, of which ${page.requests.length} are listed: ${counts}` : counts;
  }

  #new_row(each) {
    const cell = () => element('td', { class: 'number' });
    const row = { shape: element('span', { class: 'shape', 'aria-hidden': 'true' }), word: element('span'),
      age: cell(), pause: cell(), prompt: cell(), answer: cell(), recoveries: cell() };
    row.whole = element('tr', { 'data-request': each.number }, element('th', { scope: 'row', class: 'mono' }, each.id),
      element('td', { class: 'mono' }, each.route), element('td', {}, row.shape, ' ', row.word),
      row.age, row.pause, row.prompt, row.answer, row.recoveries);
    return row;
  }

  #fill(row, each) {
    row.shape.className = `shape ${tones[each.state] ?? 'good'}`;
    write(row.word, each.state);
    write(row.age, seconds(each.seconds));
    write(row.pause, each.paused_seconds > 0 ? seconds(each.paused_seconds) : '–');
    write(row.prompt, number(each.prompt_tokens));
    write(row.answer, number(each.generated_tokens));
    write(row.recoveries, String(each.recoveries));
  }
}

/// The planner runs apart from the service and needs a profile of the machine: how to ask it about
/// the load of the last minute.
export function draw_advice(place, history) {
  const now = history.newest;
  const from = history.since(now.at - load_seconds * 1000);
  const grown = (name) => total(now.samples, name) - total(from.samples, name);
  // Those whose prompts were computed: where requests pile up, few have ended.
  const prompts = (reading) => reading.first[reading.first.length - 1]?.[1] ?? 0;
  const requests = prompts(now) - prompts(from);
  const passed = (now.at - from.at) / 1000;
  if (requests < load_requests || passed < load_seconds / 3) return write(place, '');
  const each = (name) => Math.max(1, Math.round(grown(name) / requests));
  const lengths = `${each('vllm:prompt_tokens_total')},${each('vllm:generation_tokens_total')}`;
  return write(place, 'What would serve the load of the last minute, once lamella bench decode --profile profile.csv '
    + `has measured this machine: lamella plan --profile profile.csv --rate ${(requests / passed).toPrecision(2)} `
    + `--trace uniform:1000,${lengths}`);
}
