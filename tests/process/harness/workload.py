"""The requests of a run: mixed lengths, endpoints and options, the same for the same seed."""
import json
import random

WORDS = ("the hall and river on a sea in hello there string other thing ring tell her "
         "another seat one end letter no").split()


def make(seed, count, model, canary):
    """A list of {"index", "path", "body"}; some prompts hold the canary, which must stay out of logs."""
    chance = random.Random(seed)
    made = []
    for index in range(count):
        words = chance.choice((3, 8, 8, 20, 40, 90))
        text = " ".join(chance.choice(WORDS) for _ in range(words))
        if index % 4 == 0:
            text = f"{canary} {text}"
        body = {"model": model, "max_tokens": chance.choice((8, 24, 64, 160, 320, 640)),
                "ignore_eos": chance.random() < 0.8}
        if chance.random() < 0.6:
            body |= {"temperature": 0.8, "seed": 1000 + index}
        else:
            body |= {"temperature": 0}
        if chance.random() < 0.2:
            body |= {"n": chance.choice((2, 3))}
            body.setdefault("seed", 1000 + index)
        has_logprobs = chance.random() < 0.7
        if chance.random() < 0.5:
            path = "/v1/completions"
            body["prompt"] = text
            if has_logprobs:
                body["logprobs"] = 1
        else:
            path = "/v1/chat/completions"
            body["messages"] = [{"role": "user", "content": text}]
            if has_logprobs:
                body |= {"logprobs": True, "top_logprobs": 1}
        made.append({"index": index, "path": path, "body": body})
    return made


if __name__ == "__main__":
    import sys
    print(json.dumps(make(int(sys.argv[1]), int(sys.argv[2]), "tiny", "CANARY"), indent=1))
