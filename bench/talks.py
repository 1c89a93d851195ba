"""A user with twelve memories, and conversations whose every turn needs another one of them."""

from __future__ import annotations

from collections.abc import Sequence

SYSTEM = (
    "You are a patient assistant for everyday matters. Answer in plain words, ask when something is missing, and keep"
    " to what the person in front of you wants to know."
)

_TOPICS = (
    (
        "The user's sister Ilse lives in Turin and works as a nurse.",
        "I want to send my sister a parcel before the holidays and I am not sure how to go about it. In it will be two"
        " jars of plum jam, a woollen scarf, a book of about four hundred pages and a small wooden toy for the children"
        " next door. The jars worry me most, since the last time one of them broke and everything smelled of plums for"
        " weeks. The post office offers a cheap way without insurance, which takes up to ten days, and a dearer one"
        " with a number by which one can follow the parcel. It should be there on a day when somebody is at home, and"
        " her shifts change every week. Where does my sister live, to which city do I have to address the parcel, and"
        " how would you pack the jars?",
    ),
    (
        "The user is allergic to sesame and mustard.",
        "Six people are coming to dinner on Saturday, and I would like to cook something that I can prepare the day"
        " before. I thought of a large salad to begin with, then flat bread from the pan with three dips, one of them"
        " with chickpeas, and roasted vegetables with a dressing of oil, vinegar and something sharp. For the end there"
        " will be fruit and a cake that one of the guests brings along. The kitchen is small, the oven holds two trays,"
        " and I have only four good knives. What I buy in jars has long lists of ingredients, and I never know what"
        " hides in them. Which ingredients must I leave out because of my allergies, and what could take their place"
        " in the dips and in the dressing?",
    ),
    (
        "The user keeps three beehives behind the shed of the allotment.",
        "The weather service says that we shall have a first night of frost on Thursday, and after it two weeks that"
        " are cold and wet with strong wind from the west. The allotment lies open on that side, the fence has a gap of"
        " two metres since the storm, and the shed only keeps off the worst of it. I have some old boards, a roll of"
        " jute, four bricks and a bag of dry leaves, and one free afternoon before the frost comes. Last winter was so"
        " mild that I did nothing at all, and I do not want to do too much either, because damp is said to be worse"
        " than cold. How do I get my beehives through the winter, how many of them have I got to protect, and in which"
        " order would you do it?",
    ),
    (
        "The user drives a grey Citroen Berlingo of the year 2014.",
        "The workshop has sent me an offer for the coming inspection, and it is longer than I expected. They want to"
        " change the brake discs in front, the brake fluid, the timing belt with the water pump, both filters and the"
        " battery, and they write that the exhaust should be looked at as well. All of it together comes to a little"
        " over eleven hundred, of which more than half is labour. A friend says that some of it can wait for a year,"
        " another says that with so many kilometres nothing should wait, and I understand too little of it to decide."
        " I need the thing every day and cannot be without it for a week. Given which car I drive and how old my car"
        " is, which of these jobs would you have done now?",
    ),
    (
        "The user's dog Bruno is a beagle and nine years old.",
        "Since about three weeks the morning walks are slower than they used to be. We go our usual round through the"
        " park, along the canal and back past the bakery, which was always forty minutes, and now it is nearly an hour"
        " with many pauses. He eats well, drinks perhaps a little more than before, and sleeps a lot in the afternoon."
        " On stairs he hesitates, though once he is on his way he climbs them without a sound. The vet has no free"
        " appointment before the end of next week, unless it is urgent. I wonder whether it is only his age or whether"
        " I should insist. What is normal for a dog of the breed and the age of my dog, and what should I watch for"
        " until the vet sees him?",
    ),
    (
        "The user plays the oboe in the orchestra of the town.",
        "The conductor has handed out the programme for the spring concert, and the second half of it frightens me a"
        " little. There is a slow movement in which I am heard alone for sixteen bars, very softly, over nothing but"
        " low strings, and soon after it a fast passage that goes on for two pages with hardly a place to breathe. We"
        " rehearse on Tuesdays, ten more times before the concert, and at home I can practise for half an hour on most"
        " evenings before the neighbours complain. I get nervous when it is quiet around me, and then my breath gets"
        " short. How should I practise both passages on my instrument in the orchestra, and what helps players of my"
        " instrument when they get nervous?",
    ),
    (
        "The user works as a surveyor for the water board.",
        "My boss has asked me to speak for ten minutes at the open day, to a class of children of about eleven years"
        " and their teachers. I am to say what I do all day, bring something along that they can touch, and have them"
        " try a thing or two outside on the meadow, if it does not rain. I have never spoken to children, and the"
        " pictures that we show to visitors are full of tables and abbreviations. There will be no screen, only a board"
        " and chalk, and some forty metres of grass with a ditch at its end. Three other people speak after me, so I"
        " cannot take longer. What is my job at the water board, how would you tell children about it, and which"
        " experiment could they try on the grass?",
    ),
    (
        "The user prefers trains to planes and always takes a seat on the aisle.",
        "In May I have to be in Vienna for a meeting that begins on a Wednesday at noon and ends on Friday at about"
        " three. The office pays for the journey there and back as long as it stays below four hundred, and for two"
        " nights in a hotel, of which I would gladly spend one with friends in Linz on the way home. I would rather"
        " not get up before six, and I want to be back on Saturday evening at the latest, because on Sunday there is"
        " a christening in the family. There will be one suitcase and a long tube with drawings, which must not be"
        " bent and which nobody likes to see in a corridor. How would I prefer to travel, which seat do I want to"
        " reserve, and what would a good plan for it look like?",
    ),
    (
        "The user is learning Welsh on Friday evenings.",
        "Our teacher wants each of us to give a little talk at the end of the course, five minutes, without reading it"
        " from a sheet. I may choose what it is about, as long as there is a story in it with a beginning and an end."
        " I thought of the flood in our street, when the neighbours carried the piano of an old lady up two flights of"
        " stairs, singing. What I lack is words, above all for things in a house and for water in all its forms, and"
        " I still mix up how words change at their beginning after others. There are seven weeks left, with one lesson"
        " in each of them. Which language am I learning in my course, and how would you plan the seven weeks, so that"
        " I can tell the story by heart?",
    ),
    (
        "The user's flat has a gas boiler of the year 1998.",
        "The owners of our house meet next month, and heating is on the list. Somebody proposes that all of us change"
        " to a heat pump in the yard, somebody else wants to wait until the town lays its pipes for district heating,"
        " which was promised for 2031 and then for 2034. The walls were insulated nine years ago, the windows are"
        " older, and my radiators are of the tall narrow kind. Last winter was expensive, and twice in January there"
        " was no hot water for a day, until a man came and changed a sensor. I would like to go there with numbers and"
        " not only with an opinion. Considering the boiler that heats my flat and how old it is, how long can I wait,"
        " and what should I ask the others?",
    ),
    (
        "The user runs half marathons and injured a knee in spring.",
        "The autumn race is fourteen weeks away and I have let myself be talked into it by two colleagues, who are both"
        " ten years younger. At the moment I get out three times a week, twice for half an hour on the flat and once"
        " for an hour in the hills on Sunday morning, and all of it slowly. The plan that one of them gave me has five"
        " days a week, with sprints in the second week already, and thirty kilometres on each of the last Sundays."
        " That seems much to me, yet he has run six races with it and was never hurt. I would be content to arrive"
        " without pain, at whatever pace. With what happened to my knee this year, how should I train for the race,"
        " and what of that plan would you leave out?",
    ),
    (
        "The user's mother turns eighty on the 14th of June.",
        "It falls to me to organise the birthday party, since my brothers live abroad and will only come for the day."
        " There will be some thirty guests, from a cousin of ninety-one who hears badly to twins of four who hear"
        " everything. The inn by the lake has a room for forty with a terrace, but it needs to know the date and the"
        " number of guests eight weeks before, and it wants a third of the money then. Somebody should speak, somebody"
        " should play, and there ought to be something for the children that is not a screen. I have a list of names,"
        " half of them without an address, and no idea where to begin. When is the birthday of my mother, by when do"
        " I have to tell the inn, and what should I do first?",
    ),
)

MEMORIES = tuple(memory for memory, _ in _TOPICS)
TURNS_MAX = len(_TOPICS)


def said_in(session: int, turns: int) -> Sequence[str]:
    """What the user says in a session, turn by turn; each session begins with another topic."""
    return [_TOPICS[(session + turn) % len(_TOPICS)][1] for turn in range(turns)]
