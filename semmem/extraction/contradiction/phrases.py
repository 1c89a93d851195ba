"""What phrases stand for.

A line of ``PHRASES`` reads ``what it stands for: phrase | phrase``. The left side is a list of marks and words:
``#live`` says which attribute the statement gives, ``-`` turns it into its opposite, ``>`` announces a change,
``<`` puts it into the past, ``+`` says that it comes on top, and any other word takes the phrase's place. Phrases
are compared by word stems, the longest first.
"""

from __future__ import annotations

PHRASES = """
-: not | no | never | without | nor | non | lack | nothing | refuse to | refuse | avoid | stay away from
-: steer clear of
-: keep away from | keep off | abstain from | shun | deny | rule out | test negative for | be free of | be free from
-: stop | quit | give up | kick | drop | have give up | cease | abandon | end | no more | swear off | be do with
-: give away | get rid of | sell | throw away | throw out | donate | lose | dispose of | return | cancel
-: unsubscribe from
-: die | pass away | break up | break up with | split up with | split from | separate from | ex | former | finish
-: be over | turn off | switch off | disable | mute | move out of | leave the | leave their | leave his | leave her
-: retire from | retire | resign from | resign | unable to | be unable to | fail to | close | delete | uninstall
-: used to | no longer | cannot | cut out | forgo | skip | misplace | part with
-: come off | recover from | overcome | get over | outgrow | cure of | let go of | call off | fall through
- habit: kick the habit of | break the habit of
> !: switch to | switch over to | switch from | switch | replace | swap | swap out | swap for | change to
> !: change from
> !: move | exchange | exchange for | migrate to | migrate from | migrate | trade for | trade in | move from | rename
> !: instead of
> !: upgrade to | upgrade | downgrade to | downgrade | convert to | convert from | ditch | change over to | supplant
>: change | push to | push back to | push back | postpone to | postpone | reschedule | reschedule to
>: bring forward to
>: instead | these day | nowadays | now | promote to | promote | as of this week | as of | move up to | move back to
>: from now on | anymore | any more | any longer | go up to | go up | go down to | rise to | cut to | be down to
>: be up to | drop to | shift
>: become | extension for | get an extension for | delay to | delay until | since then | no in | put off until
>: after all | rather than | shift to | slip to | correct | be no
>: again | once more | once again | like before | as before | renew | return to | go back to | reinstate | be back to
be: just | recently | currently | at the moment | new | lately | begin | take up | resume | start | actually | back
<: once | used to live | as a child | as a kid | in the past | previously | back then | year ago | formerly
<: at one time
+: also | too | as well | another | in addition | additionally | besides | on top of that | second | other
#live: live in | now live in | live now in | reside | reside in | be base in | be base at | dwell in | settle in
#live: settle down in | be locate in
#live: resident of | be a resident of | make their home in | have make their home in | home be in | hometown be now
#live >: move to | relocate to | relocate | go to live in | go and live in | pack up and go to live in | move house to
#live >: move in to | move into | move back to | have move to | resettle in | move over to | move away to
#live >: move across to
#live -: move out of | move away from | move out
#origin: grow up | grow up in | raise in | be raise in | be bear in | come from | hail from | be from | home town
#origin: hometown
#origin: be originally from | originally from | native of | be a native of | spend childhood in | be bring up in
#origin #past: live in as a child | childhood
#employer employed: work at | work for | be employ by | be employ at | employ | employee of | employer | be with
#employer employed: be on the payroll of | on staff at | draw a salary from | have a job at | hold a job at
#employer employed: work now for
#employer employed: now work at | now work for | work over at
#job employed: work as | practise as | practice as | occupation be | profession be | job title be | earn a living as
#job employed: job title
#job employed: earn their living as | make a living as | work now as | now work as | have a job as | be employ as
#employer employed >: join | be hire by | start at | start a job at | take a job at | find a job at | get a job at
#employer employed >: hire
#employer employed >: land a job at | sign on with | take a position at | start work at | start work for
#employer employed >: move over to
#job employed >: retrain as | start work as | take a job as | get a job as
employed: find a job | land a job | get a job | start a job | have a job | job
- employed: out of work | unemployed | jobless | between job | be lay off | be fire | look for work | out of a job
freelance: self employ | self employed | freelancer | work as a freelancer | be a freelancer | work for themselves
#name: be call | name | name be | be name | go by the name of | go by the name | go by | nickname
#like: like | love | enjoy | adore | be fond of | fond of | be a fan of | fan of | fan | be into | appreciate | favour
#like: big fan | be a big fan of | keen | be keen on | keen on | lover | enthusiast | be passionate about
#like: passionate about
#like: relish | be crazy about | delight in | have a soft spot for | take pleasure in | enthusiastic about
#like: be mad about
#like: have a taste for | have a passion for | get a kick out of | devoted to | take to | big on | like to | love to
#like -: dislike | hate | detest | loathe | despise | cannot stand | can not stand | cannot bear | can not bear
#like -: can no longer stand | stand no longer | disgust | disgusting | gross | find gross | gross out | be bored of
#like -: be tire of | bored of | tired of | fed up with | be fed up with | sick of | be sick of | lose all interest in
#like -: lose interest in | go off | have no time for | put off by | have an aversion to | averse to | awful
#like -: be repel by | revolt | yucky | unbearable | revolting | repulsive | not care for | abhor | grow tired of
#like -: turn against | can not abide | cannot abide | get no pleasure from | no fan of | terrible
#prefer: prefer | would rather have | opt for | choose | like good | like more than | like better | go for | want
#prefer: like better than | like good than | take | drink | order | pick | rather
#favourite: favourite | favorite | like best | like good of all | all time favourite | top choice | number one
#have: have | own | possess | owner of | be the owner of | have get | there be | be in possession of | hold
#have: keep | be the parent of | parent of | include | contain | be equip with
#have: get | buy | adopt | acquire | purchase | obtain | receive | be give | be expect | pass
#use: use | write in | code in | program in | write | program | run on | rely on | work with | pay with
#use: develop in | deploy with | deploy on | deploy | deployment | be on | take note in | track task in | chat on
#use: write code in | employ the tool | make use of | with the help of
#mail: postal address | mail | receive mail | get mail | mail go to | parcel | get parcel deliver
#mail: get parcel deliver to
#mail: parcel go to
#mail: receive mail at | receive parcel | mail for go to | letter | package | deliver to | deliver | go to | post
#address: address | live at
#budget: budget | can spend | plan to spend | spend at most | plan to spend at most | spend up to | can go up to
#budget: go up to | at most | set aside | can afford | afford | be willing to pay | be prepared to pay
#budget: spending limit
#budget: be ready to spend | price limit | allow | have save | will pay | want to spend | ceiling | cap | limit
#age: year old | year of age | turn | age | birthday celebrate | celebrate birthday | celebrate their birthday
#age: be age
#birthday: birthday | be bear on | date of birth | bear on | birth date | bear
#marital married: marry | be marry to | marry to | get marry | tie the knot with | tie the knot | wedding
#marital engaged: be engage to | get engage to | be engage | get engage | say yes to
#marital single: be single | bachelor | not in a relationship | unattached
#marital widow: be widow | widow | widower
#marital seeing: be date | go out with | be in a relationship with | be see
#marital -: divorce | divorce from | be divorce from | file for divorce from | get divorce from
#wake: wake up | get up | rise | be up | wake | alarm go off at | out of bed
#reach: can be reach at | be reach at | reach | contact | dial
email: can be email at | email | e mail
#sleep: sleep | go to bed | nap | take a nap | doze | take nap | have a nap | snooze
#diet: diet | follow a diet | be on a diet
#expire: expire | be valid until | valid until | run out | run until | valid through | be good until
#due: due | deadline | hand in by | submit by | extension until | be due
#drive: drive
#spend: spend | pay | cost | price | payment | rent cost
#study: study | be study | major in | read for a degree in | take a degree in | be enrol in
#learn: learn | be learn | take lesson in | teach themselves
#read: be read
#speak: speak | be fluent in | fluent in | have a command of | can speak
#park: park | parking
#visit: visit | travel to | be in | take a trip to | see the sight of | go to see
#have: suffer from | suffer | be diagnose with | be treat for | deal with | struggle with
#plan: plan | intend | intend to | aim | aim to | goal | hope to | mean to | plan to | be plan
#train: exercise | work out | train
appointment: visit | appointment | meet | see | meeting | have an appointment with | have a meeting with | consult
welldone: well done
height: tall | height
weight: weigh | weight | tip the scale at
measure: length | wide | width | measure | size | be about | floor area | cover
commute: commute | way to work | travel to work | get to work | trip to work | journey to work
walk: walk | go on foot | foot | stroll
bicycle: ride a bike | cycle | bike | bicycle | ride a bicycle | ride a bike to | pedal
run: jog | jogging | running
insomnia: trouble fall asleep | trouble sleep | insomnia | difficulty sleep | sleepless | sleep badly
insomnia: lie awake at night
insomnia: hard to fall asleep | hard time fall asleep | poor sleeper
hypertension: high blood pressure | hypertension
myopia: short sight | short sighted | near sighted | nearsighted | shortsighted | myopia | myopic
diabetes: diabetic | diabetes | high blood sugar
colourblind: colour blind | color blind | can not tell red from green | colourblind
fear: be afraid of | afraid of | be scared of | scare of | fear of | fear | phobia | terrify of | be terrify of
fear: dread
fear: be frighten of | frighten of | have a phobia of
fear spider: arachnophobia | arachnophobic
fear height: acrophobia | vertigo
fear closed: claustrophobia | claustrophobic
fear closed: small space | tight space | confined space | enclosed space
fear fly: aerophobia
allerg: allergic to | be allergic to | allergy to | allergy | have an allergy to | react badly to
allerg: allergic reaction to
celiac: coeliac disease | celiac disease | coeliac | celiac
migraine: bad headache | migraine | severe headache
hayfever: hay fever | pollen allergy | allergic to pollen
arthritis: arthritis | arthritic | inflamed joint
dyslexia: dyslexia | dyslexic
asthma: asthma | asthmatic
deaf: deaf | hard of hear | hear loss | hearing impaired
bald: bald | have no hair
pregnant: pregnant | expect a baby | expect a child | expecting | be expect a baby
leftside: left hand | left handed | write with left hand | write with the left hand | left hander | southpaw | lefty
vegan: vegan | plant base diet | follow a plant base diet | plant base | no animal product
- meat eat: vegetarian | be vegetarian | veggie
- alcohol drink: teetotal | teetotaler | teetotaller | teetotalism | sober | stay sober | be sober
alcohol: liquor | spirits | booze
- smok: non smoker | smoke free
- sibling: only child | be an only child
fly: fly | take plane | plane | take a plane | airplane | aeroplane | flight | air travel | board plane
eat: eat | consume | eat up | have for dinner
kosher: keep kosher | kosher | jewish dietary law | jewish dietary rule
halal: halal | islamic dietary law | islamic dietary rule
pray: pray | prayer
muslim: muslim | islam
jew: jew | jewish | judaism
catholic: catholic | catholicism
atheist: atheist | not believe in god | no religion
mother: mum | mom | mother | mama | mommy
father: dad | father | papa | daddy
grandmother: grandma | granny | gran | nana | nan | grandmother
grandfather: grandpa | grandad | granddad | grandfather
spouse: wife | husband | spouse
partner: girlfriend | boyfriend | partner | significant other | better half | fiance | fiancee
boss: boss | manager | supervisor | line manager | report to
colleague: colleague | coworker | co worker | workmate
child: child | kid | children | offspring
sibling: sibling | brother and sister
roommate: roommate | flatmate | housemate
baby: baby | newborn | infant
lawyer: lawyer | attorney | solicitor | barrister | law practice
doctor: doctor | physician | medic
teacher: teacher | teaching | schoolteacher | teach | educator | instruct
nurse: nurse | nursing
pilot: pilot | airline captain
cook: cook | chef
programmer: programmer | software developer | software engineer | developer | coder
accountant: accountant | bookkeeper | accountancy
journalist: journalist | reporter
firefighter: firefighter | fireman | fire fighter
police: police officer | cop | policeman | policewoman
pharmacist: pharmacist | chemist
estate: realtor | estate agent | real estate agent
vet: veterinarian | veterinary surgeon | vet
pensioner: retiree | pensioner | be retire
electrician: electrician
author: author | novelist | novel writer
actor: actor | actress
optician: optician | optometrist
piano: piano | pianist | play the piano
violin: violin | violinist | play the violin | fiddle
guitar: guitar | guitarist | play the guitar
drum: drum | drummer | play the drums
javascript: javascript | js | ecmascript
typescript: typescript | ts
python: python | py
postgres: postgres | postgresql
kubernetes: kubernetes | k8s
golang: golang | go language | in go
macos: macos | mac os | os x | osx
vscode: vs code | visual studio code | vscode
aws: aws | amazon web service
gcp: gcp | google cloud | google cloud platform
github: github | gh
mongodb: mongo | mongodb
nodejs: node | node js | nodejs
cpp: c plus plus | cpp
excel: excel | microsoft excel | ms excel
newyork: new york city | new york | nyc | big apple
losangeles: los angeles | la
sanfrancisco: san francisco | sf | san fran
unitedstates: united state | usa | us | united states of america | america
unitedkingdom: united kingdom | uk | great britain | britain
washingtondc: washington dc | washington d c | dc
uae: united arab emirates | uae
netherlands: netherland | holland | the netherlands
philadelphia: philadelphia | philly
mexicocity: mexico city | cdmx
saintpetersburg: saint petersburg | st petersburg
munich: munich | munchen
street: st | street | str
road: rd | road
avenue: ave | avenue
notebook: notebook computer | laptop | laptop computer | notebook pc | notebook
television: television | tv | telly
telephone: smartphone | mobile phone | cell phone | mobile | cellphone | phone | telephone | handset
film: film | movie
flat: flat | apartment
car: car | automobile | auto
motorbike: motorbike | motorcycle
bicycle: pushbike
autumn: autumn | fall season
holiday: holiday | vacation | time off
football: soccer | football
licence: licence | license | permit
boat: boat | boating
sofa: sofa | couch
trash: rubbish | trash | garbage
petrol: petrol | gasoline | fuel
aubergine: eggplant | aubergine
courgette: zucchini | courgette
coriander: coriander | cilantro
prawn: prawn | shrimp
sweet: sweet | candy | sweets
fizzy: soda | fizzy drink | soft drink
lift: lift | elevator
garden: garden | gardener | gardening
photograph: photograph | photographer | photography | take photo | take picture | photo
paint: paint | painter | painting
sing: sing | singer | singing
dance: dance | dancer | dancing
early: early bird | morning person | early riser | early
night: night owl | late riser | stay up late | late
introvert: introvert | introverted | shy
curly: curly
glasses: glasses | spectacles | eyeglasses
volunteer: volunteer | do volunteer work
collect stamp: philatelist | stamp collector
bookworm: avid reader | bookworm | read a lot
shop: shopping | groceries shop
"""

OCCUPATIONS = """
accountant actor architect attorney baker barber barista bartender biologist bricklayer butcher carpenter
cashier chef chemist clerk consultant dentist designer doctor economist electrician engineer farmer
firefighter florist gardener geologist hairdresser joiner journalist judge lawyer lecturer librarian locksmith
mechanic midwife miner notary nurse optician paramedic pharmacist physician physicist pilot plumber postman
programmer psychologist realtor receptionist roofer secretary solicitor surgeon surveyor tailor teacher
translator undertaker vet veterinarian waiter waitress welder zoologist
"""
"""``is a ...`` gives the occupation."""
