// The picture of workers, pools and links. Each worker keeps its element while it changes, so that
// focus stays where it is; places move only when seats come or go.
import { drawing, write } from './common.js';
import { seconds } from './console_state.js';

const box = { width: 168, least_width: 146, height: 80, gap: 12 };
const frame = { pad: 14, head: 30 };
const control_width = 150;
const roles = ['model', 'attention', 'prefill'];
/// So many of a role are drawn; the rest is counted.
const drawn_max = 64;
const labelled_links_max = 6;
/// A loss is shown for so long after it is heard of, even where the next worker sits there within a blink.
const after_image_seconds = 3;

/// Marks of states, 12 by 12: colour is not all that tells them apart.
const marks = {
  good: 'M6 0.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11z',
  warn: 'M6 0L12 11.5H0z',
  bad: 'M0 2L2 0L6 4L10 0L12 2L8 6L12 10L10 12L6 8L2 12L0 10L4 6z',
};

function index_of(seat) {
  return Number(seat.slice(seat.lastIndexOf('/') + 1)) || 0;
}

/// How a seat is, in a word and a tone.
export function state_of(worker, events, now) {
  const lost = events.findLast((each) => each.kind === 'worker_lost' && each.subject === worker.seat);
  const ago = lost ? (now - lost.at) / 1000 : Infinity;
  const since = ago < 600 ? ` ${seconds(Math.max(1, Math.round(ago))).replace('.00', '')} ago` : '';
  if (worker.state === 'failing') return { tone: 'bad', word: 'fails again and again' };
  if (worker.state === 'missing') return { tone: 'bad', word: lost ? `lost${since}` : 'empty' };
  // Red for a moment even where the seat was taken at once, so that nobody misses it.
  if (lost && (now - lost.seen) / 1000 < after_image_seconds)
    return { tone: 'bad', word: `${worker.state === 'live' ? 'replaced' : 'lost'}${since}` };
  if (worker.state !== 'live') return { tone: 'warn', word: worker.state === 'loading' ? 'starting' : worker.state };
  if (worker.draining) return { tone: 'warn', word: 'draining' };
  if (worker.slow) return { tone: 'warn', word: 'live, slow' };
  return { tone: 'good', word: ago < 60 ? `live, replaced${since}` : 'live' };
}

/// Replicas and shards of one process meet in its memory: no link of theirs is measured.
function add_unmeasured(links, workers) {
  const replicas = workers.filter((each) => each.role === 'model' && each.part.startsWith('replica'));
  const shards = workers.filter((each) => each.role === 'attention' && each.part !== '' && each.part !== 'spare');
  for (const a of replicas)
    for (const b of shards) {
      const ends = [a.seat, b.seat].sort();
      const name = ends.join(' ');
      if (links.has(name) || a.pid !== b.pid || a.host !== b.host) continue;
      links.set(name, { name, ends, transport: 'memory', rtt_us: 0, bytes: 0 });
    }
}

/// Both directions of a link, with the tier and the quickest round trip.
export function links_of(workers) {
  const links = new Map();
  for (const worker of workers)
    for (const peer of worker.peers ?? []) {
      if (!peer.transport) continue;
      const ends = [worker.seat, peer.seat].sort();
      const name = ends.join(' ');
      const link = links.get(name) ?? { name, ends, transport: peer.transport, rtt_us: 0, bytes: 0 };
      if (peer.rtt_us > 0 && (link.rtt_us === 0 || peer.rtt_us < link.rtt_us)) link.rtt_us = peer.rtt_us;
      link.bytes += peer.bytes;
      links.set(name, link);
    }
  add_unmeasured(links, workers);
  return links;
}

export function round_trip(us) {
  return us > 0 ? `${us < 10 ? us.toFixed(1) : us.toFixed(0)} µs` : 'no round trip yet';
}

/// Seats by role, each in order of its index.
function seats_by_role(status) {
  const groups = new Map(roles.map((role) => [role, []]));
  for (const worker of [...status.workers, ...status.missing]) {
    if (!groups.has(worker.role)) groups.set(worker.role, []);
    groups.get(worker.role).push(worker);
  }
  for (const group of groups.values()) group.sort((a, b) => index_of(a.seat) - index_of(b.seat));
  return groups;
}

/// A frame of boxes: its size and the place of each box in it.
function frame_of(count, columns, box_width = box.width) {
  const rows = Math.max(1, Math.ceil(count / columns));
  const places = Array.from({ length: count }, (_, i) => ({
    x: frame.pad + (i % columns) * (box_width + box.gap),
    y: frame.head + Math.floor(i / columns) * (box.height + box.gap),
    width: box_width,
  }));
  return {
    places,
    width: 2 * frame.pad + columns * box_width + (columns - 1) * box.gap,
    height: frame.head + frame.pad + rows * box.height + (rows - 1) * box.gap,
  };
}

/// Frames beside each other where the page is wide enough, else below each other.
function arrange(width, counts) {
  const shown = roles.filter((role) => counts[role] > 0);
  const make = (role, columns) => ({ role, ...frame_of(counts[role], columns) });
  const columns = (count) => (count > 12 ? 3 : count > 5 ? 2 : 1);
  const middle = shown.filter((role) => role !== 'attention').map((role) => make(role, columns(counts[role])));
  const right = shown.filter((role) => role === 'attention').map((role) => make(role, columns(counts[role])));
  const middle_width = Math.max(0, ...middle.map((each) => each.width));
  const right_width = Math.max(0, ...right.map((each) => each.width));
  const room = width - control_width - middle_width - right_width;
  return room >= 130 ? beside(width, middle, right, middle_width, right_width, room) : below(width, shown, counts);
}

function below(width, shown, counts) {
  const inside = width - 2 * frame.pad + box.gap;
  const columns = Math.max(1, Math.floor(inside / (box.least_width + box.gap)));
  const box_width = Math.min(box.width, inside / columns - box.gap);
  let y = 78;
  const frames = shown.map((role) => {
    const each = { role, ...frame_of(counts[role], columns, box_width), x: 0, y, width };
    y += each.height + 34;
    return each;
  });
  return { frames, height: y - 34, control: { x: 0, y: 0, width, height: 52 }, upright: true };
}

function beside(width, middle, right, middle_width, right_width, room) {
  const left = control_width + Math.min(70, room * 0.3);
  const place = (frames, x) => {
    let y = 0;
    for (const each of frames) {
      each.x = x;
      each.y = y;
      y += each.height + 16;
    }
    return y - 16;
  };
  const height = Math.max(place(middle, left), place(right, width - right_width), 120);
  return {
    frames: [...middle, ...right],
    height,
    control: { x: 0, y: 0, width: control_width, height: 120 },
    upright: false,
  };
}

/// Elements by name: made when they come, removed when they are gone.
class kept_elements {
  #all = new Map();

  constructor(place, make) {
    this.place = place;
    this.make = make;
  }

  use(names) {
    for (const [name, each] of this.#all)
      if (!names.has(name)) {
        each.node.remove();
        this.#all.delete(name);
      }
    for (const name of names)
      if (!this.#all.has(name)) {
        const made = this.make(name);
        this.#all.set(name, made);
        this.place.append(made.node);
      }
    return this.#all;
  }
}

function make_box(name, choose) {
  const text = (y, kind) => drawing('text', { x: 12, y, class: kind });
  const parts = {
    edge: drawing('rect', { height: box.height, rx: 8, class: 'edge' }),
    mark: drawing('path', { class: 'mark', transform: 'translate(12 11)' }),
    seat: drawing('text', { x: 32, y: 21, class: 'seat' }),
    life: drawing('text', { y: 72, class: 'small', 'text-anchor': 'end' }),
    part: text(39, 'part'), state: text(56, 'word'), link: text(72, 'small'),
  };
  const node = drawing('g', { class: 'worker', tabindex: 0, role: 'button' }, ...Object.values(parts));
  node.addEventListener('click', () => choose(name));
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose(name);
  });
  return { node, ...parts };
}

function make_frame() {
  const edge = drawing('rect', { rx: 10, class: 'frame' });
  const title = drawing('text', { class: 'title' });
  const wire = drawing('path', { class: 'wire' });
  return { node: drawing('g', {}, wire, edge, title), edge, title, wire };
}

function make_link() {
  const path = drawing('path', { class: 'link' });
  const label = drawing('text', { class: 'label', 'text-anchor': 'middle' });
  const title = drawing('title');
  return { node: drawing('g', {}, title, path, label), path, label, title };
}

/// The part of a worker in words.
function part_words(worker) {
  const cell = worker.cell ? ` of ${worker.cell}` : '';
  if (worker.part === 'parity') return `parity${cell} ⊕`;
  if (worker.part) return worker.part + cell;
  return worker.role === 'prefill' ? 'prompts' : 'no part';
}

/// The drawing, in a place; `choose` hears which worker was clicked.
export class topology {
  chosen = null;
  #last = null;

  constructor(place, choose) {
    this.place = place;
    this.svg = drawing('svg', { class: 'picture', role: 'group', 'aria-label': 'Workers and their links' });
    const layer = () => this.svg.appendChild(drawing('g'));
    this.frames = new kept_elements(layer(), make_frame);
    this.links = new kept_elements(layer(), make_link);
    this.control = this.#make_control(layer());
    this.boxes = new kept_elements(layer(), (seat) => make_box(seat, choose));
    place.append(this.svg);
    new ResizeObserver(() => this.#last && this.draw(...this.#last)).observe(place);
  }

  #make_control(place) {
    const edge = drawing('rect', { rx: 8, class: 'edge' });
    const lines = [0, 1, 2, 3].map((i) => drawing('text', { x: 12, y: 22 + 20 * i, class: i ? 'word' : 'seat' }));
    place.append(drawing('g', { class: 'control' }, edge, ...lines));
    return { edge, lines };
  }

  draw(page, events, now) {
    const status = page.status;
    if (!status) return;
    this.#last = [page, events, now];
    const groups = seats_by_role(status);
    const counts = {};
    for (const role of roles) counts[role] = Math.min(groups.get(role).length, drawn_max);
    const width = Math.max(this.place.clientWidth, 240);
    const layout = arrange(width, counts);
    this.svg.setAttribute('width', width);
    this.svg.setAttribute('height', layout.height + 4);
    this.svg.setAttribute('viewBox', `-2 -2 ${width + 4} ${layout.height + 4}`);
    this.#draw_control(layout, status);
    this.#draw_frames(layout, page, groups);
    const links = links_of(status.workers);
    const where = this.#draw_boxes(layout, groups, links, events, now);
    this.#draw_links(layout, where, links);
  }

  #draw_control({ control, upright }, status) {
    const { edge, lines } = this.control;
    edge.setAttribute('width', control.width);
    edge.setAttribute('height', control.height);
    const { running, waiting, recovering } = status.requests;
    const words = ['gateway', `${running} running`, `${waiting} waiting`, `${recovering} recovering`];
    lines.forEach((line, i) => {
      line.setAttribute('x', upright ? 12 + (i ? ((i - 1) * (control.width - 24)) / 3 : 0) : 12);
      line.setAttribute('y', upright ? (i ? 42 : 21) : 24 + 26 * i);
      line.classList.toggle('bad', i === 3 && recovering > 0);
      write(line, words[i]);
    });
  }

  #draw_frames(layout, page, groups) {
    const kept = this.frames.use(new Set(layout.frames.map((each) => each.role)));
    for (const each of layout.frames) {
      const { edge, title, wire } = kept.get(each.role);
      for (const name of ['x', 'y', 'width', 'height']) edge.setAttribute(name, each[name]);
      title.setAttribute('x', each.x + frame.pad);
      title.setAttribute('y', each.y + 20);
      write(title, title_of(each.role, page, groups.get(each.role).length));
      const { control } = layout;
      wire.setAttribute('d', layout.upright || each.role === 'attention' ? ''
        : `M${control.width} ${Math.min(each.y + 20, 60)}H${(control.width + each.x) / 2}V${each.y + 20}H${each.x}`);
    }
  }

  #draw_boxes(layout, groups, links, events, now) {
    const where = new Map();
    for (const each of layout.frames)
      groups.get(each.role).slice(0, drawn_max).forEach((worker, i) => {
        const place = each.places[i];
        where.set(worker.seat, { x: each.x + place.x, y: each.y + place.y, width: place.width, role: each.role, worker });
      });
    const kept = this.boxes.use(new Set(where.keys()));
    for (const [seat, { x, y, width, worker }] of where) {
      const parts = kept.get(seat);
      parts.edge.setAttribute('width', width);
      parts.life.setAttribute('x', width - 10);
      const { tone, word } = state_of(worker, events, now);
      const kind = worker.part === 'spare' || worker.part === 'parity' ? worker.part : '';
      parts.node.setAttribute('transform', `translate(${x} ${y})`);
      parts.node.setAttribute('class', `worker ${tone} ${kind} ${seat === this.chosen ? 'chosen' : ''}`);
      parts.node.setAttribute('data-seat', seat);
      parts.node.setAttribute('aria-pressed', seat === this.chosen);
      parts.node.setAttribute('aria-label', `${seat}, ${part_words(worker)}, ${word}`);
      parts.mark.setAttribute('d', marks[tone]);
      write(parts.seat, seat);
      const own_life = worker.role !== 'prefill' || worker.peers?.length; // a replica's has that of the epoch
      write(parts.life, own_life && worker.incarnation > 1 ? `life ${worker.incarnation}` : '');
      write(parts.part, worker.name === undefined ? 'nobody' : part_words(worker));
      write(parts.state, word);
      const own = [...links.values()].filter((link) => link.ends.includes(seat) && link.rtt_us > 0);
      const best = own.length ? Math.min(...own.map((link) => link.rtt_us)) : 0;
      write(parts.link, best ? `${own[0].transport} ${round_trip(best)}` : '');
    }
    return where;
  }

  #draw_links(layout, where, links) {
    const shown = new Map([...links].filter(([, link]) => link.ends.every((seat) => where.has(seat))));
    const kept = this.links.use(new Set(shown.keys()));
    for (const [name, link] of shown) {
      const [a, b] = link.ends.map((seat) => where.get(seat)).sort((p, q) => (p.role === 'attention') - (q.role === 'attention'));
      const { path, label, title } = kept.get(name);
      const from = layout.upright ? { x: a.x + a.width / 2, y: a.y + box.height } : { x: a.x + a.width, y: a.y + box.height / 2 };
      const to = layout.upright ? { x: b.x + b.width / 2, y: b.y } : { x: b.x, y: b.y + box.height / 2 };
      const mid = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
      path.setAttribute('d', layout.upright
        ? `M${from.x} ${from.y}C${from.x} ${mid.y} ${to.x} ${mid.y} ${to.x} ${to.y}`
        : `M${from.x} ${from.y}C${mid.x} ${from.y} ${mid.x} ${to.y} ${to.x} ${to.y}`);
      const of_chosen = link.ends.includes(this.chosen);
      path.setAttribute('class', `link ${link.transport} ${of_chosen ? 'chosen' : ''}`);
      label.setAttribute('x', mid.x);
      label.setAttribute('y', mid.y + 4);
      const told = link.transport === 'memory' ? 'same process' : `${link.transport} ${round_trip(link.rtt_us)}`;
      write(label, !layout.upright && (of_chosen || (this.chosen === null && shown.size <= labelled_links_max)) ? told : '');
      write(title, `${link.ends.join(' – ')}: ${told}`);
    }
  }
}

/// "attention · 3 of 3 up"
function title_of(role, page, seats) {
  const up = page.health.roles?.[role];
  const words = [role];
  if (up) words.push(`${up.up} of ${up.need} up`);
  if (seats > drawn_max) words.push(`${seats - drawn_max} more`);
  return words.join(' · ');
}
