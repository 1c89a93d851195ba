"""The words by which two statements about a user are compared, as tables."""

from __future__ import annotations

STOPWORDS = """a an the of in on at to into onto for from with by as about around roughly
approximately some any and or but
so then than that this these those there here it its their his her he she they them him user users who which
when while be do does did will would can could should may might must have very quite really keen big great
much many lot more most say mention report note tell confirm up down out off over per each every via under
between during still already only own whole all both always usually often mostly near next last get go make
take find thing currently total exactly nearly almost just even ever because feel rather good well way time
kind sort mean like s t re ve d ll m reach ltd inc llc gmbh be know put set seem keep come per week's habit
regularly about follow like try
"""

IRREGULAR = """be: is are was were been being am isn aren wasn weren
have: has had having hasn haven hadn
do: does did done doing don doesn didn
go: goes went gone going
give: gave given
take: took taken taking
get: got gotten getting
sell: sold
buy: bought
leave: left
lose: lost
break: broke broken
wake: woke woken
rise: rose risen
raise: raised raising
write: wrote written writing
speak: spoke spoken
drive: drove driven driving
ride: rode ridden riding
eat: ate eaten
drink: drank drunk
swim: swam swum
run: ran running
sing: sang sung
fly: flew flown flies
see: saw seen
meet: met
find: found
keep: kept
pay: paid
spend: spent
begin: began begun
become: became
grow: grew grown
bring: brought
bear: born
teach: taught
tell: told
say: said says
make: made
send: sent
feel: felt
think: thought
choose: chose chosen
bite: bit bitten
tear: tore torn
swear: swore sworn
cut: cutting
quit: quitted quitting
stop: stopped
die: died dies dying
lie: lying
tie: tied
good: better best
child: children
foot: feet
tooth: teeth
mouse: mice
man: men
woman: women
wife: wives
life: lives_
cactus: cacti
can: could
will: won
let: lets
put: putting
hit: hitting
win: won
sit: sat sits sitting
hear: heard
split: splitting
hold: held
stand: stood
lay: laid
shift: shifted
swap: swapped
marry: married
divorce: divorced
plan: planned planning
program: programming programs programmed programmes
use: uses using
new: newest
no: none
not: n't nt neither
"""

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
