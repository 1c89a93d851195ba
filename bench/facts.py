"""Invented people and what is known of them: facts of several users, and questions whose answer is known.

Every user has twelve people with names that no other user's people have, and some facts of his own. A question names
the person by relation, by name, or by name in a request that does not repeat the fact's words.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

USERS = 10
FACTS_PER_PERSON = 9

_RELATIONS = (
    "sister", "brother", "mother", "father", "cousin", "aunt", "uncle", "neighbour", "colleague", "landlady", "niece",
    "trainer",
)  # fmt: skip
_NAMES = """
Adele Bruno Carla Dario Edda Falk Gerda Hauke Ilse Jonas Kaja Lasse Marta Nils Olga Piet Quirin Rosa Sven Thea
Udo Vera Wim Xenia Yann Zita Anouk Bjarne Celia Derk Elin Fabio Greta Hanno Ines Jaro Klara Lorenz Mona Nando
Oda Pavel Ronja Selma Tarik Ulla Viggo Wanda Ximena Yuri Zora Alva Benno Cora Dunja Emil Frida Gustav Helga Igor
Jette Kuno Lotte Malte Nele Ole Petra Rafi Silke Timo Ursel Vito Wilma Yasmin Zeno Arvid Birte Caspar Dora Egon
Flora Gero Hilda Ivo Julika Knut Liv Marek Nora Otmar Pia Ragna Stellan Tilda Urban Vanja Wolf Ylva Zelda Aurel
Britta Corin Delia Enno Fenja Gandolf Hedda Immo Jolanda Kester Leonie Matteo Nadja Oskar Paula Ruben Signe
Tamme Ute Velten
""".split()
_OF_PEOPLE = (
    ("plays the {}", "Which instrument does {} play?", "I would like to give sheet music to {}, for which instrument?",
     "cello flute harp oboe viola banjo tuba lute piano organ accordion trumpet"),
    ("lives in {}", "Where does {} live these days?", "A parcel has to go to {}, to which city?",
     "Lyon Oslo Porto Ghent Turin Bergen Graz Cork Malmo Basel Delft Split"),
    ("works as a {}", "What does {} do for a living?", "Whom does {} meet all day long at the job?",
     "baker nurse pilot welder tailor judge florist tiler vet chef glazier surveyor"),
    ("cannot eat {}", "What is {} allergic to?", "I cook for {} tonight, what must stay out of the pot?",
     "nuts milk eggs soy wheat shrimp sesame celery kiwi mustard lupin mango"),
    ("drives a {} van", "What colour is the van of {}?", "I wait for {} at the kerb, which car do I look for?",
     "red blue green white black grey yellow brown pink silver orange purple"),
    ("was born in {}", "When was {} born?", "How old will {} be this year?",
     "1951 1948 1963 1977 1985 1990 1969 1958 1944 1981 1996 1973"),
    ("has a dog named {}", "What is the dog of {} called?", "By which name do I call the pet of {}?",
     "Rex Fido Luna Bella Max Milo Otto Ruby Coco Nala Bruno Daisy"),
    ("drinks {} every morning", "What does {} drink in the morning?", "What do I put on the breakfast tray of {}?",
     "tea mocha cocoa mate cider juice water milk coffee chai matcha broth"),
    ("collects {}", "What does {} collect?", "At the flea market, what would make {} happy?",
     "stamps coins maps shells clocks books dolls masks pens kites buttons spoons"),
    ("learns {} on Fridays", "Which language does {} learn?", "In which tongue can I greet {} as a surprise?",
     "Greek Welsh Thai Danish Hindi Czech Swahili Korean Dutch Basque Latvian Farsi"),
    ("is afraid of {}", "What is {} afraid of?", "What should I spare {} on our trip?",
     "heights spiders storms dogs flying crowds needles lifts snakes darkness bees tunnels"),
    ("supports the football club of {}", "Which football club does {} support?", "Whose scarf does {} wear at a match?",
     "Bilbao Leeds Genoa Lens Hull Bari Parma Derby Nantes Bochum Cadiz Lecce"),
    ("studied {} at university", "What did {} study?", "Which degree does {} have?",
     "physics law botany history music geology theology nursing drama optics logic forestry"),
    ("spends every August in {}", "Where does {} go in August?", "Where do I reach {} in the summer holidays?",
     "Crete Corfu Skye Elba Jersey Malta Gotland Madeira Sylt Texel Rhodes Capri"),
    ("wears shoes of size {}", "What is the shoe size of {}?", "I buy boots for {}, how large?",
     "36 37 38 39 40 41 42 43 44 45 46 47"),
    ("broke a {} last winter", "What did {} break last winter?", "Which part of the body does {} have to rest?",
     "wrist toe rib ankle thumb elbow heel knee shoulder finger hip collarbone"),
    ("grows {} on the balcony", "What does {} grow on the balcony?", "Which seedlings do I bring {} in spring?",
     "tomatoes basil mint chillies roses lavender beans cress thyme peas sage chives"),
    ("has a tattoo of a {}", "What is the tattoo of {} of?", "Which picture does {} have on the skin?",
     "swallow whale compass tiger rose lantern comet anchor fox owl cactus beetle"),
)  # fmt: skip
_OF_ONESELF = (
    ("is saving money for a {}", "What am I saving for?", "houseboat sidecar loom kayak kiln telescope piano caravan"
     " greenhouse forge"),
    ("gets up at {} on workdays", "When do I get up on workdays?", "4:40 4:55 5:10 5:25 5:45 6:05 6:20 6:35 6:50 7:15"),
    ("sings {} in a choir", "Which part do I sing in the choir?", "soprano mezzo alto countertenor tenor baritone bass"
     " descant treble contralto"),
    ("takes the tram number {} to work", "Which tram do I take to work?", "2 3 5 6 8 9 11 12 14 17"),
    ("keeps the spare key under the {}", "Where is my spare key?", "flowerpot doormat gnome brick birdhouse bench"
     " bucket lantern barrel ladder"),
    ("wants all temperatures in {}", "Which unit of temperature do I want?", "Celsius Fahrenheit Kelvin Rankine Reaumur"
     " Celsius Fahrenheit Kelvin Rankine Reaumur"),
    ("is reading a novel about {}", "What is the novel about that I am reading?", "whalers miners monks spies pirates"
     " jugglers nomads chemists falconers weavers"),
    ("has an appointment with the dentist on the {}th", "When do I see the dentist?", "4 5 6 7 8 9 10 11 12 13"),
    ("repairs old {} at weekends", "What do I repair at weekends?", "radios clocks mopeds cameras chairs lamps violins"
     " typewriters scooters toasters"),
    ("has a blood pressure tablet called {}", "What is my blood pressure tablet called?", "Amlo Beso Cardo Dilta Enap"
     " Felo Gopten Hypa Irbe Karve"),
    ("cooks {} on Sundays", "What do I cook on Sundays?", "dumplings risotto lentils goulash polenta pierogi paella"
     " ramen moussaka chowder"),
    ("is building a {} out of matches", "What am I building out of matches?", "cathedral frigate windmill castle"
     " viaduct lighthouse tractor pagoda stadium zeppelin"),
)  # fmt: skip
GENERAL = tuple(
    form.format(word)
    for form, words in (
        ("What is the boiling point of {}?", "ethanol mercury ammonia acetone benzene nitrogen"),
        ("Write a function in Python that sorts {}.", "tuples dates fractions words intervals versions"),
        ("Translate '{}' into Spanish.", "the bridge is closed|it rains|two tickets please|the shop opens at nine"),
        ("Who wrote the opera {}?", "Tosca Carmen Fidelio Norma Aida Rusalka"),
        ("How many {} make a mile?", "metres yards inches furlongs feet chains"),
        ("Explain the difference between a {}.", "stack and a queue|mutex and a semaphore|list and a tuple"),
    )
    for word in (words.split("|") if "|" in words else words.split())
)
"""Questions that no user's memories have anything to do with."""


@dataclass(frozen=True, slots=True)
class Fact:
    """``number`` is unique among all facts. ``person`` is a name, empty for a fact of the user's own."""

    number: int
    user: str
    person: str
    content: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a user's, and the numbers of the facts that answer it. ``named``: it names the person, whom nobody
    else knows."""

    user: str
    text: str
    gold: frozenset[int]
    named: bool


@dataclass(frozen=True, slots=True)
class World:
    """Facts of all users, and one question for each."""

    facts: tuple[Fact, ...]
    asked: tuple[Asked, ...]


def user_name(number: int) -> str:
    return f"user-{number:05d}"


def world(seed: int = 1) -> World:
    """1,200 facts about ten users and their people, in an order that mixes the users; the same for the same seed."""
    facts: list[Fact] = []
    asked: list[Asked] = []
    for number in range(USERS):
        for content, person, question, named in _of_user(number, random.Random(f"{seed} {number}")):
            fact = Fact(len(facts), user_name(number), person, content)
            facts.append(fact)
            asked.append(Asked(fact.user, question, frozenset([fact.number]), named))
    order = list(range(len(facts)))
    random.Random(seed).shuffle(order)
    return World(tuple(facts[i] for i in order), tuple(asked[i] for i in order))


def first(some: World, facts: int) -> World:
    """A smaller world: so many facts, and the questions about them."""
    return World(some.facts[:facts], some.asked[:facts])


def turns(count: int) -> Sequence[str]:
    """What users say in conversations: every second one tells something, the others only ask."""
    told = world().facts
    return [
        f"By the way, {_first_person(told[i // 2 % len(told)].content)}"
        if i % 2 == 0
        else GENERAL[i // 2 % len(GENERAL)]
        for i in range(count)
    ]


def _of_user(number: int, dice: random.Random) -> list[tuple[str, str, str, bool]]:
    """Content, person, question, whether it names the person."""
    found: list[tuple[str, str, str, bool]] = []
    for relation, name in zip(_RELATIONS, _NAMES[number * len(_RELATIONS) :], strict=False):
        for kind in sorted(dice.sample(range(len(_OF_PEOPLE)), FACTS_PER_PERSON)):
            form, plain, roundabout, words = _OF_PEOPLE[kind]
            value = dice.choice(words.split())
            question = (plain.format(f"my {relation}"), plain.format(name), roundabout.format(name))[len(found) % 3]
            found.append((f"The user's {relation} {name} {form.format(value)}.", name, question, name in question))
    for form, question, words in _OF_ONESELF:
        found.append((f"The user {form.format(words.split()[number])}.", "", question, False))
    return found


def _first_person(content: str) -> str:
    """The same as the user says it: about his people as it is, about himself in the first person."""
    if content.startswith("The user's "):
        return "my " + content.removeprefix("The user's ")
    verb, _, rest = content.removeprefix("The user ").partition(" ")
    return f"I {({'is': 'am', 'has': 'have'}).get(verb, verb.removesuffix('s'))} {rest}"
