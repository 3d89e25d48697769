"""Short lists of what people say when a conversation goes well or badly; English, and silent on other languages.

They are seeds, not dictionaries: the sentences are compared by meaning, so that "you said that twice" is near "you already told
me that" without sharing a word with it.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPLAINTS = _words(
    "stop repeat repeating repeated already wrong stupid bot robot machine program boring bored nonsense sense bad lie liar "
    "lying idiot weird strange crazy fool dumb annoying shut fuck shit terrible horrible awful confused confusing again same "
    "told asked useless rude"
)
APPROVAL = _words(
    "nice cool great good wow interesting love lovely funny fun thanks thank agree awesome amazing sweet happy glad perfect "
    "excellent wonderful best cute beautiful sure yes yeah ok okay exactly too"
)
DENIALS = _words(
    "no not never nothing don't can't didn't doesn't isn't wasn't won't couldn't why what sorry hate understand mean"
)
FAREWELLS = _words("bye goodbye bb farewell later finish end ciao")
GREETINGS = _words("hi hello hey hiya yo")
QUESTION_WORDS = _words("what where who why how when which whose")
ABOUT_YOU = frozenset(["you", "your", "you're", "u", "yours"])
ABOUT_ME = frozenset(["i", "my", "i'm", "me", "am", "mine"])

USER_SENTENCES = (
    "You already told me that.",
    "Stop repeating yourself.",
    "That makes no sense.",
    "You did not answer my question.",
    "I do not understand you.",
    "You contradict yourself.",
    "Are you a robot?",
    "This is boring.",
    "You are stupid.",
    "Wow, that is great!",
    "That is really interesting, tell me more.",
    "Haha, you are funny.",
    "I agree with you.",
    "It was nice talking to you.",
    "Thank you, that helps.",
    "Tell me about yourself.",
)
"""What users say to show that they are content or not; each is a feature: how near a user's turn comes to it."""

AGENT_SENTENCES = (
    "I do not know.",
    "I am not sure what you mean.",
    "Are you still there?",
    "I am sorry to hear that.",
    "What do you do for a living?",
    "That sounds great, how about you?",
    "I can not answer this.",
    "Nice to meet you, how are you today?",
)
"""What agents fall back on, and what keeps a conversation going."""
