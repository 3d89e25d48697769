"""A scripted assistant that counts the carbohydrates of a meal, with or without each of five interaction strategies.

It plays the domain of Guerini, Falcone and Magnini (SCAI 2018): it asks what was eaten and how much, asks about foods that it does
not know, reads the meal back and sums it up. Without ``strategies`` it is the control of all pairs: neutral, formal, with a stock
answer to whatever it does not expect. Each strategy changes the wording alone, never the count. No model is needed, and the reply
follows from the user's messages alone, so that a wizard may change what was suggested.

Grams per 100 g and portions are typical values in whole grams, so that both versions of a strategy count alike. They are made for
studies, not for medical use; a food table has exact ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from dialometer.agents import AGENTS
from dialometer.agents.interface import Agent, Reply
from dialometer.model.dialogue import Turn

Strategy = Literal["empathy", "formality", "facing", "vocabulary", "alignment"]

# name | grams of carbohydrates per 100 g | grams of one piece or portion | other names
TABLE = """
pasta|31|220|spaghetti, noodles, macaroni, penne, lasagna, lasagne
brown rice|26|180|
rice|28|180|risotto
wholemeal bread|43|30|whole wheat bread, brown bread, wholegrain bread
rye bread|48|32|
bread|49|30|toast, baguette, sarnie, sandwich, sandwiches, slice of bread
bread roll|50|50|roll, bun, bagel
mashed potatoes|17|200|mash, mashed potato
baked potato|21|200|jacket potato, jacket spud
french fries|41|120|fries
potato chips|53|30|crisps, chips
boiled potatoes|20|200|potato, potatoes, spud, spuds
cornflakes|84|40|corn flakes, cereal
oats|68|50|oatmeal, porridge
pizza|33|300|
hamburger|30|105|burger, cheeseburger
flour tortilla|49|50|tortilla, wrap
crackers|61|30|cracker
pancakes|28|40|pancake
chocolate cake|55|90|cake, brownie
cookies|65|15|cookie, biscuit, biscuits
ice cream|24|70|ice-cream, gelato
milk chocolate|59|25|chocolate
sugar|100|4|sugars
honey|82|20|
maple syrup|67|20|syrup
jam|69|20|jelly, marmalade
ketchup|27|15|tomato ketchup
tomato sauce|7|80|marinara
banana|23|118|
apple|14|180|
orange|12|130|
pear|15|175|
grapes|18|80|grape
strawberries|8|100|strawberry
blueberries|14|80|blueberry
raisins|79|30|raisin, sultana, sultanas
peas|16|80|
sweet corn|21|80|corn, sweetcorn, maize
carrots|10|80|carrot
salad|3|80|lettuce, greens
tomatoes|4|120|tomato
broccoli|7|80|
baked beans|21|200|beans
lentils|20|150|lentil, dal, daal
chickpeas|27|150|chickpea, garbanzos, garbanzo
chickpea flour|58|50|
buckwheat|20|180|
vegetable soup|5|300|soup
milk|5|200|
yogurt|5|125|yoghurt
kefir|5|200|
orange juice|10|200|oj, juice
apple juice|11|200|
cola|10|330|coke, soda, pop, soft drink
lemonade|10|330|
beer|4|330|lager, pint
chicken|0|0|turkey
meat|0|0|beef, steak, pork, ham, bacon, sausage, mince
fish|0|0|tuna, salmon, cod, prawns, shrimp
egg|0|0|eggs, omelette
cheese|0|0|cheddar, feta, mozzarella
butter|0|0|oil, olive oil
coffee|0|0|espresso
tea|0|0|cuppa
water|0|0|
diet soda|0|0|diet coke, diet cola, diet pop, zero coke
"""


@dataclass(frozen=True, slots=True)
class Food:
    """A row of the table."""

    name: str
    carbohydrates: int
    portion_g: int


def _read_table() -> dict[str, Food]:
    """Every name of every food, the longer names first, so that the closest one is found."""
    foods: dict[str, Food] = {}
    for line in TABLE.strip().splitlines():
        name, carbohydrates, portion, other_names = line.split("|")
        food = Food(name, int(carbohydrates), int(portion))
        names = [name, *(other.strip() for other in other_names.split(",") if other.strip())]
        foods |= dict.fromkeys(names, food)
    return dict(sorted(foods.items(), key=lambda entry: -len(entry[0])))


FOODS = _read_table()
UNITS = {
    "g": 1, "gr": 1, "gram": 1, "gramme": 1, "kg": 1000, "kilo": 1000, "ml": 1, "cl": 10, "dl": 100, "l": 1000,
    "liter": 1000, "litre": 1000,
    "oz": 28, "ounce": 28, "lb": 454, "pound": 454, "cup": 240, "glass": 200, "mug": 250, "can": 330, "tin": 400, "bottle": 500,
    "tablespoon": 20, "tbsp": 20, "teaspoon": 5, "tsp": 5, "spoon": 15, "handful": 30, "fistful": 30, "ladle": 100,
}  # fmt: skip
PIECES = ("slice", "piece", "bit", "serving", "portion", "helping", "plate", "bowl", "packet", "scoop")
NUMBERS = {
    "half": 0.5, "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "dozen": 12,
}  # fmt: skip
SIZES = {
    "small": 0.7,
    "wee": 0.7,
    "little": 0.7,
    "medium": 1.0,
    "normal": 1.0,
    "usual": 1.0,
    "regular": 1.0,
    "average": 1.0,
}
SIZES |= dict.fromkeys(("big", "large", "huge", "generous", "heaped"), 1.4)
VAGUE = ("plate", "bowl", "portion", "serving", "helping")
"""Measures too loose to count with before the assistant has asked for the amount."""
SIDES = ("salad", "tomatoes", "tomato sauce", "broccoli", "carrots")
"""So few carbohydrates that a usual portion is taken without asking."""
DASH_OF_MILK_G = 30
MEALS = {"brekkie": "breakfast", "brunch": "brunch", "supper": "dinner", "tea": "dinner", "takeout": "dinner"}
MEALS |= {meal: meal for meal in ("breakfast", "lunch", "dinner", "snack")}
MOST_GRAMS = 5000
N_ASKED = 2
"""How often the assistant asks the same thing before it goes on with a usual amount."""

_AMOUNT = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)?|\b(?:" + "|".join(NUMBERS) + r")\b)?\s*(?:of an?\s+)?"
    r"(?P<size>\b(?:" + "|".join(SIZES) + r")\b)?\s*"
    r"(?P<unit>(?<![a-z])(?:" + "|".join((*UNITS, *PIECES)) + r")(?:e?s)?\b)?"
)  # fmt: skip
_PARTS = re.compile(r"\s*(?:[,.](?!\d)|[;!\n]|\band\b|\bwith\b|\bplus\b|\bthen\b|\balso\b)\s*")
_FEELING = re.compile(
    r"\b(sorry|bad|guilty|ashamed|worried|scared|afraid|sad|tired|rough|awful|terrible|messed|unfortunately|stress\w*|upset|lonely|"
    r"annoyed|frustrat\w*|failed|hate|hopeless|overwhelmed|silly|mistake)\b"
)
_YES = re.compile(
    r"^\W*(yes|yeah|yep|yup|correct|right|exactly|ok|okay|sure|that.?s (it|all|right|the lot)|perfect|you got it)\b"
)
_NO_MORE = re.compile(
    r"\b(nothing|no more|that.?s (it|all|the lot)|that is all|that was all|only that|just that)\b|^\W*(no|nope|nah)\W*$"
)
_UNSURE = re.compile(r"\b(not sure|don.?t know|dunno|no idea|usual|normal|average|some|a bit|a little|guess)\b")
_NO = re.compile(r"^\W*(no|nope|nah|not yet|not quite)\W*$")
_REQUEST = re.compile(
    r"^\W*(wait|tell me|can you|could you|would you|what|why|who|where|when|is it|are you|do you|will|should)\b"
)
_GREETING = re.compile(r"^\W*(hi|hello|hey|hiya|good (morning|afternoon|evening))\b[\w\s]{0,12}\W*$")
_SMALL_WORDS = """
a about again all already also an and any anything are around as at ate bad be been big bit bits breakfast brekkie brunch but
can could count day delicious did dinner do eat eaten eating else evening feel first for from full good great had have having
hello here hey hi home how hungry i id im in is it its ive just large last like little lot lunch made make many maybe me meal
meant medium messed more morning much my nice night no not now of on one only or our please plus quite really restaurant
rough roughly small snack so some sorry supper takeout tea than that the then there these think this those three to today
tonight too two unfortunately up very was we well were what which with work worried would yes yesterday you
"""
_NOT_FOOD = frozenset(_SMALL_WORDS.split())
FACING: tuple[tuple[str, str], ...] = (
    (
        r"insulin|dose|medic|doctor|blood sugar|glucose|diabet|run\b|exercise",
        "That is a question for your doctor or diabetes team.",
    ),
    (
        r"calorie|protein|\bfat\b|vitamin|weight|diet\b|healthy",
        "I only know carbohydrates; the packet may tell you that.",
    ),
    (r"remind|alarm|timer|schedule|order|book|buy|call", "I cannot do that for you, but your phone can."),
    (
        r"are you|who (are|made)|your name|human|robot|person|real",
        "I am a program, and counting carbohydrates is all that I do.",
    ),
    (r"recipe|cook|bake|prepare", "I have no recipes, I only count what is on the plate."),
    (r"weather|news|film|movie|music|sport|joke", "I wish I could help with that, but I only know about food."),
    (r"\b(dog|cat|pet|baby)\b", "I only count what people eat. Better ask an expert about that."),
)
BEYOND = "That is beyond me, since I only count carbohydrates."

# formal (control), informal (the strategy formality)
PHRASES = {
    "hello": ("Good day. What did you eat for your last meal?", "Hey there! What did you eat?"),
    "meal": ("What did you eat?", "So what did you eat?"),
    "amount": ("What amount of {foods} did you have?", "How much {foods} was that, roughly?"),
    "unknown": ("I do not know {word}. What is it made of?", "Hmm, {word}? Never heard of it. What's in it?"),
    "still_unknown": (
        "I do not know any of that. What is its main ingredient?",
        "No clue, sorry! What's mostly in it?",
    ),
    "skip": ("I cannot count {word} and have to leave it out.", "Can't count {word}, so that's out."),
    "counted_as": ("I will count it as {base}.", "I'll just count it as {base}."),
    "learned": (
        "I have added {word} to my list as a kind of {base}.",
        "Got it, {word} is on my list now, a kind of {base}!",
    ),
    "usual": ("I have assumed a usual amount.", "I'll just go with a normal amount."),
    "confirm": ("That makes {foods}. Is that all?", "OK, so that's {foods}. Is that it?"),
    "more": ("What else did you have?", "What else was there?"),
    "sum": (
        "Your {meal} of {foods} comes to about {total} g of carbohydrates. I hope this helps. Goodbye.",
        "All done! Your {meal} of {foods} is about {total} g of carbs. Catch you later!",
    ),
    "bye": ("You are welcome. Goodbye.", "No worries, bye!"),
    "stock": (
        "Sorry, I did not understand that. Could you say it again in other words?",
        "Sorry, didn't get that. Say it again?",
    ),
}
COMFORT = (
    "Please do not worry, that happens to everyone.",
    "I am sorry that it is so hard today.",
    "You are doing well by keeping count.",
)


@dataclass(slots=True)
class Entry:
    """Something that was eaten; ``said`` is what the user called it, ``grams`` None until the amount is known."""

    food: Food
    said: str
    grams: float | None = None


@dataclass(slots=True)
class Meal:
    """What the assistant knows after the messages so far."""

    entries: list[Entry] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    learned: dict[str, Food] = field(default_factory=dict)
    word: str = "meal"
    is_read_back: bool = False
    is_done: bool = False
    wants_more: bool = False
    n_asked: int = 0
    n_comforted: int = 0
    said: list[str] = field(default_factory=list)
    """What goes before the next question: comfort, answers, remarks."""

    @property
    def missing(self) -> list[Entry]:
        """What has no amount yet."""
        return [entry for entry in self.entries if entry.grams is None]

    @property
    def total(self) -> int:
        """Grams of carbohydrates."""
        return round(sum(entry.food.carbohydrates * (entry.grams or 0) / 100 for entry in self.entries))


@AGENTS.register("carbohydrates")
class Carbohydrates(Agent):
    """Counts the carbohydrates of a meal. Without strategies it is the control; name one to have its experimental version."""

    strategies: list[Strategy] = Field(default_factory=list, description="Interaction strategies that it follows.")

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        meal, text = Meal(), self._say("hello")
        for turn in history:
            if turn.role == "user":
                text = self._answer(meal, turn.text)
        details = {"carbohydrates_g": meal.total if meal.is_done else None, "n_foods": len(meal.entries)}
        return Reply(text, {**details, "strategies": list(self.strategies)})

    def _answer(self, meal: Meal, message: str) -> str:
        """Takes in one message and says what comes next."""
        # One space each: the patterns below take the square of a row of them, and anybody can send thousands.
        text = re.sub(r"[^\S\n]+", " ", message.lower().replace("’", "'"))
        meal.said = []
        self._comfort(meal, text)
        mentions = _mentions(text, meal.learned)
        if meal.is_done and mentions:  # another meal, with the words learned so far
            meal.entries, meal.unknown, meal.is_done, meal.is_read_back = [], [], False, False
        if _is_aside(text, mentions):
            meal.said.append(self._face(text))
            return self._next(meal)
        if meal.is_done or (_GREETING.match(text) and not meal.entries):
            return self._say("hello" if _GREETING.match(text) else "bye")
        meal.word = next((word for word in MEALS if re.search(rf"\b{word}\b", text)), meal.word)
        if meal.unknown:
            self._describe(meal, text, mentions)
        else:
            self._take_in(meal, text, mentions)
        return self._next(meal)

    def _take_in(self, meal: Meal, text: str, mentions: Sequence[Entry]) -> None:
        """Foods with their amounts, amounts alone, and words that may be foods."""
        is_new = False
        for mention in mentions:
            known = next((entry for entry in meal.entries if entry.food == mention.food), None)
            if known is None:
                meal.entries.append(mention)
                is_new = True
            elif mention.grams is not None:
                known.grams = mention.grams
        was_read_back, meal.is_read_back = meal.is_read_back, False
        is_listing = bool(mentions) or not meal.entries or was_read_back or meal.wants_more
        meal.wants_more = False
        if meal.missing and not is_new and not any(mention.grams for mention in mentions):
            self._amounts(meal, text)
        elif was_read_back and not mentions:
            meal.wants_more = bool(_NO.search(text))
            meal.is_done = not meal.wants_more and bool(_YES.search(text) or _NO_MORE.search(text))
            self._correct(meal, text)
        if is_listing and not (meal.is_done or meal.wants_more):
            is_expected = not meal.entries
            words = _unknown_words(text, is_expected=is_expected)
            meal.unknown += [word for word in words if word not in meal.learned][:2]

    def _amounts(self, meal: Meal, text: str) -> None:
        """Amounts without foods go to those that lack one, in order; after the second try a usual amount is taken."""
        meal.n_asked += 1
        parts = [part for part in _PARTS.split(text) if _grams(part, None) is not None]
        exact = [part for part in parts if re.search(rf"\d\s*({'|'.join(UNITS)})s?\b", part)]
        amounts = [_grams(part, None) or 0.0 for part in (exact if len(exact) >= len(meal.missing) else parts)]
        for entry, grams in zip(meal.missing, amounts, strict=False):
            entry.grams = min(grams * (entry.food.portion_g if grams <= NUMBERS["dozen"] else 1), MOST_GRAMS)
        if meal.missing and (_UNSURE.search(text) or meal.n_asked >= N_ASKED):
            for entry in meal.missing:
                entry.grams = entry.food.portion_g
            meal.said.append(self._say("usual"))

    def _correct(self, meal: Meal, text: str) -> None:
        """An amount alone after the meal was read back corrects the last food."""
        grams = _grams(text, None)
        if grams is not None and meal.entries:
            last = meal.entries[-1]
            last.grams = min(grams * (last.food.portion_g if grams <= NUMBERS["dozen"] else 1), MOST_GRAMS)

    def _describe(self, meal: Meal, text: str, mentions: Sequence[Entry]) -> None:
        """The user explains a word that the table does not have."""
        word = meal.unknown[0]
        meal.n_asked += 1
        if not mentions:
            if _UNSURE.search(text) or _NO_MORE.search(text) or meal.n_asked >= N_ASKED:
                meal.unknown.pop(0)
                meal.n_asked = 0
                meal.said.append(self._say("skip", word=word))
            else:
                meal.said.append(self._say("still_unknown"))
            return
        base = next((mention for mention in mentions if mention.food.carbohydrates), mentions[0])
        meal.unknown.pop(0)
        meal.n_asked = 0
        meal.learned[word] = base.food
        uses_word = "vocabulary" in self.strategies
        meal.entries.append(Entry(base.food, word if uses_word else base.food.name, base.grams))
        meal.said.append(self._say("learned" if uses_word else "counted_as", word=word, base=base.food.name))

    def _next(self, meal: Meal) -> str:
        """The next question or the sum, after what is to be said first."""
        if meal.unknown:
            question = [] if self._say("still_unknown") in meal.said else [self._say("unknown", word=meal.unknown[0])]
        elif not meal.entries:
            question = [self._say("meal")]
        elif meal.wants_more:
            question = [self._say("more")]
        elif meal.missing:
            question = [self._say("amount", foods=_listed([self._name(entry) for entry in meal.missing]))]
        elif meal.is_done:
            meal_word = meal.word if "alignment" in self.strategies else MEALS.get(meal.word, meal.word)
            question = [self._say("sum", foods=self._foods(meal), total=meal.total, meal=meal_word)]
        else:
            meal.is_read_back, meal.n_asked = True, 0
            question = [self._say("confirm", foods=self._foods(meal))]
        return " ".join([*meal.said, *question])

    def _foods(self, meal: Meal) -> str:
        return _listed(
            [
                f"{entry.grams:.0f} g of {self._name(entry)}" if entry.grams else self._name(entry)
                for entry in meal.entries
            ]
        )

    def _name(self, entry: Entry) -> str:
        """What a food is called: as the user said under alignment (and once learned), else as in the table."""
        is_learned = "vocabulary" in self.strategies and entry.said not in FOODS
        return entry.said if "alignment" in self.strategies or is_learned else entry.food.name

    def _comfort(self, meal: Meal, text: str) -> None:
        if "empathy" in self.strategies and _FEELING.search(text):
            meal.said.append(COMFORT[meal.n_comforted % len(COMFORT)])
            meal.n_comforted += 1

    def _face(self, text: str) -> str:
        """An answer to what has nothing to do with the meal."""
        if "facing" not in self.strategies:
            return self._say("stock")
        return next((answer for pattern, answer in FACING if re.search(pattern, text)), BEYOND)

    def _say(self, phrase: str, **words: object) -> str:
        return PHRASES[phrase]["formality" in self.strategies].format(**words)


def _is_aside(text: str, mentions: Sequence[Entry]) -> bool:
    """A question or request that names no amount is not about this meal."""
    is_asked = "?" in text or (not mentions and _REQUEST.match(text))
    return bool(is_asked) and all(not mention.grams for mention in mentions) and not re.search(r"\d", text)


def _mentions(text: str, learned: dict[str, Food]) -> list[Entry]:
    """Foods of the table or learned ones in the order of the text, with their amounts: in the same part of it, or the next."""
    names = {**learned, **FOODS}
    entries: list[Entry] = []
    for part in _PARTS.split(text):
        mentions = list(_mentions_in(part, text, names))
        if not mentions and entries and entries[-1].grams is None:
            entries[-1].grams = _grams(part, entries[-1].food)
        entries += mentions
    return entries


def _mentions_in(part: str, text: str, names: dict[str, Food]) -> Iterator[Entry]:
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    for match in re.finditer(rf"\b({pattern})(?:e?s)?\b", part):
        if match[1] == "tea" and re.search(r"\bfor (my )?tea\b", part):
            continue
        food = names[match[1]]
        grams = _grams(part.replace(match[0], "@"), food) if food.carbohydrates else 0.0
        if food.name == "milk" and re.search(r"\b(tea|coffee|cuppa)\b[^.;]*\bmilk\b", text):
            grams = grams or DASH_OF_MILK_G
        yield Entry(food, match[0], food.portion_g if grams is None and food.name in SIDES else grams)


def _grams(part: str, food: Food | None) -> float | None:
    """The amount in a part of a message: grams, or pieces (at most a dozen) where no food is given; None where there is none."""
    best: float | None = None
    for match in _AMOUNT.finditer(part):
        number, size, unit = match["number"], match["size"], (match["unit"] or "")
        if not (number or size or unit):
            continue
        unit = unit if unit in UNITS else re.sub(r"(?<=ss|sh)es$|s$", "", unit)
        is_countable = bool(re.match(r"\s*@", part[match.end() :])) or food is None
        times = (_number(number) if number else 1.0) * SIZES.get(size or "", 1.0)
        is_grams = bool(number) and not unit and times > NUMBERS["dozen"]
        is_counted = bool(unit) or is_grams or (is_countable and bool(number or size))
        if food is not None and (unit in VAGUE or not is_counted):
            continue  # "a plate of pasta" or "some pasta": how much is asked
        if number in ("a", "an") and not (unit or size or is_countable):
            continue
        per_unit: float = UNITS.get(unit, 0) or (food.portion_g if food is not None else 1)
        amount = times if is_grams else times * per_unit
        if unit in UNITS or best is None:
            best = amount
        if unit in UNITS:
            break
    return None if best is None or best <= 0 else min(best, MOST_GRAMS)


def _number(text: str) -> float:
    return NUMBERS[text] if text in NUMBERS else float(text.replace(",", "."))


def _unknown_words(text: str, *, is_expected: bool) -> Iterator[str]:
    """Parts of a message that name no food of the table and may be one: a noun or two that are left when small words go.

    Where no food ``is_expected``, the message must say that something was eaten.
    """
    is_about_food = is_expected or re.search(
        r"\b(ate|eaten|had|have|having|breakfast|brekkie|lunch|dinner|supper|snack|meal)\b", text
    )
    parts = [part for part in _PARTS.split(text) if part]
    for part in parts:
        words = [word for word in re.findall(r"[^\W\d_]+(?:'\w+)?", part) if len(word) > 2]
        left = [word for word in words if word.replace("'", "") not in _NOT_FOOD and not _is_measure(word)]
        is_named = re.search(r"\b(a|an|some|of|the|two|three|\d+)\b", part) or part is parts[0]
        is_known = any(re.search(rf"\b{re.escape(name)}(?:e?s)?\b", part) for name in FOODS)
        if 1 <= len(left) <= 2 and is_about_food and is_named and not is_known and not _FEELING.search(part):
            yield " ".join(left)


def _is_measure(word: str) -> bool:
    return (
        word in NUMBERS or word in SIZES or any(word in (unit, f"{unit}s", f"{unit}es") for unit in (*UNITS, *PIECES))
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
