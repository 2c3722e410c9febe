"""The official Python client's Responses API against a served model; run by tests/client/run."""

import json
import os
from typing import Literal

import openai
import pydantic

import checks

_client = openai.OpenAI(base_url=os.environ["API_URL"] + "/v1", api_key="none", max_retries=0,
                        timeout=600)
_model = _client.models.list().data[0].id
_question = "What is the capital of France? Answer in one sentence."
_weather = {"type": "function", "name": "get_weather", "description": "The weather of a city.",
            "strict": True,
            "parameters": {"type": "object", "additionalProperties": False,
                           "properties": {"city": {"type": "string", "maxLength": 12}},
                           "required": ["city"]}}


def _ask(**more):
    fields = {"model": _model, "input": _question, "temperature": 0, "max_output_tokens": 40} | more
    return _client.responses.create(**fields)


def _raises(kind, param, **more):
    try:
        _ask(**more)
    except kind as error:
        assert error.param == param, (error.param, str(error))
        return
    raise AssertionError(f"{kind.__name__} was not raised for {list(more)}")


def answers_whole():
    got = _ask(metadata={"run": "7"}, instructions="You are brief.")
    assert "Paris" in got.output_text, got.output_text
    assert got.id.startswith("resp_") and got.object == "response" and got.status == "completed"
    assert got.output[0].role == "assistant" and got.output[0].status == "completed"
    assert got.metadata == {"run": "7"} and got.instructions == "You are brief."
    usage = got.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.input_tokens_details.cached_tokens >= 0
    chat = _client.chat.completions.create(
        model=_model, temperature=0, max_tokens=40,
        messages=[{"role": "system", "content": "You are brief."},
                  {"role": "user", "content": _question}])
    assert chat.choices[0].message.content == got.output_text


def streams_numbered_events():
    whole = _ask()
    events = list(_ask(stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events]
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"], kinds
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.completed"], kinds
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == whole.output_text == events[-1].response.output_text
    assert events[-1].response.usage.total_tokens == whole.usage.total_tokens


def streams_through_the_helper():
    with _client.responses.stream(model=_model, input=_question, temperature=0,
                                  max_output_tokens=40) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == text and "Paris" in text


def says_that_it_was_cut():
    got = _ask(max_output_tokens=2)
    assert got.status == "incomplete" and got.incomplete_details.reason == "max_output_tokens"
    assert list(_ask(max_output_tokens=2, stream=True))[-1].type == "response.incomplete"


def calls_tools_and_reads_their_results():
    items = [{"role": "user", "content": "What is the weather in Rome?"}]
    got = _ask(input=items, tools=[_weather], tool_choice="required", max_output_tokens=200,
               parallel_tool_calls=False)
    call = next(x for x in got.output if x.type == "function_call")
    assert call.name == "get_weather" and "city" in json.loads(call.arguments), call
    assert call.call_id.startswith("call_") and got.status == "completed"
    items += [x.model_dump(exclude_none=True) for x in got.output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "17 degrees"})
    told = _ask(input=items, tools=[_weather], tool_choice="none")
    assert told.output_text, told
    asked = _ask(input=items[:1])
    assert told.usage.input_tokens > asked.usage.input_tokens + 20, "call and result are told"


def streams_calls():
    with _client.responses.stream(model=_model, input="What is the weather in Rome?",
                                  temperature=0, max_output_tokens=200, tools=[_weather],
                                  tool_choice={"type": "function", "name": "get_weather"}) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [e for e in events if e.type == "response.function_call_arguments.delta"]
    done = next(e for e in events if e.type == "response.function_call_arguments.done")
    assert "".join(e.delta for e in deltas) == done.arguments == final.output[0].arguments
    assert deltas[-1].snapshot == done.arguments and "city" in json.loads(done.arguments)


def parses_into_a_model():
    class Answer(pydantic.BaseModel):
        capital: Literal["Paris", "Rome"]
        sure: bool

    got = _client.responses.parse(model=_model, input=_question, text_format=Answer, temperature=0,
                                  max_output_tokens=100)
    assert isinstance(got.output_parsed, Answer), got
    obj = _ask(text={"format": {"type": "json_object"}}, max_output_tokens=200)
    if obj.status == "completed":
        assert isinstance(json.loads(obj.output_text), dict)


def tells_log_probabilities():
    got = _ask(include=["message.output_text.logprobs"], top_logprobs=2)
    entries = got.output[0].content[0].logprobs
    assert entries and all(len(x.top_logprobs) == 2 for x in entries)
    assert "".join(x.token for x in entries).startswith(got.output_text)
    streamed = [x for e in _ask(include=["message.output_text.logprobs"], top_logprobs=2,
                                stream=True)
                if e.type == "response.output_text.delta" for x in e.logprobs]
    assert [(x.token, x.logprob) for x in streamed] == [(x.token, x.logprob) for x in entries]
    assert not _ask().output[0].content[0].logprobs


def continues_and_forgets_a_response():
    first = _ask()
    more = _ask(input="And of Italy?", previous_response_id=first.id)
    assert more.previous_response_id == first.id
    told = _ask(input=[{"role": "user", "content": _question},
                       {"role": "assistant", "content": first.output_text},
                       {"role": "user", "content": "And of Italy?"}])
    assert told.output_text == more.output_text and told.usage.input_tokens == more.usage.input_tokens
    assert _client.responses.retrieve(first.id).output_text == first.output_text
    _client.responses.delete(first.id)
    try:
        _client.responses.retrieve(first.id)
    except openai.NotFoundError as error:
        assert error.code == "response_not_found", error.code
    else:
        raise AssertionError("a response that was deleted is still there")
    _raises(openai.NotFoundError, "previous_response_id", previous_response_id=first.id)
    fleeting = _ask(store=False)
    assert fleeting.store is False
    _raises(openai.NotFoundError, "previous_response_id", previous_response_id=fleeting.id)


def refuses_what_it_cannot_do():
    bad = openai.BadRequestError
    _raises(bad, "tools[0].type", tools=[{"type": "web_search"}])
    _raises(bad, "input[0].type", input=[{"type": "item_reference", "id": "msg_1"}])
    _raises(bad, "input[0].content[0].type", input=[{"role": "user", "content": [
        {"type": "input_image", "image_url": "https://example.org/a.png"}]}])
    _raises(bad, "background", background=True)
    _raises(bad, "temperature", temperature=9)
    _raises(openai.NotFoundError, "model", model="nobody/none")


checks.run(globals(), __name__)
