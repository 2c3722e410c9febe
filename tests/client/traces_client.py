"""Spans of a served model, as OpenTelemetry's own Python SDK begins their traces and its own reader of OTLP reads
them; run by tests/client/run. Collectors that answer 503, late, never, or are not there at all lose spans, never
answers."""

import http.server
import json
import os
import queue
import re
import threading
import time
import urllib.error
import urllib.request

from opentelemetry import propagate
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import TraceState

import checks

_LIMIT = 300  # seconds; only a broken program takes so long


class _Collector:
    """Takes spans on a free port and answers as `answer` says: a status, or None to keep the caller waiting."""

    def __init__(self, answer=200):
        self.answer = answer
        self.calls = queue.Queue()
        self._over = threading.Event()
        outer = self

        class handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = outer.answer
                outer.calls.put((self.path, self.headers["content-type"], body, status))
                if status is None:
                    outer._over.wait(_LIMIT)
                    return
                self.send_response(status)
                reply = ExportTraceServiceResponse().SerializeToString()
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def spans(self, request_id):
        """The spans of a request by their first word, as the official reader reads them."""
        while True:
            path, content_type, body, _ = self.calls.get(timeout=_LIMIT)
            assert path == "/v1/traces" and content_type == "application/x-protobuf", (path, content_type)
            read = ExportTraceServiceRequest.FromString(body)
            assert len(read.resource_spans) == 1
            resource = _attributes(read.resource_spans[0].resource)
            assert resource["service.name"] == "lamella" and resource["service.instance.id"]
            spans = read.resource_spans[0].scope_spans[0].spans
            roots = [x for x in spans if _attributes(x).get("lamella.request.id") == request_id]
            if roots:
                mine = [x for x in spans if x.trace_id == roots[0].trace_id]
                return {x.name.split()[0]: x for x in mine}

    def close(self):
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


def _attributes(of):
    return {x.key: getattr(x.value, x.value.WhichOneof("value")) for x in of.attributes}


def _send_to(url, percent=100):
    """A reload takes another collector."""
    path = os.path.join(os.environ["WORK"], "lamella.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"version: 1\ntraces:\n  endpoint: \"{url}\"\n  sample_percent: {percent}\n")
    request = urllib.request.Request(os.environ["ADMIN_URL"] + "/admin/reload", method="POST")
    with urllib.request.urlopen(request, timeout=_LIMIT) as answer:
        assert answer.status == 200


def _ask(request_id, headers=None, route="/v1/chat/completions", **more):
    """The status and body of an answer."""
    body = {"model": "SmolLM2-135M-Instruct.Q4_1", "max_tokens": 4, "temperature": 0,
            "messages": [{"role": "user", "content": "Name a colour."}]} | more
    request = urllib.request.Request(
        os.environ["API_URL"] + route, data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "x-request-id": request_id} | (headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _metric(series):
    with urllib.request.urlopen(os.environ["ADMIN_URL"] + "/metrics", timeout=_LIMIT) as page:
        found = re.search("^" + re.escape(series) + r" (\S+)$", page.read().decode(), re.MULTILINE)
    return float(found.group(1))


def _until(metric, least):
    until = time.monotonic() + _LIMIT
    while _metric(metric) < least:
        assert time.monotonic() < until, f"{metric} stays below {least}"
        time.sleep(0.05)  # between two looks


def _traced(sampler=sampling.ALWAYS_ON, state=None):
    """A span of the official SDK, and the headers by which it is passed on."""
    tracer = TracerProvider(sampler=sampler).get_tracer("test")
    with tracer.start_as_current_span("client") as span:
        headers = {}
        propagate.inject(headers)
        if state:
            headers["tracestate"] = TraceState(list(state.items())).to_header()
        return span.get_span_context(), headers


def spans_belong_to_the_clients_trace():
    collector = _Collector()
    _send_to(collector.url)
    context, headers = _traced(state={"vendor": "opaque", "other": "1"})
    status, answer = _ask("mine", headers)
    assert status == 200
    spans = collector.spans("mine")
    assert set(spans) == {"chat", "admission", "queue", "prefill", "decode"}, spans
    root = spans["chat"]
    as_int = {"trace": int.from_bytes(root.trace_id, "big"), "parent": int.from_bytes(root.parent_span_id, "big")}
    assert as_int == {"trace": context.trace_id, "parent": context.span_id}
    assert root.kind == Span.SpanKind.SPAN_KIND_SERVER
    assert dict(TraceState.from_header([root.trace_state])) == {"vendor": "opaque", "other": "1"}
    told = _attributes(root)
    usage = answer["usage"]
    assert told[gen_ai.GEN_AI_OPERATION_NAME] == "chat"
    assert told[gen_ai.GEN_AI_REQUEST_MODEL] == told[gen_ai.GEN_AI_RESPONSE_MODEL] == answer["model"]
    assert told[gen_ai.GEN_AI_RESPONSE_ID] == answer["id"]
    assert told[gen_ai.GEN_AI_USAGE_INPUT_TOKENS] == usage["prompt_tokens"]
    assert told[gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS] == usage["completion_tokens"]
    assert [x.string_value for x in told[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS].values] == [
        answer["choices"][0]["finish_reason"]]
    assert told[gen_ai.GEN_AI_REQUEST_STREAM] is False
    assert told[gen_ai.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] > 0
    assert told["http.route"] == "/v1/chat/completions" and told["http.response.status_code"] == 200
    assert [x.name for x in root.events] == ["first_token"]
    stages = [spans[x] for x in ("admission", "queue", "prefill", "decode")]
    assert all(x.parent_span_id == root.span_id and x.trace_id == root.trace_id for x in stages)
    # One ends where the next begins, from the first byte of the request to its last token.
    times = [root.start_time_unix_nano]
    for x in stages:
        assert x.start_time_unix_nano == times[-1] and x.end_time_unix_nano >= times[-1], (x, times)
        times.append(x.end_time_unix_nano)
    assert times[-1] == root.end_time_unix_nano
    assert root.events[0].time_unix_nano == spans["decode"].start_time_unix_nano
    assert abs(root.end_time_unix_nano / 1e9 - time.time()) < _LIMIT
    collector.close()


def clients_decide_what_is_sampled():
    collector = _Collector()
    _send_to(collector.url)
    before = _metric("lamella_traceparents_malformed_total")
    _, unsampled = _traced(sampling.ALWAYS_OFF)
    assert int(unsampled["traceparent"][-2:], 16) & 1 == 0
    assert _ask("unsampled", unsampled)[0] == 200
    assert _ask("malformed", {"traceparent": "00-nonsense-01"})[0] == 200
    assert _ask("refused", temperature=9)[0] == 400
    seen = []
    while "refused" not in seen:
        _, _, body, _ = collector.calls.get(timeout=_LIMIT)
        for span in ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans:
            if span.kind != Span.SpanKind.SPAN_KIND_SERVER:
                continue
            seen.append(_attributes(span)["lamella.request.id"])
            assert not span.parent_span_id
            assert span.status.code != Status.StatusCode.STATUS_CODE_ERROR
    assert seen == ["malformed", "refused"], seen
    assert _metric("lamella_traceparents_malformed_total") == before + 1
    collector.close()


def a_busy_collector_is_asked_again():
    collector = _Collector(503)
    _send_to(collector.url)
    assert _ask("again")[0] == 200
    first = collector.calls.get(timeout=_LIMIT)
    collector.answer = 200
    second = collector.calls.get(timeout=_LIMIT)
    assert first[3] == 503 and second[2] == first[2]
    collector.close()


def collectors_that_do_not_answer_delay_nobody():
    silent, late = _Collector(None), _Collector(None)
    for collector, name in ((silent, "silent"), (late, "late")):
        _send_to(collector.url)
        assert _ask(name + "-first")[0] == 200
        collector.calls.get(timeout=_LIMIT)  # which is not answered
        for i in range(3):
            assert _ask(f"{name}-{i}")[0] == 200
    late.answer = 200
    late._over.set()
    _until("lamella_spans_exported_total", 1)
    silent.close()
    late.close()


def a_collector_that_is_not_there_is_counted_and_said():
    gone = _Collector()
    gone.close()
    _send_to(gone.url)
    dropped = 'lamella_spans_dropped_total{reason="collector"}'
    before = _metric(dropped)
    assert _ask("lost")[0] == 200
    _until(dropped, before + 5)


def without_a_collector_there_are_no_spans():
    _send_to("")
    dropped = sum(_metric(f'lamella_spans_dropped_total{{reason="{x}"}}') for x in ("queue", "collector", "stopped"))
    _, headers = _traced()
    assert _ask("none", headers)[0] == 200
    after = sum(_metric(f'lamella_spans_dropped_total{{reason="{x}"}}') for x in ("queue", "collector", "stopped"))
    assert after == dropped


checks.run(globals(), __name__)
