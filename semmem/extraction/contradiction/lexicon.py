"""The words by which two statements about a user are compared, as tables."""

from __future__ import annotations

from semmem.text import stop_words

SAYS_LITTLE = """
onto around roughly approximately user users may must quite really keen big great much many lot more most say
mention report note tell confirm up down out off over per each every via under between during still already only
own whole all both always usually often mostly near next last get go make take find thing currently total
exactly nearly almost even ever because feel rather good well way time kind sort mean like reach ltd inc llc
gmbh know put set seem keep come habit regularly follow try
"""
"""What two statements may differ in and still say the same, beside words of grammar."""
COMPARED = (
    stop_words.NEGATIONS
    | stop_words.FIRST_AND_SECOND_PERSON
    | (stop_words.QUESTION_WORDS - {"who", "which", "when"})
    | {"if", "too"}
)
"""Words of grammar that do make a difference here. Negations and "too" are marks (``phrases``); facts are told in the
third person, so that "my" or "you" belongs to a title; "how" and "if" begin what a fact is about."""

FORMS = """be: is are was were been being am
have: has had having
do: does did done doing
child: children
foot: feet
tooth: teeth
mouse: mice
man: men
woman: women
wife: wives
cactus: cacti
good: better best
new: newest
can: could
will: won
program: programmes
no: none
not: nt neither
"""
"""Forms that no ending tells, beside those of irregular verbs (``text.verbs``)."""

EXCLUSIVE = frozenset(
    "live origin employer job name favourite mail address budget age birthday marital wake park expire due".split()
)
"""Attributes of which one holds at a time."""

NAMED = frozenset("live origin employer".split())
"""Attributes whose value is compared when it is a name: "lives in Boston" and "lives in a tower" get along."""

MEASURED = frozenset("age budget birthday wake mail address park expire due reach".split())
"""Attributes whose words mean something else unless a number, a day or a time comes with them."""

ONE_AT_A_TIME = frozenset("spouse partner boss landlord dentist mother father employer".split())
"""People of whom one has one at a time."""

PERSONS = frozenset(
    """mother father sister brother son daughter stepson stepdaughter stepmother stepfather spouse partner child uncle
    aunt cousin niece nephew grandmother grandfather grandson granddaughter twin friend neighbour neighbor boss
    colleague tutor mentor coach landlord landlady roommate godson goddaughter godmother godfather sibling parent
    therapist family parents teammate assistant client student team classmate trainer intern stepbrother
stepsister
    fatherinlaw motherinlaw ex""".split()
)

KINDS = """child: son daughter stepson stepdaughter baby
sibling: brother sister
alcohol: wine beer whisky whiskey vodka gin rum cider champagne cocktail
meat: beef pork chicken steak lamb bacon ham turkey sausage burger
fish: salmon tuna cod trout herring
dairy: milk cheese yogurt butter cream
pet: dog cat hamster parrot rabbit guinea tortoise goldfish puppy kitten
instrument: piano violin guitar flute drum cello trumpet"""
"""Who has no children has no daughter; each word is followed by what is covered by it."""

SIDES = """test staging production live prod dev development qa sandbox preprod
work office home private personal business professional school
summer winter spring autumn
front back side upper lower upstairs downstairs rear
kitchen bedroom bathroom livingroom hallway attic basement garage cellar study
morning evening afternoon night lunch dinner breakfast
left right
indoor outdoor
main secondary primary backup guest
weekday weekend
first second third
old young elder older younger eldest youngest
northern southern eastern western"""
"""Words of one line, side by side on the same thing, tell two things apart: the test cluster and the live cluster."""

OPPOSITES = """rare welldone medium | hot cold iced | black milk | dark light | window aisle | short long brief
detailed | loud quiet
sweet savoury dry bitter | strong mild weak spicy | early night late | red white rose | sparkling still
standing ordinary sitting normal | single double | full empty | cheap expensive | formal casual informal
paper digital electronic | tabs spaces | metric imperial | introvert extrovert outgoing | healthy ill sick
rich poor | tall short | married single divorced engaged widowed | vegan meat | manual automatic | meat vegan
morning evening night | alone together | fast slow | cash card | morning afternoon | online person remote
city country countryside | mountain sea beach | soft firm hard | crunchy smooth creamy | male female | cat dog
north south east west | remote office onsite | part full | full half | atheist catholic jew muslim religious
long short bob shoulder | curly straight | blond brown black red grey blonde | still sparkling | open closed
junior senior | beginner advanced | tidy messy | thin thick | vim emacs | android iphone | pc mac"""
