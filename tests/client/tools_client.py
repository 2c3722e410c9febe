"""Tools with the official clients as they come, over the forms of families of models; run by tests/client/run.

The model is tiny and speaks one family's form (speaking_model.py): it calls a tool of its own accord, two where it was
asked for both, and says what it was told.
"""

import asyncio
import enum
import os

os.environ["OPENAI_API_KEY"] = "none"
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents  # noqa: E402
import langchain_core.messages  # noqa: E402
import langchain_core.tools  # noqa: E402
import langchain_openai  # noqa: E402
import openai  # noqa: E402
import pydantic  # noqa: E402
import pydantic_ai  # noqa: E402
import pydantic_ai.models.openai  # noqa: E402

import families  # noqa: E402
import speaking_model  # noqa: E402

_client = _model = None  # of the family that is served
_one, _both = "What is the weather in Oslo?", "What are both the weather and the time in Oslo?"
_said = "It is cold."


class _Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    city: str
    days: int


class _Unit(enum.Enum):
    celsius = "celsius"
    fahrenheit = "fahrenheit"


class _Stop(pydantic.BaseModel):
    place: _Place
    nights: float


class _Trip(pydantic.BaseModel):
    """A trip."""
    name: str
    unit: _Unit
    cheap: bool
    stops: list[_Stop]
    back: _Place | None
    budget: int | str


def _tool(name):
    return {"type": "function", "function": {"name": name, "description": "Of a city.",
                                             "parameters": _Place.model_json_schema()}}


_tools = [_tool("weather"), _tool("clock")]


def _ask(question, **more):
    messages = [{"role": "user", "content": question}] if isinstance(question, str) else question
    return _client.chat.completions.create(model=_model, messages=messages, tools=_tools, **more)


def _names(calls):
    for call in calls:
        _Place.model_validate_json(call.function.arguments)
    return [call.function.name for call in calls]


def _wanted(question):
    return ["weather", "clock"] if question == _both and _model not in speaking_model.calls_once else ["weather"]


def openai_calls_whole_and_as_a_stream():
    for question in (_one, _both):
        whole = _ask(question).choices[0]
        assert whole.finish_reason == "tool_calls" and not whole.message.content, whole
        assert _names(whole.message.tool_calls) == _wanted(question), whole
        assert len({call.id for call in whole.message.tool_calls}) == len(whole.message.tool_calls)
        with _client.chat.completions.stream(model=_model, messages=[{"role": "user", "content": question}],
                                             tools=_tools) as stream:
            events = list(stream)
            streamed = stream.get_final_completion().choices[0]
        assert streamed.finish_reason == "tool_calls" and not streamed.message.content, streamed
        assert [(c.function.name, c.function.arguments) for c in streamed.message.tool_calls] == [
            (c.function.name, c.function.arguments) for c in whole.message.tool_calls], streamed
        assert any(e.type == "tool_calls.function.arguments.delta" for e in events)


def openai_is_told_results_and_answers():
    for question in (_one, _both):
        messages = [{"role": "user", "content": question}]
        message = _ask(messages).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": '{"degrees": -3}'}
                     for call in message.tool_calls]
        told = _ask(messages).choices[0]
        assert told.message.content == _said and told.finish_reason == "stop", told
        assert not told.message.tool_calls
        text = "".join(c.choices[0].delta.content or "" for c in _ask(messages, stream=True))
        assert text == _said, text


def openai_chooses_tools():
    for choice, calls in (("required", ["weather"]), ({"type": "function", "function": {"name": "clock"}}, ["clock"])):
        got = _ask(_one, tool_choice=choice).choices[0]
        assert _names(got.message.tool_calls) == calls, got
    alone = _ask(_both, parallel_tool_calls=False).choices[0]
    assert _names(alone.message.tool_calls) == ["weather"], alone
    none = _ask(_one, tool_choice="none", max_tokens=40).choices[0]
    assert not none.message.tool_calls and none.finish_reason in ("stop", "length"), none


def openai_parses_arguments_into_classes():
    got = _client.chat.completions.parse(model=_model, messages=[{"role": "user", "content": _one}],
                                         tools=[openai.pydantic_function_tool(_Trip)])
    calls = got.choices[0].message.tool_calls
    assert calls and isinstance(calls[0].function.parsed_arguments, _Trip), got


def openai_responses_call_and_answer():
    flat = [{"type": "function", **tool["function"]} for tool in _tools]
    for question in (_one, _both):
        items = [{"role": "user", "content": question}]
        got = _client.responses.create(model=_model, input=items, tools=flat)
        calls = [x for x in got.output if x.type == "function_call"]
        for call in calls:
            _Place.model_validate_json(call.arguments)
        assert [call.name for call in calls] == _wanted(question), got
        with _client.responses.stream(model=_model, input=items, tools=flat) as stream:
            streamed = [x for e in stream if e.type == "response.output_item.done"
                        for x in [e.item] if x.type == "function_call"]
        assert [(x.name, x.arguments) for x in streamed] == [(x.name, x.arguments) for x in calls], streamed
        items += [x.model_dump(exclude_none=True) for x in got.output]
        items += [{"type": "function_call_output", "call_id": x.call_id, "output": "-3"} for x in calls]
        told = _client.responses.create(model=_model, input=items, tools=flat)
        assert told.output_text == _said, told


def _ai_models():
    yield pydantic_ai.models.openai.OpenAIResponsesModel(_model)
    yield pydantic_ai.models.openai.OpenAIChatModel(_model)


def _asked_tools(asked):
    """Two functions that write down what they were asked."""
    def weather(city: str, days: int) -> str:
        """The weather of a city."""
        asked.append(("weather", city, days))
        return "-3"

    def clock(city: str, days: int) -> str:
        """The time in a city."""
        asked.append(("clock", city, days))
        return "12:00"

    return weather, clock


def _check_asked(asked, question):
    assert sorted(x[0] for x in asked) == sorted(_wanted(question)), asked  # they may run at the same time
    assert all(isinstance(x[1], str) and isinstance(x[2], int) for x in asked), asked


def pydantic_ai_runs_the_whole_loop():
    for model in _ai_models():
        for question in (_one, _both):
            asked = []
            got = _loop.run_until_complete(pydantic_ai.Agent(model, tools=_asked_tools(asked)).run(question))
            _check_asked(asked, question)
            assert got.output == _said, got

            async def streamed():
                async with pydantic_ai.Agent(model, tools=_asked_tools(asked)).run_stream(question) as stream:
                    return await stream.get_output()

            asked.clear()
            assert _loop.run_until_complete(streamed()) == _said
            _check_asked(asked, question)


def pydantic_ai_reads_a_typed_output():
    """Its output is the call of a tool, behind that of another one."""
    for model in _ai_models():
        asked = []
        agent = pydantic_ai.Agent(model, tools=_asked_tools(asked), output_type=_Trip)
        got = _loop.run_until_complete(agent.run(_one))
        assert isinstance(got.output, _Trip), got
        _check_asked(asked, _one)


def agents_run_the_whole_loop():
    for model in (_model, agents.OpenAIChatCompletionsModel(_model, openai.AsyncOpenAI())):
        for question in (_one, _both):
            asked = []
            tools = [agents.function_tool(x) for x in _asked_tools(asked)]
            agent = agents.Agent(name="a", tools=tools, model=model)
            got = _loop.run_until_complete(agents.Runner.run(agent, question))
            _check_asked(asked, question)
            assert got.final_output == _said, got

            async def streamed():
                run = agents.Runner.run_streamed(agent, question)
                async for _ in run.stream_events():
                    pass
                return run.final_output

            asked.clear()
            assert _loop.run_until_complete(streamed()) == _said
            _check_asked(asked, question)


def langchain_calls_and_is_told():
    chain = langchain_openai.ChatOpenAI(model=_model).bind_tools(
        [langchain_core.tools.tool(x) for x in _asked_tools([])])
    for question in (_one, _both):
        messages = [langchain_core.messages.HumanMessage(question)]
        got = chain.invoke(messages)
        assert [x["name"] for x in got.tool_calls] == _wanted(question) and not got.invalid_tool_calls, got
        for call in got.tool_calls:
            _Place.model_validate(call["args"])
        whole = None
        for piece in chain.stream(messages):
            whole = piece if whole is None else whole + piece
        assert [(x["name"], x["args"]) for x in whole.tool_calls] == [
            (x["name"], x["args"]) for x in got.tool_calls], whole
        messages += [got] + [langchain_core.messages.ToolMessage("-3", tool_call_id=x["id"]) for x in got.tool_calls]
        told = chain.invoke(messages)
        assert told.content == _said and not told.tool_calls, told


def langchain_reads_a_structured_output():
    model = langchain_openai.ChatOpenAI(model=_model)
    for how in ({}, {"method": "function_calling"}):
        got = model.with_structured_output(_Trip, **how).invoke(_one)
        assert isinstance(got, _Trip), got


def _begin(family, url):
    global _client, _model
    os.environ["OPENAI_BASE_URL"] = url  # where frameworks look for it
    agents.set_default_openai_client(openai.AsyncOpenAI(), use_for_tracing=False)
    _client, _model = openai.OpenAI(max_retries=0, timeout=120), family
    assert _client.models.list().data[0].id == family


_loop = asyncio.new_event_loop()  # the frameworks keep their connections in one
asyncio.set_event_loop(_loop)
families.run(globals(), __name__, _begin)
