// What the console knows: samples as numbers, their history of five minutes, and percentiles.

export const history_seconds = 300;
/// Percentiles are of what was observed in so many seconds.
const window_seconds = 30;

const line_of = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label_of = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/// Text samples by name, each with its labels and its value.
export function read_samples(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const parts = line_of.exec(line);
    if (!parts) continue;
    const labels = {};
    for (const [, name, value] of (parts[2] ?? '').matchAll(label_of)) labels[name] = value;
    if (!found.has(parts[1])) found.set(parts[1], []);
    found.get(parts[1]).push({ labels, value: Number(parts[3]) });
  }
  return found;
}

/// All series of a name together, or those that pass.
export function total(samples, name, passes = () => true) {
  let sum = 0;
  for (const each of samples.get(name) ?? []) if (passes(each.labels)) sum += each.value;
  return sum;
}

/// The cumulative counts of a histogram by upper bound, in order.
function buckets(samples, name) {
  const sums = new Map();
  for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) {
    const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
    sums.set(bound, (sums.get(bound) ?? 0) + value);
  }
  return [...sums].sort((a, b) => a[0] - b[0]);
}

/// The quantile of what came between two readings of a histogram: null where nothing did.
/// Infinity: beyond the last bound.
export function quantile(from, to, part) {
  const counts = to.map(([bound, count], i) => [bound, count - (from[i]?.[1] ?? 0)]);
  const all = counts.length ? counts[counts.length - 1][1] : 0;
  if (all <= 0) return null;
  let below = 0;
  let lower = 0;
  for (const [bound, count] of counts) {
    if (count >= part * all) {
      if (bound === Infinity) return Infinity;
      return lower + (bound - lower) * ((part * all - below) / (count - below));
    }
    below = count;
    lower = bound;
  }
  return Infinity;
}

function slots_of(status) {
  const sum = { free: 0, used: 0, cached: 0, parity: 0, orphan: 0, total: 0 };
  for (const pool of status?.pools ?? [])
    for (const name of Object.keys(sum)) sum[name] += pool.slots[name] ?? 0;
  return sum;
}

/// Readings, the oldest first; one a second, and none older than `history_seconds`.
export class readings {
  #all = [];

  /// Adds a page of the service; returns what became of it.
  add(page, at) {
    const samples = read_samples(page.samples);
    const last = this.#all[this.#all.length - 1];
    const now = {
      at,
      samples,
      slots: slots_of(page.status),
      requests: page.status?.requests ?? null,
      parts: new Map((page.status?.workers ?? []).map((each) => [each.seat, each.part])),
      generated: total(samples, 'vllm:generation_tokens_total'),
      prompted: total(samples, 'vllm:prompt_tokens_total'),
      first: buckets(samples, 'vllm:time_to_first_token_seconds'),
      between: buckets(samples, 'vllm:inter_token_latency_seconds'),
    };
    if (last && now.generated < last.generated) this.#all = []; // another run of the service
    this.#all.push(now);
    while (this.#all[0].at < at - history_seconds * 1000) this.#all.shift();
    this.#derive(now);
    return now;
  }

  #derive(now) {
    const before = this.#all[this.#all.length - 2];
    const seconds = before ? (now.at - before.at) / 1000 : 0;
    const rate = (name) => (seconds > 0 ? (now[name] - before[name]) / seconds : null);
    now.generated_rate = rate('generated');
    now.prompted_rate = rate('prompted');
    const from = this.since(now.at - window_seconds * 1000);
    for (const name of ['first', 'between'])
      for (const part of [50, 95, 99])
        now[`${name}_${part}`] = from === now ? null : quantile(from[name], now[name], part / 100);
  }

  /// The first reading that is not older than that.
  since(at) {
    return this.#all.find((each) => each.at >= at) ?? this.#all[0];
  }

  get all() { return this.#all; }
  get newest() { return this.#all[this.#all.length - 1]; }
}

// --- numbers for people

export function number(x) {
  if (x == null) return '–';
  if (x >= 1e6) return `${(x / 1e6).toFixed(x >= 1e7 ? 0 : 1)} M`;
  if (x >= 1e4) return `${(x / 1e3).toFixed(0)} k`;
  return x >= 100 || Number.isInteger(x) ? x.toFixed(0) : x.toFixed(1);
}

export function seconds(x) {
  if (x == null) return '–';
  if (x === Infinity) return 'very long';
  if (x < 0.001) return `${(x * 1e6).toFixed(0)} µs`;
  if (x < 1) return `${(x * 1e3).toFixed(x < 0.01 ? 1 : 0)} ms`;
  return x < 100 ? `${x.toFixed(x < 10 ? 2 : 0)} s` : `${(x / 60).toFixed(0)} min`;
}

export function bytes(x) {
  if (x == null) return '–';
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (x < 1024) return `${x.toFixed(unit === 'B' ? 0 : 1)} ${unit}`;
    x /= 1024;
  }
  return `${x.toFixed(1)} TiB`;
}
