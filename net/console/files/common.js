// What the console and the chat share. Texts of the service, of prompts and of answers become text
// nodes: nothing in these pages is ever read as markup.

const svg_space = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/// An element of HTML; children that are texts stay texts.
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/// An element of SVG.
export function drawing(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svg_space, name), attributes, children);
}

/// Writes a text only where it differs, so that nothing is laid out again for nothing.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function by_id(id) {
  return document.getElementById(id);
}

/// A short message that goes away.
let note_timer = 0;
export function tell(text, bad = false) {
  const note = by_id('note');
  note.textContent = text;
  note.onclick = () => { note.textContent = ''; };
  note.classList.toggle('bad', bad);
  clearTimeout(note_timer);
  note_timer = setTimeout(() => { note.textContent = ''; }, bad ? 12000 : 5000);
}

// The key is in this variable and nowhere else: a reload of the page forgets it.
let key = '';

export function has_key() {
  return key !== '';
}

/// Asks for the key; false where the reader gives none.
export function ask_key(refused) {
  const dialog = by_id('key');
  const field = by_id('key_field');
  write(by_id('key_reason'), refused ? 'This listener needs a key, and refuses the one given.'
    : 'A key of this listener. It stays in the memory of this page.');
  field.value = '';
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    const use = (event) => {
      event.preventDefault();
      dialog.close('use');
    };
    by_id('key_form').addEventListener('submit', use);
    dialog.addEventListener('close', () => {
      by_id('key_form').removeEventListener('submit', use);
      const given = dialog.returnValue === 'use';
      if (given) key = field.value.trim();
      field.value = '';
      dialog.returnValue = '';
      resolve(given);
    }, { once: true });
  });
}

export class refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function reason_of(reply) {
  const text = await reply.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `HTTP ${reply.status} ${text.slice(0, 200)}`;
  }
}

/// One request of this listener with the key; throws `refused` for other answers than 2xx.
export async function ask(path, { body, signal } = {}) {
  const headers = {};
  if (key !== '') headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const reply = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    credentials: 'omit',
    cache: 'no-store',
  });
  if (!reply.ok) throw new refused(reply.status, await reason_of(reply));
  return reply;
}
