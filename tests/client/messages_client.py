"""Anthropic's official Python client against a served model; run by tests/client/run."""

import os

import anthropic

import checks

_client = anthropic.Anthropic(base_url=os.environ["API_URL"], api_key="none", max_retries=0,
                              timeout=600)
_model = os.environ.get("MODEL") or "SmolLM2-135M-Instruct.Q4_1"
_question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
_rome = [{"role": "user", "content": "What is the weather in Rome?"}]
_weather = {"name": "get_weather", "description": "The weather of a city.",
            "input_schema": {"type": "object", "additionalProperties": False,
                             "properties": {"city": {"type": "string", "maxLength": 12}},
                             "required": ["city"]}}


def _fields(**more):
    return {"model": _model, "messages": _question, "max_tokens": 40,
            "extra_body": {"temperature": 0}} | more


def _ask(**more):
    return _client.messages.create(**_fields(**more))


def answers_whole():
    got = _ask(system="You are brief.")
    assert got.type == "message" and got.role == "assistant" and got.id.startswith("msg_")
    assert "Paris" in got.content[0].text, got.content
    assert got.stop_reason == "end_turn" and got.stop_sequence is None
    assert got.usage.input_tokens + got.usage.cache_read_input_tokens > 10
    assert got.usage.output_tokens > 2
    blocks = _ask(system=[{"type": "text", "text": "You are brief.",
                           "cache_control": {"type": "ephemeral"}}])
    assert blocks.content[0].text == got.content[0].text


def describes_its_model():
    listed = _client.models.list()
    assert not listed.has_more and listed.first_id == listed.data[0].id, listed
    got = _client.models.retrieve(_model)
    assert got.type == "model" and got.id == got.display_name == _model, got
    assert got.created_at.year >= 2024, got.created_at


def streams_the_same():
    whole = _ask()
    with _client.messages.stream(**_fields()) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    kinds = [e.type for e in _ask(stream=True)]
    assert kinds[:2] == ["message_start", "content_block_start"], kinds
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds


def calls_tools_and_reads_their_results():
    got = _ask(messages=_rome, tools=[_weather], max_tokens=200,
               tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert got.stop_reason == "tool_use", got
    call = got.content[-1]
    assert call.type == "tool_use" and call.name == "get_weather" and "city" in call.input, call
    assert call.id.startswith("toolu_")
    told = _ask(messages=_rome + [
        {"role": "assistant", "content": got.content},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": "17 degrees"}]}],
        tools=[_weather], tool_choice={"type": "none"})
    assert told.content[0].text, told


def streams_calls():
    with _client.messages.stream(**_fields(messages=_rome, tools=[_weather], max_tokens=200,
                                           tool_choice={"type": "tool", "name": "get_weather"})
                                 ) as stream:
        parts = [e.partial_json for e in stream if e.type == "input_json"]
        final = stream.get_final_message()
    assert "".join(parts) and "city" in final.content[0].input, final
    assert final.stop_reason == "tool_use"


def says_why_it_stopped():
    assert _ask(max_tokens=2).stop_reason == "max_tokens"
    word = _ask(stop_sequences=["Paris"])
    assert word.stop_reason == "stop_sequence" and word.stop_sequence == "Paris", word
    full = _ask(max_tokens=100_000, stop_sequences=["."])  # more than the context: an upper bound
    assert full.stop_reason in ("end_turn", "stop_sequence"), full


def holds_the_answer_to_a_schema():
    got = _ask(output_config={"format": {"type": "json_schema", "schema": {"enum": ["yes", "no"]}}})
    assert got.content[0].text in ('"yes"', '"no"'), got


def counts_tokens():
    counted = _client.messages.count_tokens(model=_model, messages=_question, system="Be brief.",
                                            tools=[_weather])
    got = _ask(system="Be brief.", tools=[_weather])
    assert counted.input_tokens == got.usage.input_tokens + got.usage.cache_read_input_tokens


def refuses_in_the_form_of_the_api():
    def refused(kind, **more):
        try:
            _ask(**more)
        except kind as error:
            assert error.body["type"] == "error", error.body
            assert error.request_id, "the header request-id"
            return error.body["error"]
        raise AssertionError(f"{kind.__name__} was not raised for {list(more)}")

    bad = refused(anthropic.BadRequestError, tools=[{"type": "web_search_20250305",
                                                     "name": "web_search"}])
    assert bad["type"] == "invalid_request_error" and bad["param"] == "tools[0].type", bad
    assert refused(anthropic.NotFoundError, model="none")["type"] == "not_found_error"
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    bad = refused(anthropic.BadRequestError, messages=[{"role": "user", "content": [image]}])
    assert bad["param"] == "messages[0].content[0].type", bad


checks.run(globals(), __name__)
