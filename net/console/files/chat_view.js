// How what was said looks: pieces of text with their tokens, tool calls, JSON.
import { by_id, element, write } from './common.js';

const rare = 0.5;
const very_rare = 0.1;

/// JSON in lines; null for what is none, or a mere number or text.
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' ? JSON.stringify(value, null, 2) : null;
  } catch {
    return null;
  }
}

function percent(logprob) {
  const part = 100 * Math.exp(logprob);
  return `${part >= 10 ? part.toFixed(0) : part >= 0.01 ? part.toFixed(2) : '<0.01'} %`;
}

/// The table of a token beside its piece.
function show_tokens(piece, tokens) {
  const place = by_id('token');
  const row = (each, taken) => element('tr', { class: taken ? 'taken' : '' },
    element('td', { class: 'mono' }, JSON.stringify(each.token)), element('td', { class: 'number' }, percent(each.logprob)));
  place.replaceChildren(element('table', {}, element('tbody', {}, ...tokens.flatMap((token) => [row(token, true),
    ...(token.top_logprobs ?? []).filter((other) => other.token !== token.token).map((other) => row(other, false))]))));
  place.hidden = false;
  const at = piece.getBoundingClientRect();
  const size = place.getBoundingClientRect();
  place.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
  place.style.top = `${at.bottom + size.height + 8 > innerHeight ? at.top - size.height - 6 : at.bottom + 6}px`;
}

export function hide_tokens() {
  by_id('token').hidden = true;
}

/// One thing that somebody said.
export class said {
  #tokens = new Map();
  #unseen = []; // tokens that made no text yet: the beginnings of characters
  #here = null;

  constructor(role, text = '') {
    this.body = element('div', { class: 'body' }, text);
    this.more = element('div');
    this.end = element('div', { class: 'end number' });
    this.node = element('article', { class: `said ${role}`, 'aria-label': role },
      element('div', { class: 'who' }, role), this.body, this.more, this.end);
    this.body.addEventListener('keydown', (event) => this.#walk(event));
    this.body.addEventListener('blur', () => this.#go(null));
  }

  /// Adds a piece of an answer.
  add({ text, tokens: more }) {
    if (text === '') return void this.#unseen.push(...more);
    const tokens = [...this.#unseen.splice(0), ...more];
    const piece = element('span', { class: 'piece' }, text);
    this.body.append(piece);
    if (tokens.length === 0) return;
    this.body.setAttribute('tabindex', '0');
    const least = Math.exp(Math.min(...tokens.map((token) => token.logprob)));
    piece.classList.toggle('rare', least < rare && least >= very_rare);
    piece.classList.toggle('very_rare', least < very_rare);
    this.#tokens.set(piece, tokens);
    piece.addEventListener('mouseenter', () => show_tokens(piece, tokens));
    piece.addEventListener('mouseleave', hide_tokens);
  }

  /// Left and right go from piece to piece.
  #walk(event) {
    if (event.key === 'Escape') return this.#go(null);
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    const step = event.key === 'ArrowLeft' ? 'previousElementSibling' : 'nextElementSibling';
    const next = this.#here ? this.#here[step] : this.body.firstElementChild;
    if (next && this.#tokens.has(next)) this.#go(next);
  }

  #go(piece) {
    this.#here?.classList.remove('here');
    this.#here = piece;
    hide_tokens();
    if (!piece) return;
    piece.classList.add('here');
    piece.scrollIntoView({ block: 'nearest' });
    show_tokens(piece, this.#tokens.get(piece));
  }

  /// Shows JSON in lines and tool calls with a place for their results; returns those places.
  complete(answer) {
    const lines = pretty(answer.content);
    if (lines !== null) this.more.append(element('pre', { class: 'mono', 'aria-label': 'JSON' }, lines));
    return answer.calls.filter(Boolean).map((call) => {
      const result = element('input', { type: 'text', autocomplete: 'off' });
      this.more.append(element('div', { class: 'call' }, element('strong', {}, `calls ${call.function.name}`),
        element('pre', { class: 'mono' }, pretty(call.function.arguments) ?? call.function.arguments),
        element('label', {}, 'Its result, sent with the next message', result)));
      return { id: call.id, result };
    });
  }

  ends(text, wrong = false) {
    write(this.end, text);
    this.node.classList.toggle('wrong', wrong);
  }
}
