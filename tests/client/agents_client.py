"""openai-agents and pydantic-ai as they come, which is by the Responses API; run by tests/client/run.

The default model is small: what it says is its own affair, that the frameworks can read it is ours.
"""

import asyncio
import os

os.environ["OPENAI_BASE_URL"] = os.environ["API_URL"] + "/v1"
os.environ["OPENAI_API_KEY"] = "none"
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents  # noqa: E402
import pydantic  # noqa: E402
import pydantic_ai  # noqa: E402

import checks  # noqa: E402

_model = "SmolLM2-135M-Instruct.Q4_1"
_question = "What is the capital of France? Answer in one sentence."


_loop = asyncio.new_event_loop()  # the frameworks keep their connections in one
asyncio.set_event_loop(_loop)


class _Answer(pydantic.BaseModel):
    capital: str = pydantic.Field(max_length=12)


def agents_answers():
    agent = agents.Agent(name="a", instructions="You are brief.", model=_model,
                         model_settings=agents.ModelSettings(temperature=0, max_tokens=60))
    got = agents.Runner.run_sync(agent, _question)
    assert "Paris" in got.final_output, got.final_output
    assert got.raw_responses[0].usage.total_tokens > 0


def agents_streams():
    async def run():
        agent = agents.Agent(name="a", model=_model,
                             model_settings=agents.ModelSettings(temperature=0, max_tokens=60))
        streamed = agents.Runner.run_streamed(agent, _question)
        text = ""
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        return text, streamed.final_output

    text, final = _loop.run_until_complete(run())
    assert text == final and "Paris" in text, (text, final)


def agents_calls_a_tool():
    asked = []

    @agents.function_tool
    def capital_of(country: str) -> str:
        """The capital of a country."""
        asked.append(country)
        return "Paris"

    agent = agents.Agent(name="a", tools=[capital_of], model=_model,
                         tool_use_behavior="stop_on_first_tool",
                         model_settings=agents.ModelSettings(temperature=0, max_tokens=100,
                                                             parallel_tool_calls=False,
                                                             tool_choice="required"))
    got = agents.Runner.run_sync(agent, _question)
    assert asked and got.final_output == "Paris", (asked, got.final_output)


def agents_reads_a_typed_output():
    agent = agents.Agent(name="a", output_type=_Answer, model=_model,
                         model_settings=agents.ModelSettings(temperature=0, max_tokens=100))
    got = agents.Runner.run_sync(agent, _question)
    assert isinstance(got.final_output, _Answer), got.final_output


def pydantic_ai_answers():
    agent = pydantic_ai.Agent(f"openai:{_model}", system_prompt="You are brief.",
                              model_settings={"temperature": 0, "max_tokens": 60})
    got = agent.run_sync(_question)
    assert "Paris" in got.output, got.output
    more = agent.run_sync("Say it again.", message_history=got.all_messages())
    assert more.output


def pydantic_ai_reads_a_typed_output():
    agent = pydantic_ai.Agent(f"openai:{_model}", output_type=_Answer,
                              model_settings={"temperature": 0, "max_tokens": 100})
    got = agent.run_sync(_question)
    assert isinstance(got.output, _Answer), got.output


def pydantic_ai_streams():
    agent = pydantic_ai.Agent(f"openai:{_model}",
                              model_settings={"temperature": 0, "max_tokens": 60})
    with agent.run_stream_sync(_question) as stream:
        text = "".join(stream.stream_text(delta=True))
    assert "Paris" in text, text


checks.run(globals(), __name__)
