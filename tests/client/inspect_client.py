"""inspect-ai as it comes, with its OpenAI provider, by the Responses API and by chat completions; run by
tests/client/run.

Small evaluations, one with a tool, whose logs stay in the folder of the run.
"""

import os

os.environ["OPENAI_BASE_URL"] = os.environ["API_URL"] + "/v1"
os.environ["OPENAI_API_KEY"] = "none"
os.environ["INSPECT_LOG_DIR"] = os.environ["WORK"]
os.environ["INSPECT_DISPLAY"] = "none"

import inspect_ai  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import GenerateConfig  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.solver import generate, system_message, use_tools  # noqa: E402
from inspect_ai.tool import tool  # noqa: E402

import checks  # noqa: E402

_model = "openai/SmolLM2-135M-Instruct.Q4_1"
_question = "What is the capital of France? Answer in one sentence."


def _run(task, **config):
    logs = inspect_ai.eval(task, model=_model, **config)
    assert len(logs) == 1 and logs[0].status == "success", logs[0].error
    return logs[0]


def evaluates_questions():
    task = inspect_ai.Task(dataset=[Sample(input=_question, target="Paris"),
                                    Sample(input="Say the word hello.", target="hello")],
                           solver=[system_message("You are brief."), generate()],
                           scorer=includes(),
                           config=GenerateConfig(temperature=0, max_tokens=60))
    log = _run(task)
    assert log.results.completed_samples == 2, log.results
    first = log.samples[0]
    assert "Paris" in first.output.completion and first.scores["includes"].value == "C", first.output
    assert first.output.usage.total_tokens > 0, first.output.usage


def draws_the_same_again_with_a_seed():
    task = inspect_ai.Task(dataset=[Sample(input="Tell a story.", target="x")], scorer=includes(),
                           config=GenerateConfig(temperature=1, seed=7, max_tokens=30))
    by_chat = {"responses_api": False}  # the Responses API has no seed
    one, two = (_run(task, model_args=by_chat).samples[0].output.completion for _ in range(2))
    assert one and one == two, (one, two)


def calls_a_tool():
    asked = []

    @tool
    def capital_of():
        async def execute(country: str) -> str:
            """The capital of a country.

            Args:
                country: its name
            """
            asked.append(country)
            return "Paris"

        return execute

    task = inspect_ai.Task(dataset=[Sample(input=_question, target="Paris")],
                           solver=[use_tools(capital_of(), tool_choice="any"),
                                   generate(tool_calls="single")],
                           scorer=includes(), config=GenerateConfig(temperature=0, max_tokens=100))
    log = _run(task)
    assert asked, log.samples[0].messages


checks.run(globals(), __name__)
