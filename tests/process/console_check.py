"""Looks at both pages of a service with a browser. usage: console_check.py CHROMIUM PORT ADMIN_PORT KEY PICTURES

The service has three attention workers as child processes, chaos and an admin key. Prints a line for each check; ends
with 1 when one failed."""
import http.client
import json
import os
import signal
import sys
import tempfile
import urllib.request

from browser import Browser

CHROMIUM, PORT, ADMIN, KEY, PICTURES = sys.argv[1:6]
API, CONSOLE = f"http://127.0.0.1:{PORT}/", f"http://127.0.0.1:{ADMIN}/"
SEATS = "[...document.querySelectorAll('[data-seat]')]"
# Texts that a page would run if it took them for markup.
MODEL = "tiny<img/src=/ui/none/onerror=document.title=1>"
MARKUP = "<img src=/ui/none onerror=document.title='run'><script>document.title='run'</script>"
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
failures = 0


def check(name, good, told=""):
    global failures
    print(f"ok   {name}" if good else f"FAIL {name}\n{told}", flush=True)
    failures += not good


def status():
    request = urllib.request.Request(CONSOLE + "admin/status", headers={"authorization": f"Bearer {KEY}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(request, timeout=60))


def load(streams):
    """Requests that decode for long; they end when their connections are closed."""
    connections = [http.client.HTTPConnection("127.0.0.1", int(PORT)) for _ in range(streams)]
    body = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 3500, "ignore_eos": True}
    for i, each in enumerate(connections):
        each.request("POST", "/v1/completions", json.dumps({**body, "seed": i}), {"content-type": "application/json", "x-request-id": f"{i}<img/src=/ui/none>"})
    while status()["requests"]["running"] < streams:
        pass
    return connections


def tone(seat):
    return f"document.querySelector('[data-seat=\"{seat}\"]')?.getAttribute('class').split(' ')[1]"


def pictures(page, name):
    """Wide and narrow, light and dark; the page is never wider than the window."""
    for width, height in ((1280, 900), (390, 844)):
        page.size(width, height)
        for scheme in ("light", "dark"):
            page.scheme(scheme)
            page.value(TWO_FRAMES)
            page.picture(f"{PICTURES}/{name}_{scheme}_{width}.png")
        wide = page.value("document.documentElement.scrollWidth")
        check(f"{name}: {width} points are wide enough", wide <= width, f"{wide} points")
    page.size(1280, 900)
    page.scheme("light")


def nothing_wrong(page, name, expected=()):
    left = [each for each in page.wrong if not any(part in each for part in expected)]
    check(f"{name}: no error, no warning", not left, "\n".join(left))
    page.wrong.clear()
    others = [url for url in page.asked if not url.startswith((API, CONSOLE, "about:"))]
    check(f"{name}: asks no other host", not others, others)


def open_console(page):
    page.open(CONSOLE)
    page.wait("document.getElementById('key')?.open")
    check("console: the key is asked for", page.value("document.activeElement.id") == "key_field")
    page.type("wrong")
    page.press("Enter", "\r")
    page.wait("document.getElementById('key').open && document.getElementById('key_reason').textContent.includes('refuses')")
    check("console: a wrong key is refused", True)
    page.type(KEY)
    page.press("Enter", "\r")
    page.wait("document.body?.dataset.read")
    check("console: the key is kept nowhere", page.value(
        "document.cookie + JSON.stringify({...localStorage, ...sessionStorage}) + document.getElementById('key_field').value") == "{}")


def see_topology(page):
    page.wait(f"{SEATS}.length >= 4 && {SEATS}.every((each) => each.classList.contains('good'))")
    seats = sorted(page.value(f"{SEATS}.map((each) => each.dataset.seat)"))
    check("console: every seat is drawn", [x for x in seats if not x.startswith("prefill")]
          == ["attention/0", "attention/1", "attention/2", "model/0"], seats)
    page.wait("document.querySelectorAll('.link.shm, .link.tcp').length === 3")
    check("console: links to three shards, with tier and round trip", True)
    page.wait("document.querySelectorAll('.load .line[d^=M]').length > 0")
    check("console: events are listed", page.wait("document.querySelectorAll('#events li').length > 3"))
    page.value("document.querySelector('[data-seat=\"attention/1\"]').focus()")
    page.press("Enter", "\r")
    page.wait("document.getElementById('detail').textContent.includes('attention/1')")
    check("console: a worker is chosen by keyboard", page.value("document.querySelector('#detail button').textContent") == "Drain")


def lose_worker(page):
    """Red, then green, with nobody's hand but the keeper's, while requests decode."""
    running = load(4)
    page.wait("document.querySelector('.control').textContent.includes('4 running')")
    page.wait("document.querySelectorAll('#requests tr').length === 4")
    words = page.value("document.getElementById('requests_words').textContent")
    check("console: names of models and requests stay text", page.value("document.getElementById('model').textContent") == MODEL
          and page.value("document.querySelectorAll('main img, main script').length") == 0
          and page.value("document.getElementById('requests').textContent.includes('3<img/src=/ui/none>')"),
          page.value("document.getElementById('requests').innerHTML"))
    check("console: requests are listed with their state", "decoding" in words or "prefilling" in words, words)
    victim = next(x for x in status()["workers"] if x["seat"] == "attention/1")
    page.value("""window.tones = [];
      new MutationObserver(() => { const now = %s; if (tones[tones.length - 1] !== now) tones.push(now); })
        .observe(document.getElementById('topology'), {subtree: true, attributes: true, childList: true}); 1""" % tone("attention/1"))
    os.kill(victim["pid"], signal.SIGKILL)
    page.wait(f"{tone('attention/1')} === 'bad'")
    check("console: a killed worker turns red", True)
    page.picture(f"{PICTURES}/console_lost.png")
    page.wait(f"{tone('attention/1')} === 'good'")
    check("console: and green again", page.value("tones.includes('bad') && tones[tones.length - 1] === 'good'"),
          page.value("tones"))
    told = page.wait("[document.getElementById('loss_what').textContent].find((x) => x.includes('replaced'))")
    check("console: which worker died is told", told.startswith("attention/1 was lost"), told)
    cost = page.wait("[document.getElementById('loss_cost').textContent].find((x) => x.includes('on average') && "
                     "[...x.matchAll(/(\\d+) (?:kept|got|had|began)/g)].reduce((sum, each) => sum + Number(each[1]), 0) >= 4)")
    check("console: and what it cost", "no request lost" in cost, cost)
    for each in running:
        each.close()
    check("console: the worker has another life", page.wait(
        "document.querySelector('[data-seat=\"attention/1\"]').textContent.includes('life 2')"))
    check("console: the event is in the log", page.value(
        "document.querySelector('#events li.bad .subject') !== null"))


def record_pipeline(page):
    """The staircase of a moment in which requests decode."""
    running = load(4)
    check("console: the pipeline follows by itself", page.wait("document.querySelectorAll('#pipeline svg').length === 1"))
    page.value("document.getElementById('pipeline_record').click()")
    check("console: it stops to follow for a recording", page.value("!document.getElementById('pipeline_follow').checked"))
    page.wait("document.querySelectorAll('#pipeline svg').length === 1 && !document.getElementById('pipeline_record').disabled")
    rows = page.value("[...document.querySelectorAll('#pipeline .seat')].map((each) => each.textContent)")
    check("console: the pipeline has a row for each stream of each worker", {"model/0", "attention/0", "attention/1", "attention/2"}
          <= set(rows), rows)
    drawn = page.value("['slice', 'wait', 'attend_previous'].map((x) => document.querySelectorAll('#pipeline rect.' + x).length)")
    check("console: with slices, waits and attention", all(drawn), drawn)
    for each in running:
        each.close()


def scale(page):
    """An order by its button: refused here, in words (no room for so many is a reason of the service)."""
    page.value("""(() => { const row = [...document.querySelectorAll('#pools tr')].find((x) => x.textContent.startsWith('attention'));
      row.querySelector('input').value = 2; row.querySelector('button').click(); })()""")
    page.wait("document.getElementById('sure').open")
    page.value("document.getElementById('sure_yes').click()")
    told = page.wait("document.getElementById('note').textContent")
    check("console: an order that cannot be is refused with its reason", "attention" in told or "head" in told, told)


def chat(page):
    page.open(API)
    page.wait("document.body?.dataset.ready")
    check("chat: the model is named", page.value("document.getElementById('model').value") != "")
    page.value("document.getElementById('max_tokens').value = 40")
    page.value("document.getElementById('text').focus()")
    page.type(MARKUP)
    page.press("Enter", "\r")
    page.wait("document.querySelectorAll('.assistant .piece').length > 1")
    page.wait("document.getElementById('stop').disabled && document.getElementById('figures').textContent.includes('tokens')")
    check("chat: an answer streams in pieces", page.value("document.querySelectorAll('.assistant .piece').length") > 3)
    check("chat: what was said stays text", page.value("document.querySelector('.user .body').textContent") == MARKUP
          and page.value("document.querySelectorAll('#log img, #log script').length") == 0
          and page.value("document.title") == "Lamella chat")
    page.value("[...document.querySelectorAll('.assistant .piece')].find((x) => x.offsetWidth > 4).id = 'wide'")
    page.value("document.getElementById('wide').scrollIntoView()")
    page.value(TWO_FRAMES)  # the table of a token goes away when the page is scrolled
    page.hover("#wide")
    check("chat: a token has its probability", "%" in page.wait(
        "!document.getElementById('token').hidden && document.getElementById('token').textContent"))


def stop_chat(page):
    page.value("document.getElementById('max_tokens').value = 3000")
    page.value("document.getElementById('text').focus()")
    page.type("and on")
    page.press("Enter", "\r")
    page.wait("document.querySelectorAll('.assistant').length === 2 && document.querySelectorAll('.assistant')[1].querySelector('.piece') !== null")
    page.press("Escape")
    page.wait("document.querySelectorAll('.assistant')[1].textContent.endsWith('stopped')")
    check("chat: an answer is stopped", True)
    page.value("document.getElementById('format').value = 'json_schema'; document.getElementById('schema').value = '{'; 1")
    page.value("document.getElementById('again').click()")
    check("chat: a schema that is none is told", "not JSON" in page.wait("document.getElementById('note').textContent"))


def json_answer(page):
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
    page.value(f"document.getElementById('schema').value = {json.dumps(json.dumps(schema))}; document.getElementById('again').click()")
    shown = page.wait("document.querySelector('.assistant pre')?.textContent")
    check("chat: JSON is shown in lines", shown.startswith("{\n  \"a\": "), shown)


def call_tool(page):
    """A call is shown, its result goes with the next message."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"], "additionalProperties": False}}}
    page.value(f"document.getElementById('tools').value = {json.dumps(json.dumps([tool]))};"
               "document.getElementById('format').value = ''; document.getElementById('tool_choice').value = 'required';"
               "document.getElementById('clear').click(); document.getElementById('text').focus()")
    page.type("is it sunny?")
    page.press("Enter", "\r")
    shown = page.wait("document.querySelector('.call')?.innerText")
    check("chat: a tool call is shown", "weather" in shown and '"sunny": ' in shown, shown)
    page.value("document.getElementById('tool_choice').value = 'none'; document.querySelector('.call input').focus()")
    page.type("it rains")
    page.value("document.getElementById('max_tokens').value = 8; document.getElementById('send').click()")
    page.wait("document.querySelectorAll('.assistant').length === 2 && document.getElementById('stop').disabled")
    told = page.value("document.querySelectorAll('.assistant')[1].className")
    check("chat: its result is taken", "wrong" not in told, page.value("document.getElementById('log').innerText"))


def refuse_markup(page):
    """The policy of the page, asked by who tries."""
    page.wrong.clear()
    tried = page.value("""(() => { try { document.body.innerHTML = '<b>x</b>'; return 'taken'; } catch (error) { return error.name; } })()""")
    check("chat: markup from a script is refused", tried == "TypeError", tried)
    page.wrong.clear()


def main():
    with tempfile.TemporaryDirectory() as profile:
        page = Browser(CHROMIUM, profile)
        try:
            page.size(1280, 900)
            open_console(page)
            nothing_wrong(page, "console", expected=("401",))
            see_topology(page)
            lose_worker(page)
            record_pipeline(page)
            scale(page)
            pictures(page, "console")
            nothing_wrong(page, "console", expected=("409", "400"))
            chat(page)
            pictures(page, "chat")
            stop_chat(page)
            json_answer(page)
            call_tool(page)
            nothing_wrong(page, "chat")
            refuse_markup(page)
        except Exception:
            print("the page:", page.value("document.body.innerText")[:3000])
            raise
        finally:
            page.end()
    sys.exit(1 if failures else 0)


main()
