// The pipeline: what replicas and shards did in a moment that was recorded, as a staircase.
import { ask, ask_key, drawing, element, refused, tell, write } from './common.js';

const seconds = 0.5;
const idle = 'no request runs';
/// While it follows: a moment every so often, which all consoles share.
const moment = 0.05;
const pause_ms = 2000;
const patience_ms = 40000;
const gutter = 150;
const width = 1120;
const row = 26;
const bar = 19;
const head = 20;
const iterations_shown = 2;

/// Kinds by the beginning of a span's name, else by its own kind: class, words.
const looks = [
  ['slice', 'slice of a replica'], ['attend_previous', 'attention, old positions'], ['attend_new', 'attention, new positions'],
  ['send', 'send'], ['sample', 'sample'], ['wait', 'wait for another device'], ['iteration', 'iteration'], ['other', 'other work'],
];

function look_of(span) {
  return looks.find(([key]) => span.cat === key || span.name.startsWith(key))?.[0] ?? 'other';
}

/// Lanes in the order of their workers, each with its spans in the order of their begin.
function lanes_of(trace) {
  const workers = new Map();
  const lanes = new Map();
  const lane_of = (event) => {
    const key = event.pid * 1e6 + event.tid;
    if (!lanes.has(key)) lanes.set(key, { key, pid: event.pid, name: '', spans: [] });
    return lanes.get(key);
  };
  for (const event of trace.traceEvents) {
    if (event.ph === 'X') lane_of(event).spans.push(event);
    else if (event.name === 'process_name') workers.set(event.pid, event.args.name);
    else if (event.name === 'thread_name') lane_of(event).name = event.args.name.split(',')[0];
  }
  const all = [...lanes.values()].sort((a, b) => a.key - b.key);
  for (const lane of all) {
    lane.worker = workers.get(lane.pid) ?? '';
    lane.spans.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  }
  return all;
}

/// Two iterations in the middle, of the lane that has most; microseconds.
function window_of(lanes) {
  const begins = lanes.map((lane) => lane.spans
    .filter((x) => x.cat === 'compute' && (x.name === 'slice 0' || x.name.startsWith('iteration'))).map((x) => x.ts));
  const most = begins.reduce((a, b) => (b.length > a.length ? b : a), []);
  if (most.length < 2) return { begin: most[0] ?? 0, end: seconds * 1e6 };
  const middle = Math.max(Math.floor((most.length - iterations_shown) / 2), 0);
  return { begin: most[middle], end: most[Math.min(middle + iterations_shown, most.length - 1)] };
}

function step_of(length) {
  const power = 10 ** Math.floor(Math.log10(length / 8));
  return [1, 2, 5, 10].map((x) => x * power).find((x) => x >= length / 8);
}

/// The panel: it follows the service, or shows what a button recorded; the picture, and what is
/// missing from it.
export class pipeline_panel {
  constructor(place, button, follow, words) {
    this.place = place;
    this.button = button;
    this.follow = follow;
    this.words = words;
    this.next = 0; // when it may look again
    button.addEventListener('click', () => this.#record());
  }

  async #record() {
    this.follow.checked = false;
    this.button.disabled = true;
    write(this.words, `recording ${seconds} s…`);
    try {
      this.#draw(await this.#ask(`for=${seconds}`));
    } catch (error) {
      write(this.words, '');
      tell(error.message, true);
    } finally {
      this.button.disabled = false;
    }
  }

  /// Once a second while somebody looks. `busy`: requests run. A moment that cannot be had is left
  /// out: another recording is under way, or a key is wanted.
  async look(busy) {
    if (!this.follow.checked || this.button.disabled || Date.now() < this.next) return;
    if (!busy) return write(this.words, idle);
    if (this.words.textContent === idle) write(this.words, '');
    this.next = Infinity;
    try {
      const reply = await ask(`/admin/trace?for=${moment}&newest=${pause_ms / 1000}`, { body: {}, signal: AbortSignal.timeout(patience_ms) });
      const trace = await reply.json();
      if (this.follow.checked && !this.button.disabled) this.#draw(trace);
    } catch {
      // The next one comes soon.
    } finally {
      this.next = Date.now() + pause_ms;
    }
  }

  async #ask(query) {
    for (;;) {
      try {
        const reply = await ask(`/admin/trace?${query}`, { body: {}, signal: AbortSignal.timeout(patience_ms) });
        return await reply.json();
      } catch (error) {
        if (!(error instanceof refused) || error.status !== 401 || !await ask_key(true)) throw error;
      }
    }
  }

  #draw(trace) {
    const recorded = lanes_of(trace);
    const window = window_of(recorded);
    const lanes = recorded.filter((lane) => lane.spans.some((x) => x.cat !== 'idle' && x.ts < window.end && x.ts + x.dur > window.begin));
    const left = trace.otherData.left_out.map((x) => `${x.seat} is left out: ${x.reason}`).join('; ');
    const span = ((window.end - window.begin) / 1000).toFixed(2);
    write(this.words, [lanes.length === 0 ? 'nothing ran meanwhile' : `${span} ms of ${trace.otherData.seconds} s, ${trace.otherData.time}`, left]
      .filter((x) => x !== '').join('; '));
    if (lanes.length === 0) return this.place.replaceChildren();
    const bottom = head + lanes.length * row;
    const picture = drawing('svg', { viewBox: `0 0 ${gutter + width} ${bottom + 4}`, class: 'picture stairs', role: 'img',
      'aria-label': `What ${lanes.length} streams did within ${span} ms` });
    const x_of = (time) => gutter + ((Math.min(Math.max(time, window.begin), window.end) - window.begin) / (window.end - window.begin)) * width;
    const step = step_of(window.end - window.begin);
    for (let t = window.begin; t <= window.end; t += step)
      picture.append(drawing('path', { class: 'wire', d: `M${x_of(t).toFixed(1)} ${head - 4}V${bottom}` }),
        drawing('text', { class: 'small', x: x_of(t).toFixed(1), y: 11, 'text-anchor': 'middle' }, `${((t - window.begin) / 1000).toFixed(2)} ms`));
    lanes.forEach((lane, i) => this.#draw_lane(picture, lane, head + i * row, window, x_of));
    const seen = new Set(lanes.flatMap((lane) => lane.spans.filter((x) => x.cat !== 'idle').map(look_of)));
    const legend = element('ul', { class: 'legend' }, ...looks.filter(([key]) => seen.has(key))
      .map(([key, words]) => element('li', {}, element('i', { class: `stair ${key}`, 'aria-hidden': 'true' }), words)));
    this.place.replaceChildren(element('div', { class: 'wide' }, picture), legend);
  }

  #draw_lane(picture, lane, top, window, x_of) {
    picture.append(drawing('text', { class: 'seat', x: 0, y: top + 9 }, lane.worker.split(' ')[0]),
      drawing('text', { class: 'small', x: 0, y: top + 20 }, lane.name));
    for (const span of lane.spans) {
      const x = x_of(span.ts);
      const wide = x_of(span.ts + span.dur) - x;
      if (span.cat === 'idle' || span.ts >= window.end || wide < 0.2) continue;
      const number = span.args?.number ?? 0;
      picture.append(drawing('rect', { class: `stair ${look_of(span)}${number % 2 === 1 ? ' odd' : ''}`, x: x.toFixed(2), y: top, width: wide.toFixed(2), height: bar },
        drawing('title', {}, `${span.name}, iteration ${span.args?.iteration ?? '–'}: ${span.dur.toFixed(1)} µs`)));
      if (span.cat === 'compute' && wide > 8 * String(number).length)
        picture.append(drawing('text', { class: 'stair_number', x: (x + wide / 2).toFixed(1), y: top + 13, 'text-anchor': 'middle' }, String(number)));
    }
  }
}
