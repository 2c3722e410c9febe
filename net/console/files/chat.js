// The chat: a client of the API like any other, on the listener that the page came from.
import { ask, ask_key, by_id, refused, tell, write } from './common.js';
import { answer, events_of } from './chat_stream.js';
import { hide_tokens, said } from './chat_view.js';

const alternatives = 5;
const numbers = ['temperature', 'top_p', 'max_tokens', 'seed', 'frequency_penalty', 'presence_penalty'];
const log = by_id('log');

let messages = []; // as the API has them
let results = []; // places for results of tools, of the last answer
let running = null; // stops the answer

class bad_setting extends Error {}

function json_of(id, words) {
  const text = by_id(id).value.trim();
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new bad_setting(`${words} is not JSON: ${error.message}`);
  }
}

function format() {
  const type = by_id('format').value;
  if (type === '') return undefined;
  if (type === 'json_object') return { type };
  const schema = json_of('schema', 'The schema');
  if (schema === undefined) throw new bad_setting('The format is JSON Schema, and there is no schema.');
  return { type, json_schema: { name: 'answer', strict: true, schema } };
}

/// The request that the settings mean.
function request() {
  const body = { model: by_id('model').value, stream: true, stream_options: { include_usage: true } };
  const system = by_id('system').value;
  body.messages = system.trim() === '' ? messages : [{ role: 'system', content: system }, ...messages];
  for (const name of numbers) if (by_id(name).value !== '') body[name] = Number(by_id(name).value);
  const stops = by_id('stops').value.split('\n').filter((line) => line !== '');
  if (stops.length) body.stop = stops;
  if (by_id('logprobs').checked) Object.assign(body, { logprobs: true, top_logprobs: alternatives });
  body.response_format = format();
  body.tools = json_of('tools', 'The list of tools');
  if (body.tools && by_id('tool_choice').value !== '') body.tool_choice = by_id('tool_choice').value;
  return body;
}

/// Follows the end of the conversation, unless the reader looks at something above.
function append(node) {
  by_id('empty').hidden = true;
  log.append(node);
  log.scrollTop = log.scrollHeight;
}

function follow_end(change) {
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (at_end) log.scrollTop = log.scrollHeight;
}

function busy(yes) {
  by_id('send').disabled = yes;
  by_id('stop').disabled = !yes;
  by_id('again').disabled = yes || !messages.some((each) => each.role === 'user');
  by_id('clear').disabled = yes;
  log.setAttribute('aria-busy', yes);
}

/// "120 tokens in 1.2 s: 100 tokens/s, first after 0.1 s"
function figures(usage, began, first) {
  const now = performance.now();
  const tokens = usage?.completion_tokens;
  if (!tokens || first === null) return '';
  const rate = tokens > 1 ? `, then ${(((tokens - 1) * 1000) / Math.max(now - first, 1)).toFixed(0)} tokens/s` : '';
  return `${usage.prompt_tokens} tokens of prompt, ${tokens} of answer; the first after ${((first - began) / 1000).toFixed(2)} s${rate}`;
}

async function stream_into(view, body, signal) {
  const began = performance.now();
  let first = null;
  const whole = new answer();
  try {
    const reply = await ask('/v1/chat/completions', { body, signal });
    for await (const chunk of events_of(reply.body)) {
      const piece = whole.take(chunk);
      if (!piece) continue;
      first ??= performance.now();
      follow_end(() => view.add(piece));
    }
    const reasons = { length: 'ended at the most tokens', stop: '', tool_calls: '' };
    view.ends(reasons[whole.reason] ?? `ended: ${whole.reason}`);
  } catch (error) {
    if (error instanceof refused && error.status === 401) throw error;
    view.ends(signal.aborted ? 'stopped' : error.message, !signal.aborted);
    view.failed = !signal.aborted;
  }
  follow_end(() => { results = view.complete(whole); });
  write(by_id('figures'), figures(whole.usage, began, first));
  return whole;
}

/// Asks for the answer to what was said so far.
async function answer_it() {
  let body;
  try {
    body = request();
  } catch (error) {
    tell(error.message, true);
    return;
  }
  const view = new said('assistant');
  append(view.node);
  running = new AbortController();
  busy(true);
  try {
    const whole = await stream_into(view, body, running.signal);
    if (whole.content !== '' || whole.calls.length) messages.push(whole.message());
  } catch { // it needs a key
    view.node.remove();
    if (await ask_key(true)) return await answer_it();
  } finally {
    running = null;
    busy(false);
  }
}

function send() {
  const text = by_id('text').value;
  const told = results.filter(({ result }) => result.value !== '');
  if (running || (text.trim() === '' && told.length === 0)) return;
  for (const { id, result } of told) messages.push({ role: 'tool', tool_call_id: id, content: result.value });
  for (const { result } of results) result.disabled = true;
  results = [];
  if (text.trim() !== '') {
    messages.push({ role: 'user', content: text });
    append(new said('user', text).node);
  }
  by_id('text').value = '';
  answer_it();
}

/// Forgets the last answer and asks for another one.
function again() {
  if (messages[messages.length - 1]?.role === 'assistant') messages.pop();
  if (log.lastElementChild?.classList.contains('assistant')) log.lastElementChild.remove();
  answer_it();
}

function clear() {
  messages = [];
  results = [];
  for (const node of [...log.querySelectorAll('.said')]) node.remove();
  by_id('empty').hidden = false;
  write(by_id('figures'), '');
  busy(false);
}

async function read_models(refused_before = false) {
  try {
    const found = await (await ask('/v1/models')).json();
    by_id('model').replaceChildren(...found.data.map((each) => new Option(each.id)));
    document.body.dataset.ready = 'yes';
  } catch (error) {
    if (!(error instanceof refused) || error.status !== 401) {
      tell(`${error.message} Asking again soon.`, true);
      setTimeout(read_models, 3000);
    } else if (await ask_key(refused_before)) {
      read_models(true);
    }
  }
}

by_id('composer').addEventListener('submit', (event) => { event.preventDefault(); send(); });
by_id('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
by_id('stop').addEventListener('click', () => running?.abort());
by_id('again').addEventListener('click', again);
by_id('clear').addEventListener('click', clear);
by_id('shade').addEventListener('change', (event) => log.classList.toggle('shaded', event.target.checked));
by_id('format').addEventListener('change', (event) => { by_id('schema_label').hidden = event.target.value !== 'json_schema'; });
by_id('settings').addEventListener('submit', (event) => event.preventDefault());
by_id('settings_button').addEventListener('click', (event) => {
  const open = by_id('settings').classList.toggle('open');
  event.target.setAttribute('aria-expanded', open);
});
by_id('key_cancel').addEventListener('click', () => by_id('key').close());
by_id('key_button').addEventListener('click', async () => {
  if (await ask_key(false)) read_models(true);
});
log.addEventListener('scroll', hide_tokens);
addEventListener('keydown', (event) => { if (event.key === 'Escape') running?.abort(); });
busy(false);
read_models();
