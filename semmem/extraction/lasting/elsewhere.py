"""Closed classes of words in other languages than English, for what features.py looks for.

Only words that are no English ones, each in the form in which it is met: pronouns, what is somebody's own, negations,
to be and to have, words of time and of asking, and, of languages that leave the pronoun out, the commonest verbs of the
first person. Where a script has no spaces, they are looked for within the text.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0400-\u04ff]")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


SAID_OF_ONESELF = _words(
    "soy estoy tengo vivo trabajo curro voy vengo doy llevo hago pongo salgo digo puedo quiero necesito prefiero",
    "busco uso juego estudio gano pago compro cobro cocino bebo duermo toco leo odio detesto colecciono conduzco",
    "conozco debo suelo sigo fui hice tuve estuve tenía vivía compré dejé empecé cambié decidí tendré iré seré nací",
    "sono ho abito faccio vado lavoro devo posso voglio vorrei preferisco mangio bevo prendo gioco suono insegno",
    "cerco guido dormo vendo guadagno alleno esco affitto gestisco capisco soffro evito ero avevo sarò avrò",
    "sou estou",
    "tô tenho moro trabalho vou venho faço quero preciso prefiro gosto odeio adoro tomo jogo estudo dou sei ando",
    "corro ganho durmo leio coleciono fiz tive estive comprei mudei larguei comecei deixei tinha terei serei jestem",
    "mieszkam pracuję jem piję lubię cierpię wolę chcę muszę mogę umiem uczę studiuję gram biorę jeżdżę robię idę",
    "jadę potrzebuję szukam prowadzę używam wynajmuję gotuję czytam kupuję znam planuję zamierzam nienawidzę",
    "uwielbiam zarabiam będę живу работаю люблю хочу могу пользуюсь ненавижу предпочитаю учусь пью ем езжу",
    "беру держу",
    "умею буду планирую замужем женат adım yaşındayım",
)
"""Verbs of the first person in languages that leave its pronoun out."""
SAID_OF_US = _words(
    "vivimos tenemos somos estamos vamos hemos hacemos queremos necesitamos fuimos moramos temos mamy jesteśmy",
    "mieszkamy",
)
OPENING = _words(
    "bin hab habe hatte wohne lebe arbeite brauche mag muss darf kann möchte esse trinke fahre spiele komme kenne",
    "finde heiße studiere lerne verdiene sammle hasse liebe vertrage ziehe sind haben suis habite bosse",
    "travaille heb",
    "woon werk kan moet wil",
)
"""The same of others where they leave it out at the beginning of a clause."""
SELF = (
    _words(
        "ich je j'ai j'habite j'aime j'utilise j'adore jai jsuis jvais jveux jfais jaime jhabite jpeux jdois ik m'n",
        "mezelf conmigo comigo я benimle kendim 나 저 나는 난 나도 나를 나한테 내가 저는 전 저도 저를 저한테 제가",
    )
    | SAID_OF_ONESELF
)
WE = (
    _words(
        "wir uns nous nosotros nosotras nós noi wij onszelf conosco connosco nam nas nami abbiamo siamo",
        "viviamo abitiamo",
        "stiamo мы нас нам нами bizim bizi bize bizde 우리 우린 우리가 우리는 우리도 저희 저희가 저희는",
    )
    | SAID_OF_US
)
MY = _words(
    "mein meine meinen meinem meiner meines unser unsere unseren unserem unserer mon mes notre nos mis nuestro",
    "nuestra nuestros nuestras meu meus minha minhas nosso nossa nossos nossas mío mía míos mías mio mia miei mie",
    "nostro nostra nostri nostre mijn mijne m'n onze mój moja moje mojego mojej moją moim moich nasz nasza nasze",
    "naszego naszej мой моя моё мое мои моего моему моим моём моем моей мою моих моими наш наша наше наши нашего",
    "нашему нашим нашем нашей нашу наших свой своя своё свое свои своего своему своим своей свою своих benim bizim",
    "evim eşim annem babam kızım oğlum kardeşim ablam abim dedem kedim köpeğim işim 제 내 제꺼 내꺼 우리집",
)
ME = _words(
    "mir mich moi mim mij mnie mną мне меня мной bana beni 저를 나를 저한테 나한테 제게",
)
YOU = _words(
    "du dein deine deinen ihr dir dich vous votre toi tú tus usted você teu tua tuo jij jouw jullie twój ci",
    "ciebie ты",
    "вы твой ваш тебе вам senin siz 너 당신",
)
THEY = _words(
    "er ihm ihn seine seinen ihre ihren ils elles leur lui ella él ellos ellas ele eles ela elas lei loro hij zij",
    "haar ona ono oni jego jej он она они его её их onun onlar 그는 그녀는",
)
NEGATED = _words(
    "nicht kein keine keinen keinem keiner nie niemals ohne pas jamais aucun aucune rien sans nunca tampoco não nem",
    "sem non senza nessun niente niet geen nooit zonder nigdy bez не нет без никогда нельзя değil yok hiç 안",
    "못 없어 없어요",
    "않아 않아요",
)
BE = _words(
    "ist sind seid suis sommes sont était soy está están sou são é sono è siamo zijn jest jestem są był była",
    "был была",
    "были değilim 이에요 예요 입니다 이야",
)
HAVE = _words(
    "habe haben hatte j'ai avons avez ont tengo tiene tienen tenemos tenho tem têm temos ho abbiamo hanno heb heeft",
    "hebben mamy miał miała есть был var 있어 있어요 있습니다",
)
CHANGE = _words(
    "jetzt inzwischen mittlerweile stattdessen doch mehr umgezogen gewechselt maintenant désormais finalement plutôt",
    "déménagé changé ahora mejor mudado mudamos cambié cambiado agora mudei mudou adesso invece cambiato traslocato",
    "inmiddels toch verhuisd teraz już jednak теперь уже переехал переехала переехали artık şimdi taşındık",
    "이제 이사했어",
    "바꿨어",
)
ALWAYS = _words(
    "immer jede jeden jedes meistens seit toujours chaque souvent depuis siempre cada desde sempre ogni altijd elke",
    "sinds zawsze zwykle codziennie всегда каждый каждую обычно 항상 매일 매주",
)
TIME = _words(
    "montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz juni juli oktober",
    "dezember heute",
    "morgen gestern woche monat jahr jahre jahren uhr lundi mardi mercredi jeudi vendredi samedi dimanche janvier",
    "février avril juin juillet août septembre octobre novembre décembre demain semaine mois ans lunes martes",
    "miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio septiembre octubre noviembre",
    "diciembre hoy mañana ayer semana mes año años segunda terça quarta quinta sexta fevereiro março maio",
    "junho julho",
    "setembro outubro novembro dezembro amanhã ontem hoje ano anos lunedì martedì mercoledì giovedì venerdì sabato",
    "domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre oggi domani ieri",
    "settimana anni",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag januari maart augustus vandaag gisteren jaar",
    "poniedziałek wtorek środa czwartek piątek sobota niedziela roku dziś jutro wczoraj понедельник вторник среду",
    "среда четверг пятницу пятница субботу суббота воскресенье сегодня завтра вчера лет год года неделю месяц bugün",
    "yarın dün hafta yıl",
)
PLEASE = _words(
    "bitte s'il favor favore alsjeblieft graag proszę пожалуйста подскажи подскажите помоги помогите lütfen",
)
IF = _words(
    "wenn falls angenommen supón imagina imagine jeśli jeżeli gdyby gdybym если допустим представь eğer",
    "diyelim 만약 만일",
)
SAYS = _words(
    "sagt sagte meint schreibt laut dit selon dijo según diz disse zegt zei mówi powiedział говорит сказал dedi",
)
ASKS = _words(
    "welche welcher welches wieviel wessen wie warum wann où quand combien quel quelle quels quelles pourquoi qué",
    "cómo cuál cuándo dónde quién cuánto cuánta cuántos onde quando quem qual quanto perché quale cosa hoe waar",
    "waarom wanneer welke jak gdzie kiedy dlaczego ile jaki jaka czy что как где когда почему сколько какой какая",
    "какие ne nasıl nerede neden kaç hangi 뭐 어떻게 언제 어디 왜 어떤 몇",
)
_ENDING = re.compile(
    r"(?:\w{3,}[aeio]mos|\w+iamo|\w+[ei]remo|\w+ł(?:em|am)|\w+liśmy|\w+łyśmy|\w{2,}uję"
    r"|\w+(?:yorum|yoruz|[yd]ım|tım|[dt]üm|acağım|eceğim|ımız|ümüz|mışım|mişim|larım|lerim))",
    re.IGNORECASE,
)
"""Of verbs that say who speaks, and of what is somebody's: Spanish, Portuguese, Italian, Polish, Turkish."""
_ENDING_WITHIN = re.compile(
    r"[てで]い?ます|[てで]る|てた|ました|たい|つもり|ことに[しす決]|[歳持]ちです|歳です|もらっ|くれ|살아|다녀"
    r"|해요|했어|하려고|할 거|하기로|거든|먹어"
)
"""The same in Japanese and Korean."""
_OPENS_WITHIN = re.compile(r"\W*(?:住|现居|現居|家[里裡]|养了|養了|[对對]|不[吃喝会會]|想|打算|[决決]定|每[天周週])")
"""Of Chinese, where it leaves out who."""
_ON = re.compile(
    r"\bon (?:(?:n'|ne |y |s'|se |l'|les? |la |en |nous ){0,2}(?:est|va|vit|fait|veut|peut|doit|part|sera|aura"
    r"|était|avait"
    r"|habite|prend|mange|met|voyage|quitte|compte|cherche|utilise|joue|travaille|garde|attend|achète|vend|loue)\b"
    r"|(?:n'|l'|y )?a \w{0,20}(?:é|[iu]|pris|mis|fait|un|une|des|deux|trois|pas)\b)"
    r"|\bm'(?:a|ont|est|i\w+|e\w+|appelle|occupe)\b|\b(?:chez (?:nous|moi)|a gente|bei (?:mir|uns)|bij (?:mij|ons)"
    r"|(?:cá|lá) em casa|u (?:mnie|nas)|у (?:меня|нас))\b",
    re.IGNORECASE,
)
"""French "on" and object pronouns, and what is at somebody's home."""
_WITHIN = {
    "SELF": re.compile(
        r"(?<!自)我(?![国國])|[咱俺僕]|(?<!公)私(?![自立人信下生])|わたし|わたくし|あたし|ぼく|ボク|おれ|オレ"
        r"|自分[はがもの]|うち[はがも]"
        r"|本人|当方"
    ),
    "WE": re.compile(r"[我咱俺][们們哋]|(?:私|僕|俺|わたし)(?:たち|達|ら)|我々|[我わ]が家|うちら|うち[はの]"),
    "MY": re.compile(
        r"我(?:的|家|妈|媽|爸|爷|爺|奶|外公|外婆|哥|姐|弟|妹|儿|兒|女|老|丈|妻|先|太|男|孩|娃|们|們|公司|爱人)"
        r"|咱家|本店"
        r"|(?:私|僕|俺|うち|自分|わたし)の|(?<!お)(?:母|父|夫|妻|旦那|家内|嫁|息子|娘|兄|姉|弟|妹|祖父|祖母"
        r"|長男|長女|実家|孫)(?!さん)"
    ),
    "YOU": re.compile(r"[你您妳]|あなた"),
    "THEY": re.compile(r"[他她它彼]|彼女|(?:お母|お父|奥|息子|娘)さん|ご主人"),
    "NEGATED": re.compile(
        r"不(?![错錯过過])|[没沒别別無无勿未]|唔|冇|(?<![危少])ない|ません|なく|ずに|禁止|안 |못 |않|없"
    ),
    "BE": re.compile(r"(?<![但还還于])是(?!不是)|です|でした|だよ|だ。|이?에요|예요|입니다|이야"),
    "HAVE": re.compile(r"有(?!没有)|いる|います|ある|あります|持って|飼って|있"),
    "CHANGE": re.compile(
        r"现在|現在|改|换|換|搬|更正|不再|今は|引っ越|変え|変わ|変更|訂正|やめ|じゃなくて|ではなく|이제|이사"
        r"|바꾸|바뀌|바꿨|말고|정정"
    ),
    "ALWAYS": re.compile(
        r"每|总|總|一直|从[不来來]|從[不來]|经常|以[后後]|今[后後]|凡是|これから|今後|毎|いつも|ずっと|必ず"
        r"|常に|앞으로|항상|매번|매일|매주|언제나|절대"
    ),
    "TIME": re.compile(
        r"(?<!生)[日号點点時时]|(?<!\w)\d+年|[月周週]|星期|[礼禮]拜|今天|明天|昨天|曜|요일|오늘|내일|어제"
        r"|\d(?:년|월|일|시)"
    ),
    "PLEASE": re.compile(r"[请請帮幫求]|麻[烦煩]|ください|下さい|ほしい|お願い|頼む|주세요|줘|부탁"),
    "IF": re.compile(r"如果|假如|要是|假[设設使]|万一|もし|仮に|たら|なら|만약|만일|다면"),
    "SAYS": re.compile(r"(?<!小)[说說](?!明)|[写寫]道|と言|という|って|によると|라고|다고|대요"),
    "ASKS": re.compile(
        r"[吗嗎呢麼谁誰]|什么|什麼|怎么|怎麼|多[少久大]|哪|为什么|為什麼|[几幾]|是不是|有没有|能不能|要不要"
        r"|ですか|ますか|ませんか"
        r"|でしょう|かな|(?<!任)何(?!でも)|どう|どこ|いつ|なぜ|なんで|どれ|どの|どんな|いくら|뭐|무엇|무슨"
        r"|누구|어떻|어떤|어디|언제|까요|나요|인가요"
    ),
}
"""Of scripts without spaces, or that glue their endings to the word."""
WORDS = {
    "SELF": SELF, "WE": WE, "MY": MY, "ME": ME, "YOU": YOU, "THEY": THEY, "NEGATED": NEGATED, "BE": BE, "HAVE": HAVE,
    "CHANGE": CHANGE, "ALWAYS": ALWAYS, "TIME": TIME, "PLEASE": PLEASE, "IF": IF, "SAYS": SAYS, "ASKS": ASKS,
}  # fmt: skip


_JOINTS = "und aber weil denn et mais car donc y pero porque e mas ma perché quindi en maar want dus i ale bo więc и но"
BEFORE_OWN = rf"(?:{'|'.join(_JOINTS.split())})[ ](?:{'|'.join(sorted(SELF | WE | MY))})[ ]"
"""A pattern: conjunctions, and what is said of oneself behind them: a clause ends there."""


NAMES = (*WORDS, "OPENS", "ENDING", "ON", "ELSEWHERE")


def classes(text: str) -> list[float]:
    """By NAMES: for each of WORDS whether the text has one of them; then whether it opens with what is said of oneself,
    has an ending that says so, or "on"; and last whether it has any of all this, or a script that English has not."""
    found = _WORD.findall(text.lower())
    words = frozenset(found)
    unspaced = _UNSPACED.search(text) is not None
    met = [
        not words.isdisjoint(some) or (unspaced and name in _WITHIN and _WITHIN[name].search(text) is not None)
        for name, some in WORDS.items()
    ]
    met += [
        any(word in OPENING or word in SAID_OF_ONESELF or word in SAID_OF_US for word in found[:2])
        or (unspaced and _OPENS_WITHIN.match(text) is not None),
        any(map(_ENDING.fullmatch, words)) or (unspaced and _ENDING_WITHIN.search(text) is not None),
        _ON.search(text) is not None,
    ]
    return [*map(float, met), float(any(met) or unspaced)]
