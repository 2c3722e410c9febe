"""instructor as it comes, over the forms of families of models; run by tests/client/run.

What it reads is the arguments of a tool that the model must call. The model is one of speaking_model.py.
"""

from typing import Iterable, Literal, Union

import instructor
import openai
import pydantic

import families
import speaking_model

_openai = _model = None  # of the family that is served
_question = [{"role": "user", "content": "What are both the weather and the time in Oslo?"}]


class _District(pydantic.BaseModel):
    name: str
    people: int


class _City(pydantic.BaseModel):
    """A city."""
    name: str
    country: Literal["Norway", "France"]
    coast: bool
    districts: list[_District]
    twin: str | None


class weather(pydantic.BaseModel):
    """The weather of a city."""
    city: str
    days: int


class clock(pydantic.BaseModel):
    """The time in a city."""
    city: str
    days: int


weather.__module__ = clock.__module__ = "tools"  # they are no checks


def reads_a_class():
    got = instructor.from_openai(_openai).chat.completions.create(model=_model, messages=_question,
                                                                  response_model=_City, max_retries=0)
    assert isinstance(got, _City), got


def reads_a_class_as_it_comes():
    parts = list(instructor.from_openai(_openai).chat.completions.create_partial(
        model=_model, messages=_question, response_model=_City, max_retries=0))
    assert len(parts) > 1
    _City.model_validate(parts[-1].model_dump())


def reads_several_calls():
    parallel = instructor.from_openai(_openai, mode=instructor.Mode.PARALLEL_TOOLS)
    got = list(parallel.chat.completions.create(model=_model, messages=_question, max_retries=0,
                                                response_model=Iterable[Union[weather, clock]]))
    wanted = [weather] if _model in speaking_model.calls_once else [weather, clock]
    assert [type(x) for x in got] == wanted, got


def _begin(family, url):
    global _openai, _model
    _openai, _model = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120), family


families.run(globals(), __name__, _begin)
