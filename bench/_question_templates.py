"""Questions for an answer, made from its own words by templates: "I grew up in Moldova." gives "Did you grow up in Moldova?"."""

from __future__ import annotations

import re

SWAPPED = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "am": "are",
    "was": "were",
    "you": "I",
    "your": "my",
    "we": "you",
    "our": "your",
    "us": "you",
}
OPENINGS = re.compile(
    r"^(yes|no|yeah|nope|well|sure|definitely|absolutely|of course|honestly|actually|and|but|so)\b[,.! ]*", re.I
)
MOST = 6
"""Questions of an answer."""
TEMPLATES = (
    (r"^i(?:'m| am) (.+)", ("Are you {0}?", "What are you like?")),
    (r"^i (?:really |also |just |absolutely )?(?:like|love|enjoy|prefer) (.+)", ("Do you like {0}?", "What do you like?")),
    (r"^i (?:don't|do not) (.+)", ("Do you {0}?", "Don't you {0}?")),
    (r"^i (?:didn't|did not) (.+)", ("Did you {0}?",)),
    (r"^i(?:'ve| have) (.+)", ("Have you {0}?", "Do you have {0}?")),
    (r"^i (?:was|had|went|got|came|grew|did) (.+)", ("When were you {0}?", "Did you get {0}?", "Where were you {0}?")),
    (r"^i (?:can|could|will|would|should|want to|plan to) (.+)", ("Can you {0}?", "Would you {0}?")),
    (r"^i (?:think|believe|feel|guess) (?:that )?(.+)", ("What do you think about {0}?", "Do you think {0}?")),
    (r"^i (\w+ed) (.+)", ("How come you {0} {1}?", "Did it happen that you {0} {1}?")),
    (r"^i (\w+) (.+)", ("Do you {0} {1}?",)),
    (r"^my (\w+(?: \w+)?) (?:is|are|was|were) (.+)", ("What is your {0}?", "Is your {0} {1}?", "Tell me about your {0}.")),
    (r"^(?:it|that|this)(?:'s| is| was) (.+)", ("How is it?", "Is it {0}?")),
    (r"^(.+?) (?:is|are) (.+)", ("What is {0}?", "Is {0} {1}?", "What do you know about {0}?")),
    (r"^there (?:is|are)(?:n't)? (.+)", ("Is there {0}?", "Are there {0}?")),
    (r"^because (.+)", ("Why?", "Is it because {0}?")),
)  # fmt: skip


def turned(text: str) -> str:
    """From the speaker's side to the asker's: "my mother and me" to "your mother and you"."""
    words = re.findall(r"[\w']+|[^\w']+", text)
    return "".join(SWAPPED.get(word.lower(), word) for word in words)


def questions_for(answer: str) -> list[str]:
    """Some different ones, the first sentences first."""
    made: dict[str, None] = {}
    for sentence in re.split(r"(?<=[.!?])\s+", re.sub(r"\*[^*]*\*|\([^)]*\)", "", answer)):
        plain = OPENINGS.sub("", sentence.strip()).rstrip(".!? ")
        if len(plain.split()) < 2:
            continue
        for pattern, questions in TEMPLATES:
            if match := re.match(pattern, plain, re.IGNORECASE):
                parts = [turned(part) for part in match.groups()]
                made.update(dict.fromkeys(question.format(*parts) for question in questions))
                break
        else:
            made[f"What about {turned(plain)}?"] = None
    return list(made)[:MOST]
