"""Words and what they are allowed to do. Data only; grammar.py inflects it, recognise.py reasons with it."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STATE_VERBS = _words(
    """live reside work study teach own like love adore enjoy prefer hate dislike loathe detest despise avoid eat
    drink cook bake play run walk cycle bike commute drive ride speak use wear collect volunteer train practice
    practise support follow belong rent raise breed grow manage lead sleep wake suffer weigh measure earn spend
    save pay owe plan intend aim subscribe attend swim hike climb paint draw write code program sing dance read
    watch meditate garden fish hunt sew knit crochet brew smoke vape share celebrate fast pray worship miss fear
    dread care come hail identify report specialise specialize major minor freelance babysit tutor coach keep sail
    surf ski skate box row jog juggle carry host foster employ sell repair restore design run organise organize
    chair mentor tolerate crave favour favor lack observe journal stream podcast blog photograph forage farm keep
    wash shop order start finish refuse struggle react snore stutter stammer lift exercise work stretch listen
    hold trade invest donate tend go take do get make have be stay stand want need hope know translate deliver
    dive fence spin weave carve build park store recycle compost skip nap floss budget root help call phone visit
    chat babysit check text feed walk jam rehearse"""
)
"""Base forms that say something lasting in the present tense ("I bake bread")."""

PASSING_VERBS = _words(
    """need want wonder think know guess mean see understand get hope wish agree disagree hear forget remember
    believe feel say tell ask try look find search appreciate thank promise swear bet doubt suppose assume imagine
    notice realise realize recall request require demand suggest recommend expect apologise apologize regret mind
    deserve seem sound send receive reach pick check click press add put set open close import install change pass
    return print load execute delete create enter select show let come call give make do have recognise recognize
    accept beg second suspect desire concede admit confess please gotta wanna gonna got lost lose figure decide
    point refer repeat insist stand consent confirm cancel authorize authorise notify dispute file reset update
    switch transfer withdraw deposit activate redeem report order book reserve schedule buy purchase return test
    debug run push pull commit merge declare define initialise initialize loop iterate compare compute parse
    convert choose fail succeed win dare care matter wait exceed miss hit cut locate charge swipe track submit
    apply end start stop finish begin leave arrive land wake turn keep stay go be am is are was were would could
    should upload download scroll log sign type copy paste edit rename paraphrase"""
)
"""Base forms that are about this moment, the task or the talk unless a row of objects.py says otherwise."""

LASTING_VERBS = STATE_VERBS - PASSING_VERBS

EVENT_VERBS = _words(
    """live move relocate work study teach graduate buy purchase sell adopt marry divorce quit stop start switch
    migrate finish complete win join leave retire lose break fracture sprain tear twist dislocate injure hurt
    visit travel fly attend pass fail earn learn become found launch publish sign book decide choose pick opt
    settle cancel inherit name meet celebrate turn emigrate immigrate enroll enrol drop grow serve train run swim
    climb hike cycle cross swap upgrade downgrade convert give get take make have go be change quit rent lease
    donate bear raise coach play write paint perform compete place qualify immigrate apprentice intern volunteer
    return land plant build renovate reserve schedule commit register welcome cut order transfer trade ditch
    replace pawn drive eat drink try hate love smoke sleep accept reject resign settle enlist deploy agree"""
)
"""Base forms whose past tense is biography ("I moved to Porto")."""

DOING_VERBS = _words(
    """live work study learn train save plan move expect fly travel visit date write build renovate start take
    recover raise teach do go marry get try prepare intern volunteer look rent retire lease apply head leave host
    run major practise practice drive undergo quit switch come stay join consider see play read use"""
)
"""Base forms whose progressive can be lasting or a plan ("I am learning Welsh")."""

CAN_VERBS = _words(
    """eat drink stand tolerate digest handle swim drive ride afford have do speak play read cook touch bear type
    lift juggle sing dance ski sail fly whistle code program sew knit weld draw paint smell hear walk sleep bend
    abide stomach take recite fit park"""
)

WISH_VERBS = _words(
    """learn become run visit travel move buy lose start quit retire finish marry get adopt climb see open study
    launch publish hike build live work save switch stop have go be"""
)
"""What "I want to ..." must go on with to be a lasting wish."""

SAME_PAST = _words("put set read cut let cost")
"""Verbs whose past looks like the base form and which are more often meant in the present."""

NOT_PAST_ED = _words("need feed speed breed bleed exceed succeed proceed embed shed wed seed weed heed")

DOUBLING = _words("stop plan run swim jog knit get quit win drop ship shop skip trip hit cut set put chat swap nap")

MODALS = _words("can could will would shall should may might must cannot")

ADVERBS = _words(
    """really just also always often never ever usually still only even now currently actually already recently
    finally mostly sometimes generally normally typically rarely seldom hardly barely probably definitely
    certainly mainly strictly absolutely totally truly especially particularly originally formerly officially
    simply quite rather pretty very so too both all no longer kinda sorta literally honestly basically secretly
    regularly occasionally frequently constantly nearly almost previously lately temporarily partly largely sadly
    happily deeply highly strongly personally genuinely once soon then last first"""
)

NOT_ADVERBS_LY = _words("apply rely fly supply reply multiply imply bully rally tally comply ally july italy family")

RELATIONS = _words(
    """newborn mother father mom mum dad mama papa mommy daddy parents parent sister brother sisters brothers
    sibling siblings twin wife husband spouse partner girlfriend boyfriend fiance fiancee fiancé fiancée son
    daughter sons daughters kid kids child children baby toddler stepson stepdaughter stepmother stepfather
    stepmom stepdad grandma grandmother grandpa grandfather granny nana grandparents grandson granddaughter
    grandchild grandchildren aunt uncle cousin cousins niece nephew nieces nephews in-laws mother-in-law father-
    in-law brother-in-law sister-in-law godson goddaughter godfather godmother ex ex-wife ex-husband friend
    friends buddy bestie roommate roommates flatmate housemate neighbor neighbour neighbors neighbours colleague
    colleagues coworker co-worker coworkers boss manager supervisor mentor teacher tutor coach professor advisor
    adviser assistant intern client doctor dentist therapist vet gp physiotherapist landlord landlady accountant
    lawyer teammate bandmate hubby fam family bro sis teen teenager"""
)

PETS = _words(
    """dog cat puppy kitten parrot hamster rabbit bunny horse pony goldfish fish turtle tortoise snake lizard
    gecko bird budgie canary ferret hen hens chicken chickens goat goats cow donkey labrador lab retriever poodle
    beagle dachshund terrier corgi husky collie spaniel bulldog pug greyhound tabby siamese dogs cats pet pets
    guinea iguana cockatiel"""
)

BODY = _words(
    """wrist arm leg ankle knee shoulder hip back neck finger thumb toe foot hand elbow collarbone rib ribs nose
    tooth skin stomach heart hair eyes eye ears ear blood liver kidney kidneys lungs head sleep"""
)
