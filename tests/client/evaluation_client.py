"""lm-eval's local-completions against a served model; run by tests/client/run.

Tasks and texts are files of this test: nothing is fetched.
"""

import json
import math
import os
import pathlib
import urllib.request

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HOME"] = os.environ["WORK"] + "/hugging_face"
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)

import lm_eval
import lm_eval.tasks

import checks

_url = os.environ["API_URL"]
_model = os.environ.get("MODEL") or "SmolLM2-135M-Instruct.Q4_1"
_work = pathlib.Path(os.environ["WORK"]) / "tasks"
_choices = [
    ("The capital of France is", ["Paris", "a small blue teapot", "Madrid"], 0),
    ("Fish live in", ["wooden drawers", "water", "the sun"], 1),
    ("After Monday comes", ["Friday", "the number seven", "Tuesday"], 2),
    ("Snow is cold and", ["white", "electric", "spoken"], 0),
    ("At night the sky is", ["edible", "dark", "made of paper"], 1),
]
_texts = ["The sun rises in the east and sets in the west. \u00c9t\u00e9, \u6771\u4eac.\n",
          "Once there was a king who had three daughters, and the youngest of them was called Anna. "
          * 30]


def _post(path, **body):
    request = urllib.request.Request(_url + path, json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def _scores(prompt, **more):
    got = _post("/v1/completions", model=_model, prompt=prompt, max_tokens=0, echo=True, logprobs=1,
                **more)
    return [choice["logprobs"] for choice in got["choices"]]


def _write_tasks():
    _work.mkdir(exist_ok=True)
    for name, rows in (("choices", [{"question": q, "choices": c, "answer": a} for q, c, a in _choices]),
                       ("texts", [{"text": text} for text in _texts])):
        (_work / (name + ".jsonl")).write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = "dataset_path: json\ntest_split: test\ndataset_kwargs:\n  data_files:\n    test: "
    (_work / "choices.yaml").write_text(
        "task: choices_here\n" + common + str(_work / "choices.jsonl") + "\n"
        "output_type: multiple_choice\n"
        'doc_to_text: "{{question}}"\n'
        'doc_to_choice: "{{choices}}"\n'
        'doc_to_target: "{{answer}}"\n'
        "metric_list:\n  - metric: acc\n  - metric: acc_norm\n")
    (_work / "texts.yaml").write_text(
        "task: texts_here\n" + common + str(_work / "texts.jsonl") + "\n"
        "output_type: loglikelihood_rolling\n"
        'doc_to_text: ""\n'
        'doc_to_target: "{{text}}"\n'
        "metric_list:\n  - metric: bits_per_byte\n  - metric: byte_perplexity\n")


def _evaluate(task, **more):
    _write_tasks()
    arguments = {"model": _model, "base_url": _url + "/v1/completions"} | more
    return lm_eval.simple_evaluate(
        model="local-completions", model_args=arguments, tasks=[task], bootstrap_iters=0,
        task_manager=lm_eval.tasks.TaskManager(include_path=str(_work)), cache_requests=False)


def _likelihoods(result, task):
    return [[response[0] if isinstance(response, (list, tuple)) else response
             for response in sample["filtered_resps"]] for sample in result["samples"][task]]


def multiple_choice_finds_the_tokenizer_and_the_answers():
    got = _evaluate("choices_here")
    assert got["results"]["choices_here"]["acc,none"] >= 0.8, got["results"]
    for (question, choices, _), told in zip(_choices, _likelihoods(got, "choices_here")):
        for choice, likelihood in zip(choices, told):
            begin = _post("/tokenize", model=_model, prompt=question)["count"]
            ours = sum(_scores(question + " " + choice)[0]["token_logprobs"][begin:])
            assert math.isclose(ours, float(likelihood), rel_tol=1e-9), (choice, ours, likelihood)


def lists_of_prompts_and_concurrent_requests_give_the_same():
    alone = _likelihoods(_evaluate("choices_here"), "choices_here")
    for more in ({"batch_size": 4}, {"num_concurrent": 4}):
        assert _likelihoods(_evaluate("choices_here", **more), "choices_here") == alone, more


def rolling_likelihoods_are_those_of_the_text():
    got = _evaluate("texts_here", max_length=128)
    bits = got["results"]["texts_here"]["bits_per_byte,none"]
    assert 0.05 < bits < 3, got["results"]
    # In one piece: the text behind the token that lm-eval puts before it.
    whole = _evaluate("texts_here", max_length=2048)
    prefix = _post("/tokenize", model=_model, prompt=_prefix())["tokens"]
    total = 0
    for text in _texts:
        tokens = _post("/tokenize", model=_model, prompt=text)["tokens"]
        total += sum(_scores(prefix + tokens)[0]["token_logprobs"][1:])
    size = sum(len(text.encode()) for text in _texts)
    ours = -total / size / math.log(2)
    told = whole["results"]["texts_here"]["bits_per_byte,none"]
    assert math.isclose(ours, told, rel_tol=1e-9), (ours, told)


def _prefix():
    with urllib.request.urlopen(_url + "/tokenizer_info", timeout=60) as answer:
        info = json.load(answer)
    return info["bos_token"] or info["eos_token"]


def ids_and_text_of_a_prompt_have_the_same_scores():
    for text in _texts:
        tokens = _post("/tokenize", model=_model, prompt=text)["tokens"]
        assert _scores([text, text]) == _scores([tokens, tokens])
        for scores in _scores(text):
            assert scores["token_logprobs"][0] is None and len(scores["tokens"]) == len(tokens)
            assert scores["text_offset"][0] == 0 and scores["text_offset"][-1] < len(text)


checks.run(globals(), __name__)
