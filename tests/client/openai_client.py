"""The official Python client against a served model; run by tests/client/run.

Every check is a function named by what it checks. The seed of what is drawn is printed; set
LAMELLA_SEED to draw the same again, and LAMELLA_ALL_ALONE=1 to compare each of the 64 streams.
"""

import asyncio
import json
import os
import random
import time
import urllib.request
from typing import Annotated, Literal, Optional

import checks
import openai
import pydantic

api_url, admin_url = os.environ["API_URL"] + "/v1", os.environ["ADMIN_URL"]
server_pid = int(os.environ["SERVER_PID"])
client = openai.OpenAI(base_url=api_url, api_key="none", max_retries=0, timeout=600)
model = client.models.list().data[0].id
question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
seed = int(os.environ.get("LAMELLA_SEED") or random.randrange(2**32))
rng = random.Random(seed)


def ask(**more):
    fields = {"model": model, "messages": question, "temperature": 0, "max_tokens": 24} | more
    return client.chat.completions.create(**fields)


def slots_of(*states):
    with urllib.request.urlopen(admin_url + "/admin/status", timeout=60) as answer:
        return sum(pool["slots"][state] for pool in json.load(answer)["pools"] for state in states)


def slots_used():
    return slots_of("used")


def slots_taken():
    """In use, or kept for prompts that begin alike."""
    return slots_of("used", "cached")


def resident_bytes():
    with open(f"/proc/{server_pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def wait_until(condition, seconds):
    """True as soon as the condition holds, False when it has not within that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def raises(kind, status, code, **more):
    try:
        ask(**more)
    except kind as error:
        assert error.status_code == status, error.status_code
        assert error.code == code, (error.code, str(error))
        return error
    raise AssertionError(f"{kind.__name__} was not raised for {list(more)}")


def lists_its_models():
    listed = client.models.list().data
    assert listed[0].object == "model" and isinstance(listed[0].created, int)
    assert client.models.retrieve(model).id == model
    try:
        client.models.retrieve("nobody/none")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error.code
    else:
        raise AssertionError("an unknown model was found")


def answers_whole():
    got = ask()
    choice = got.choices[0]
    assert "Paris" in choice.message.content, choice.message.content
    assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length")
    assert got.usage.total_tokens == got.usage.prompt_tokens + got.usage.completion_tokens
    assert got.object == "chat.completion" and got.system_fingerprint.startswith("lamella-")


def streams_the_same():
    whole = ask().choices[0]
    chunks = list(ask(stream=True))
    assert all(len(chunk.choices) == 1 for chunk in chunks)
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.message.content, (text, whole.message.content)
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == [
        whole.finish_reason]
    assert len({(c.id, c.created, c.model) for c in chunks}) == 1


def streams_usage_when_asked():
    whole = ask().usage
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and all(c.usage is None for c in chunks[:-1])
    assert chunks[-1].usage.prompt_tokens == whole.prompt_tokens
    assert chunks[-1].usage.completion_tokens == whole.completion_tokens


def finds_what_was_said_before():
    """The service forgets within seconds here (see `run`): a machine that stands still asks again."""
    messages = [{"role": "system", "content": "You look after ships. " * 20 + str(rng.random())},
                {"role": "user", "content": "Name one."}]
    whole = ask(messages=messages)
    assert whole.usage.prompt_tokens_details.cached_tokens < 60  # what others began with
    follow_up = messages + [{"role": "assistant", "content": whole.choices[0].message.content},
                            {"role": "user", "content": "And another one."}]
    first = ask(messages=follow_up)

    def found():
        again = ask(messages=follow_up)
        assert again.choices[0].message.content == first.choices[0].message.content
        return again.usage.prompt_tokens_details.cached_tokens == again.usage.prompt_tokens - 1

    assert wait_until(found, 120)
    assert ask(messages=follow_up, extra_body={"cache_salt": "other"}
               ).usage.prompt_tokens_details.cached_tokens == 0


def tells_log_probabilities():
    got = ask(logprobs=True, top_logprobs=5)
    entries = got.choices[0].logprobs.content
    ended = got.choices[0].finish_reason == "stop"
    assert len(entries) in (got.usage.completion_tokens, got.usage.completion_tokens - ended)
    for entry in entries:
        tops = [top.logprob for top in entry.top_logprobs]
        assert len(tops) == 5 and tops == sorted(tops, reverse=True), tops
        assert entry.logprob == tops[0] <= 0, "greedy takes the likeliest token"
    text = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert text.startswith(got.choices[0].message.content), text
    streamed = [entry for chunk in ask(logprobs=True, top_logprobs=5, stream=True)
                if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
    assert [(e.token, e.logprob) for e in streamed] == [(e.token, e.logprob) for e in entries]


def gives_several_choices():
    got = ask(n=3, temperature=1, seed=5)
    assert [choice.index for choice in got.choices] == [0, 1, 2]
    texts = [choice.message.content for choice in got.choices]
    assert len(set(texts)) > 1, texts
    assert [c.message.content for c in ask(n=3, temperature=1, seed=5).choices] == texts
    streamed = ["", "", ""]
    for chunk in ask(n=3, temperature=1, seed=5, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts, (streamed, texts)


def repeats_with_a_seed():
    draw = rng.randrange(2**31)
    texts = [ask(temperature=1, seed=s).choices[0].message.content for s in (draw, draw, draw + 1)]
    assert texts[0] == texts[1], texts
    others = [ask(temperature=1.5, seed=s).choices[0].message.content for s in range(3)]
    assert len(set(others)) > 1, others


def ends_at_stop_texts():
    whole = ask().choices[0].message.content
    assert "Paris" in whole
    got = ask(stop=["Paris"]).choices[0]
    assert got.message.content == whole.split("Paris")[0] and got.finish_reason == "stop"
    streamed = "".join(c.choices[0].delta.content or "" for c in ask(stop="ris", stream=True))
    assert streamed == whole.split("ris")[0], streamed


def refuses_with_the_clients_own_errors():
    raises(openai.NotFoundError, 404, "model_not_found", model="nobody/none")
    raises(openai.BadRequestError, 400, "invalid_value", temperature=3)
    raises(openai.BadRequestError, 400, "invalid_value", n=0)
    raises(openai.BadRequestError, 400, "invalid_value", messages=[])
    raises(openai.BadRequestError, 400, "invalid_value", top_logprobs=3)
    raises(openai.BadRequestError, 400, "invalid_value",
           messages=[{"role": "wizard", "content": "x"}])
    long = [{"role": "user", "content": "word " * 20_000}]
    for stream in (False, True):
        error = raises(openai.BadRequestError, 400, "context_length_exceeded", messages=long,
                       stream=stream)
        assert "20" in str(error), error
    try:
        client.embeddings.create(model=model, input="x")
    except openai.APIStatusError as error:
        assert error.status_code == 400 and error.code == "unsupported_endpoint"
    else:
        raise AssertionError("embeddings came from a model that has none")


def completes_plain_prompts():
    def complete(prompt, **more):
        fields = {"model": model, "temperature": 0, "max_tokens": 8} | more
        return client.completions.create(prompt=prompt, **fields)

    one = complete("The capital of France is")
    assert one.object == "text_completion" and one.choices[0].text
    both = complete(["The capital of France is", "Once upon a time"], n=1)
    assert [c.index for c in both.choices] == [0, 1]
    assert both.choices[0].text == one.choices[0].text
    assert both.choices[1].text == complete("Once upon a time").choices[0].text
    streamed = "".join(c.choices[0].text for c in complete("The capital of France is", stream=True))
    assert streamed == one.choices[0].text
    logprobs = complete("The capital of France is", logprobs=2).choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs)
    assert all(len(top) >= 1 for top in logprobs.top_logprobs)


class City(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    country: Literal["France", "Norway", "Japan"]
    population: Optional[int] = pydantic.Field(ge=0, le=40_000_000)
    districts: list[Annotated[str, pydantic.Field(max_length=12)]] = pydantic.Field(max_length=3)


def parses_answers_into_classes():
    """Whatever the model's size: its answers are held to the schema."""
    for i in range(4):
        got = client.chat.completions.parse(model=model, messages=question, response_format=City,
                                            temperature=1, seed=i, max_tokens=300)
        assert isinstance(got.choices[0].message.parsed, City), got
    try:
        client.chat.completions.parse(model=model, messages=question, response_format=City, max_tokens=3)
    except openai.LengthFinishReasonError:
        pass
    else:
        raise AssertionError("three tokens were a whole city")
    whole = ask(response_format={"type": "json_object"}, max_tokens=60).choices[0].message.content
    assert whole.startswith("{"), whole
    picked = ask(extra_body={"guided_choice": ["Paris", "London"]}).choices[0]
    assert picked.message.content in ("Paris", "London") and picked.finish_reason == "stop"
    raises(openai.BadRequestError, 400, "invalid_schema", response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}})


def calls_tools():
    tools = [{"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city now.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"], "additionalProperties": False}, "strict": True}}]
    messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
    fields = {"messages": messages, "tools": tools, "tool_choice": "required", "max_tokens": 200,
              "parallel_tool_calls": False}
    got = ask(**fields).choices[0]
    assert got.finish_reason == "tool_calls" and got.message.content is None, got
    call = got.message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    assert call.function.name == "get_weather" and set(arguments) == {"city", "unit"}, call
    # As a stream, put together by the client.
    with client.chat.completions.stream(model=model, temperature=0, **fields) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == "tool_calls"
    assert streamed.message.tool_calls[0].function.arguments == call.function.arguments
    # The result goes back, and the answer is text.
    messages += [got.message.model_dump(exclude_none=True),
                 {"role": "tool", "tool_call_id": call.id, "content": '{"degrees": -3}'}]
    answer = ask(messages=messages, tools=tools, tool_choice="none", max_tokens=16).choices[0]
    assert answer.message.content and not answer.message.tool_calls, answer
    free = ask(messages=[{"role": "user", "content": "Hello!"}], tools=tools, max_tokens=16).choices[0]
    assert free.finish_reason in ("stop", "length", "tool_calls"), free


def lets_go_when_the_client_leaves():
    stream = ask(stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
    for count, _ in enumerate(stream):
        if count == 5:
            break
    assert slots_used() > 0
    stream.close()
    assert wait_until(lambda: slots_used() == 0, 120), slots_used()


def settled_bytes():
    """Resident memory once it has not moved for three seconds: a pool is trimmed a second after its last
    request, and then pages for the next one are made again, slowly."""
    seen = [resident_bytes()]
    same = lambda: len(seen) > 30 and max(seen[-30:]) <= min(seen[-30:]) * 1.01
    wait_until(lambda: seen.append(resident_bytes()) or time.sleep(0.1) or same(), 60)
    return seen[-1]


async def one_stream(many, index, tokens):
    """Text, token count and finish reason of the index-th of the 64 requests."""
    words = random.Random(index).sample(
        "river stone clock garden winter letter music bridge forest island".split(), 4)
    stream = await many.chat.completions.create(
        model=model, messages=[{"role": "user", "content": f"Write about {', '.join(words)}."}],
        temperature=0.8, seed=index, max_tokens=tokens, stream=True,
        stream_options={"include_usage": True}, extra_body={"ignore_eos": True})
    text, finish, count = "", None, 0
    async for chunk in stream:
        if chunk.usage:
            count = chunk.usage.completion_tokens
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
    return text, count, finish


async def all_streams(indices, together, tokens=256):
    async with openai.AsyncOpenAI(base_url=api_url, api_key="none", max_retries=0,
                                  timeout=600) as many:
        if together:
            return await asyncio.gather(*(one_stream(many, i, tokens) for i in indices))
        return [await one_stream(many, i, tokens) for i in indices]


def serves_64_streams_as_if_each_were_alone():
    alone = range(64) if os.environ.get("LAMELLA_ALL_ALONE") else rng.sample(range(64), 6)
    expected = dict(zip(alone, asyncio.run(all_streams(alone, together=False))))
    # Buffers grow with the first load of this shape: that is no leak.
    asyncio.run(all_streams(range(64), together=True, tokens=32))
    assert wait_until(lambda: slots_taken() == 0, 120), slots_taken()
    before = settled_bytes()
    began = time.monotonic()
    got = asyncio.run(all_streams(range(64), together=True))
    seconds = time.monotonic() - began
    peak = resident_bytes()
    assert all(count == 256 and finish == "length" for _, count, finish in got), got
    for index, wanted in expected.items():
        assert got[index] == wanted, (index, wanted, got[index])
    assert wait_until(lambda: slots_taken() == 0, 120), slots_taken()
    after = settled_bytes()
    print(f"     64 x 256 tokens in {seconds:.1f} s ({64 * 256 / seconds:.0f}/s); resident before "
          f"{before / 1e6:.1f} MB, at the end {peak / 1e6:.1f} MB, after "
          f"{after / 1e6:.1f} MB; {len(expected)} compared with a run alone")
    assert after <= before * 1.05, "memory did not come back to within 5 %"


def main():
    print(f"openai {openai.__version__}, model {model}, LAMELLA_SEED={seed}", flush=True)
    checks.run_all([
        lists_its_models, answers_whole, streams_the_same, streams_usage_when_asked, finds_what_was_said_before,
        tells_log_probabilities, gives_several_choices, repeats_with_a_seed, ends_at_stop_texts,
        refuses_with_the_clients_own_errors, completes_plain_prompts, parses_answers_into_classes, calls_tools,
        lets_go_when_the_client_leaves, serves_64_streams_as_if_each_were_alone])


main()
