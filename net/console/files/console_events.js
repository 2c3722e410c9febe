// The log of events, newest first, and what the last loss was and cost.
import { element, write } from './common.js';
import { number, seconds, total } from './console_state.js';

const kept = 300;
const bad = new Set(['worker_lost', 'worker_failing', 'worker_refused', 'worker_exited', 'pool_rolled_back',
  'config_refused', 'service_failed', 'service_restarting', 'kv_move_aborted']);
const warn = new Set(['worker_fenced', 'worker_slow', 'worker_draining', 'epoch_dropped', 'pool_refused', 'pool_short',
  'service_draining', 'worker_left', 'kv_not_moved']);
const good = new Set(['worker_joined', 'worker_reachable', 'worker_recovered', 'pool_resized', 'epoch_taken_over']);

export function tone_of(kind) {
  if (bad.has(kind)) return 'bad';
  if (warn.has(kind)) return 'warn';
  return good.has(kind) ? 'good' : 'plain';
}

function clock_of(time) {
  return time.toLocaleTimeString([], { hour12: false });
}

/// All that are known, and their list on the page.
export class event_list {
  all = []; // the oldest first
  newest = 0;

  constructor(place, only_trouble) {
    this.place = place;
    only_trouble.addEventListener('change', () => place.classList.toggle('trouble', only_trouble.checked));
  }

  /// Takes a page of events, read now (by the time of the service).
  add(page, now) {
    const first = this.newest === 0;
    if (page.newest < this.newest) { // another run of the service
      this.all = [];
      this.place.replaceChildren();
    }
    const known = this.all.length ? this.all[this.all.length - 1].number : 0;
    for (const each of page.events) {
      if (each.number <= known) continue;
      each.at = new Date(each.time);
      each.seen = first ? each.at.getTime() : now; // what was there before is no news
      this.all.push(each);
      this.place.prepend(this.#row(each));
    }
    this.newest = page.newest;
    this.all.splice(0, this.all.length - kept);
    while (this.place.childElementCount > kept) this.place.lastElementChild.remove();
  }

  #row(each) {
    const tone = tone_of(each.kind);
    return element('li', { class: tone },
      element('time', { datetime: each.time, title: each.time, class: 'number muted' }, clock_of(each.at)),
      element('span', { class: `shape ${tone}`, 'aria-hidden': 'true' }),
      element('span', { class: 'kind' }, each.kind.replaceAll('_', ' ')),
      element('span', { class: 'subject mono' }, each.subject),
      element('span', { class: 'text muted' }, words_of(each)));
  }

  /// The last event of a kind about a seat, after a number.
  find(kind, seat, after = 0) {
    return this.all.find((each) => each.kind === kind && each.number > after && each.subject === seat);
  }
}

/// Its values but for the subject: "reason: …, pid: 7".
function words_of(each) {
  return Object.entries(each.fields)
    .filter(([, value]) => String(value) !== each.subject)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(' · ');
}

/// What is known of the last loss: null where no worker was lost.
export function last_loss(list) {
  const lost = list.all.findLast((each) => each.kind === 'worker_lost');
  if (!lost) return null;
  const later = list.all.filter((each) => each.number > lost.number);
  return {
    ...lost,
    seat: lost.subject,
    count: list.all.filter((each) => each.kind === 'worker_lost').length,
    exited: list.all.find((each) => each.kind === 'worker_exited' && each.number > lost.number - 4
      && each.fields.worker === lost.fields.worker),
    opened: later.find((each) => each.kind === 'epoch_opened' || each.kind === 'epoch_taken_over'),
    joined: later.find((each) => each.kind === 'worker_joined' && each.subject === lost.subject),
  };
}

const ways = {
  replica: 'kept their KV',
  parity: 'got their KV from the parity',
  recompute: 'had their KV recomputed',
  replay: 'began again',
};

/// The last reading before a loss: none where the page was opened later.
function before_loss(loss, history) {
  return history.all.findLast((each) => each.at < loss.at.getTime() + history.skew - 200);
}

/// "shard 1 is at attention/4 now", where another seat has the part of the lost one.
function heir_of(loss, history) {
  const part = before_loss(loss, history)?.parts.get(loss.seat);
  if (!part || part === 'spare') return null;
  const heir = [...history.newest.parts].find(([, has]) => has === part)?.[0];
  return heir && heir !== loss.seat ? `${part} is at ${heir} now` : null;
}

/// What requests paid, from the readings around the loss.
function price_of(loss, history) {
  const now = history.newest;
  const before = before_loss(loss, history);
  const was = (name, passes) => (before ? total(before.samples, name, passes) : 0);
  const more = (name, passes) => total(now.samples, name, passes) - was(name, passes);
  const parts = [];
  const lost = more('lamella_requests_lost_total');
  parts.push(lost > 0 ? `${number(lost)} requests lost` : 'no request lost');
  const pauses = more('lamella_recovery_pause_seconds_count');
  if (pauses > 0)
    parts.push(`${number(pauses)} requests got no token for ${seconds(more('lamella_recovery_pause_seconds_sum') / pauses)} on average`);
  for (const [method, words] of Object.entries(ways)) {
    const count = more('lamella_requests_recovered_total', (labels) => labels.method === method);
    if (count > 0) parts.push(`${number(count)} ${words}`);
  }
  const tokens = more('lamella_kv_rebuilt_tokens_total');
  if (tokens > 0) parts.push(`${number(tokens)} tokens computed again`);
  return `${before ? 'What it cost' : 'What all losses since the start cost'}: ${parts.join(', ')}.`;
}

/// The card of the last loss.
export function draw_loss(card, what, cost, loss, history) {
  if (!loss) {
    card.classList.add('quiet');
    write(what, 'No worker was lost, as far as the events go back.');
    write(cost, '');
    return;
  }
  const after = (event) => seconds((event.at - loss.at) / 1000);
  const how = loss.exited ? `its process ended: ${loss.exited.fields.how}` : loss.fields.reason ?? '';
  const steps = [`${loss.seat} was lost at ${clock_of(loss.at)}${how ? ` (${how})` : ''}`];
  steps.push(loss.joined ? `replaced ${after(loss.joined)} later` : 'not replaced yet');
  if (loss.opened)
    steps.push(`service resumed ${after(loss.opened)} after the loss (epoch ${loss.opened.fields.epoch})`);
  const heir = heir_of(loss, history);
  if (heir) steps.push(heir);
  if (loss.count > 1) steps.push(`${loss.count} losses in the log`);
  card.classList.remove('quiet');
  card.classList.toggle('open', !loss.joined);
  write(what, `${steps.join(' · ')}.`);
  write(cost, history.newest ? price_of(loss, history) : '');
}
