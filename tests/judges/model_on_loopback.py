"""A server on loopback that speaks OpenAI's chat completions, with a little model behind it that does what it is told."""

from __future__ import annotations

import json
import re

from loopback import Handler, serving_http

KEY = re.compile(r'^- (".*?"): (.*) → (.*?)\.(?: It may be null\.)?$', re.MULTILINE)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def obedient(prompt, first=True):
    """A JSON object with a fitting value for every key that a prompt asks for; it prefers the first that is shown."""
    answers = {}
    for name, _, form in KEY.findall(prompt):
        listed = [json.loads(text) for text in QUOTED.findall(form)]
        if form.startswith("a whole number from"):
            low, high = re.findall(r"-?\d+", form)[:2]
            value = int(low) if first else int(high)
        elif form.startswith("a number"):
            value = float(re.findall(r"-?\d+(?:\.\d+)?", form)[0]) + 1 if re.search(r"\d", form) else 30
        elif form.startswith('{"best"'):
            value = {"best": listed[2], "worst": listed[-1]}
        elif form.startswith("a list with all of"):
            value = listed
        elif form.startswith("a list"):
            value = listed[:1]
        elif form.startswith("one of"):
            value = listed[0] if first else listed[-1]
        else:
            value = "No remarks."
        answers[json.loads(name)] = value
    return json.dumps(answers)


class Model:
    """What the server says: ``say`` gets the request and gives the text, or (status, headers, text)."""

    def __init__(self, say=None):
        self.requests = []
        self.say = say or (lambda request: obedient(request["messages"][-1]["content"]))

    def __enter__(self):
        model = self

        class Answering(Handler):
            def reply(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                assert self.path == "/v1/chat/completions", self.path
                model.requests.append({**body, "authorization": self.headers.get("authorization")})
                said = model.say(body)
                status, headers, text = said if isinstance(said, tuple) else (200, {}, said)
                content = {
                    "id": "x",
                    "object": "chat.completion",
                    "model": body["model"],
                    "choices": [
                        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                    ],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107},
                }
                answer = json.dumps(content if status == 200 else {"error": {"message": text}}).encode()
                self.answer(status, answer, headers)

        self.serving = serving_http(Answering)
        self.endpoint = f"http://127.0.0.1:{self.serving.__enter__().server_port}/v1"
        return self

    def __exit__(self, *_):
        self.serving.__exit__(None, None, None)
