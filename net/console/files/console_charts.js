// Cards with numbers and small line charts of the last minutes.
import { drawing, element, write } from './common.js';
import { history_seconds, number, seconds } from './console_state.js';

const width = 320;
const height = 72;

/// Each series: its word, how to read it, and its number as text.
const cards = [
  {
    title: 'Tokens/s', big: (x) => number(x.generated_rate), format: number,
    series: [['generated', (x) => x.generated_rate], ['prompts', (x) => x.prompted_rate]],
  },
  {
    title: 'First token', big: (x) => seconds(x.first_50), format: seconds,
    series: [['median', (x) => x.first_50], ['p95', (x) => x.first_95], ['p99', (x) => x.first_99]],
  },
  {
    title: 'Between tokens', big: (x) => seconds(x.between_50), format: seconds,
    series: [['median', (x) => x.between_50], ['p95', (x) => x.between_95], ['p99', (x) => x.between_99]],
  },
  {
    title: 'KV slots used', big: (x) => share(x.slots.used, x.slots), format: number,
    series: [['used', (x) => x.slots.used], ['cached', (x) => x.slots.cached], ['parity', (x) => x.slots.parity]],
    most: (x) => x.slots.total, least_top: 64,
  },
  {
    title: 'Requests', big: (x) => number(x.requests?.running), format: number,
    series: [['running', (x) => x.requests?.running], ['waiting', (x) => x.requests?.waiting],
      ['recovering', (x) => x.requests?.recovering]],
    least_top: 4,
  },
];

function share(part, slots) {
  return slots.total ? `${((100 * part) / slots.total).toFixed(part && part < slots.total / 100 ? 2 : 0)} %` : '–';
}

/// The path of a series, broken where there are no numbers or no readings for a while.
function path_of(points, read, now, top) {
  let text = '';
  let before = null;
  for (const point of points) {
    const value = read(point);
    if (value == null || !Number.isFinite(value)) { before = null; continue; }
    const x = width - ((now - point.at) / 1000 / history_seconds) * width;
    const y = height - 2 - Math.min(value / top, 1) * (height - 8);
    const joined = before && point.at - before < 4000;
    text += `${joined ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    if (!joined) text += 'h0.1';
    before = point.at;
  }
  return text;
}

/// A round number not below the highest value.
function top_of(points, series, least) {
  let highest = least ?? 0;
  for (const point of points)
    for (const [, read] of series) {
      const value = read(point);
      if (Number.isFinite(value) && value > highest) highest = value;
    }
  if (highest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((x) => x * power).find((x) => x >= highest * 0.999);
}

class card {
  constructor(what) {
    this.what = what;
    this.big = element('strong', { class: 'big number' }, '–');
    this.words = what.series.map(([word], i) =>
      element('span', { class: 'word number' }, element('i', { class: `key key_${i + 1}`, 'aria-hidden': 'true' }),
        `${word} `, element('b', {}, '–')));
    this.paths = what.series.map((_, i) => drawing('path', { class: `line line_${i + 1}` }));
    this.chart = drawing('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'chart', role: 'img' },
      drawing('path', { class: 'grid', d: `M0 ${height - 2}H${width}M0 6H${width}` }), ...this.paths.toReversed());
    this.scale = element('span', { class: 'scale muted number', 'aria-hidden': 'true' });
    this.node = element('article', { class: 'card load' },
      element('div', { class: 'head' }, element('h2', {}, what.title), this.big),
      element('div', { class: 'plot' }, this.chart, this.scale),
      element('p', { class: 'words muted' }, ...this.words));
  }

  draw(points, newest) {
    const { what } = this;
    write(this.big, what.big(newest));
    what.series.forEach(([, read], i) => write(this.words[i].querySelector('b'), what.format(read(newest))));
    const top = top_of(points, what.series, what.least_top);
    what.series.forEach(([, read], i) => this.paths[i].setAttribute('d', path_of(points, read, newest.at, top)));
    write(this.scale, what.format(top));
    const now = what.series.map(([word, read]) => `${word} ${what.format(read(newest))}`).join(', ');
    this.chart.setAttribute('aria-label', `${what.title}, the last five minutes: now ${now}`);
  }
}

/// Puts the cards into a place; returns the function that draws them again.
export function load_cards(place) {
  const all = cards.map((what) => new card(what));
  place.append(...all.map((each) => each.node));
  return (history) => {
    for (const each of all) each.draw(history.all, history.newest);
  };
}
