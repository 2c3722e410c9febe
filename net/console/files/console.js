// The console: asks this listener once a second while somebody looks, and draws what it says.
import { ask, ask_key, by_id, has_key, refused, tell, write } from './common.js';
import { drain_service, pool_table, reload_configuration, worker_detail } from './console_actions.js';
import { load_cards } from './console_charts.js';
import { draw_loss, event_list, last_loss } from './console_events.js';
import { pipeline_panel } from './console_pipeline.js';
import { draw_advice, request_table } from './console_requests.js';
import { readings } from './console_state.js';
import { topology } from './console_topology.js';

const period_ms = 1000;
const patience_ms = 6000;
/// States of health that pass.
const patient = new Set(['degraded', 'loading', 'draining']);

const history = new readings();
history.skew = 0; // of this clock before the service's
const events = new event_list(by_id('events'), by_id('events_trouble'));
const draw_load = load_cards(by_id('load'));
const pools = new pool_table(by_id('pools'));
const requests = new request_table(by_id('requests'), by_id('requests_words'));
const detail = new worker_detail(by_id('detail'));
const picture = new topology(by_id('topology'), choose);
const pipeline = new pipeline_panel(by_id('pipeline'), by_id('pipeline_record'), by_id('pipeline_follow'), by_id('pipeline_words'));
let page = null;
let failures = 0;
let declined = false; // to give a key: the button asks again

/// The time of the service, by which its events are dated.
function service_time() {
  return Date.now() - history.skew;
}

function choose(seat) {
  picture.chosen = picture.chosen === seat ? null : seat;
  detail.show(picture.chosen);
  if (page) draw();
}

function draw_state() {
  const health = page.health;
  const tone = health.status === 'ok' ? 'good' : patient.has(health.status) ? 'warn' : 'bad';
  show_state(tone, health.status === 'ok' ? 'healthy' : health.status, health.reason ?? page.trouble);
  write(by_id('model'), page.model);
  const epochs = Object.entries(page.status?.epochs ?? {});
  const partition = page.status?.pools[0]?.partition;
  write(by_id('epoch'), epochs.map(([pool, epoch]) => `${pool} by ${partition ?? '…'}, epoch ${epoch}`).join(' · '));
  document.title = `${tone === 'good' ? '' : `${health.status}: `}Lamella console`;
}

function show_state(tone, word, reason) {
  by_id('state').className = `state ${tone}`;
  by_id('state_shape').className = `shape ${tone}`;
  write(by_id('state_word'), word);
  write(by_id('state_reason'), reason ?? '');
}

function draw() {
  const now = service_time();
  draw_state();
  picture.draw(page, events.all, now);
  detail.draw(page, events.all, now);
  pools.draw(page.changes);
  requests.draw(page);
  pipeline.look(page.requests.length > 0);
  draw_advice(by_id('advice'), history);
  draw_load(history);
  draw_loss(by_id('loss'), by_id('loss_what'), by_id('loss_cost'), last_loss(events), history);
}

async function read_once() {
  const signal = AbortSignal.timeout(patience_ms);
  const next = await (await ask('/admin/console', { signal })).json();
  history.skew = Date.now() - Date.parse(next.time);
  if (next.newest_event !== events.newest) {
    const after = next.newest_event < events.newest ? 0 : events.newest;
    events.add(await (await ask(`/admin/events?after=${after}`, { signal })).json(), service_time());
  }
  history.add(next, Date.now());
  page = next;
}

/// What to do about an answer that did not come; true where there is to be another try at once.
async function bear(error) {
  if (error instanceof refused && error.status === 401) {
    show_state('warn', 'locked', 'this listener needs a key');
    if (!declined) declined = !await ask_key(has_key());
    return !declined;
  }
  failures += 1;
  const why = error.name === 'TimeoutError' ? `no answer for ${patience_ms / 1000} s` : error.message;
  show_state('bad', 'no answer', why);
  return false;
}

async function follow() {
  for (;;) {
    let again = false;
    if (!document.hidden) {
      try {
        await read_once();
        failures = 0;
        draw();
        document.body.dataset.read = history.newest.at;
      } catch (error) {
        again = await bear(error);
      }
    }
    const pause = again ? 0 : Math.min(period_ms * (1 + failures), 5000);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
}

by_id('reload').addEventListener('click', reload_configuration);
by_id('drain').addEventListener('click', drain_service);
by_id('key_cancel').addEventListener('click', () => by_id('key').close());
by_id('key_button').addEventListener('click', async () => {
  if (!await ask_key(false)) return;
  declined = false;
  tell('The key is used from the next question on.');
});
follow();
