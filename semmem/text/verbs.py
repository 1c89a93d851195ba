"""English verbs whose past is not formed with -ed. Data only."""

from __future__ import annotations

IRREGULAR_VERBS: dict[str, tuple[str, str]] = {
    "be": ("was", "been"), "have": ("had", "had"), "do": ("did", "done"), "go": ("went", "gone"),
    "get": ("got", "gotten"), "take": ("took", "taken"), "make": ("made", "made"), "buy": ("bought", "bought"),
    "sell": ("sold", "sold"), "quit": ("quit", "quit"), "win": ("won", "won"), "leave": ("left", "left"),
    "lose": ("lost", "lost"), "break": ("broke", "broken"), "tear": ("tore", "torn"), "hurt": ("hurt", "hurt"),
    "fly": ("flew", "flown"), "become": ("became", "become"), "choose": ("chose", "chosen"), "meet": ("met", "met"),
    "grow": ("grew", "grown"), "run": ("ran", "run"), "swim": ("swam", "swum"), "give": ("gave", "given"),
    "bear": ("bore", "born"), "write": ("wrote", "written"), "build": ("built", "built"), "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"), "drink": ("drank", "drunk"), "sleep": ("slept", "slept"), "teach": ("taught", "taught"),
    "read": ("read", "read"), "speak": ("spoke", "spoken"), "wear": ("wore", "worn"), "keep": ("kept", "kept"),
    "spend": ("spent", "spent"), "pay": ("paid", "paid"), "lead": ("led", "led"), "ride": ("rode", "ridden"),
    "come": ("came", "come"), "sing": ("sang", "sung"), "wake": ("woke", "woken"), "hold": ("held", "held"),
    "draw": ("drew", "drawn"), "see": ("saw", "seen"), "know": ("knew", "known"), "feel": ("felt", "felt"),
    "find": ("found", "found"), "think": ("thought", "thought"), "say": ("said", "said"), "tell": ("told", "told"),
    "begin": ("began", "begun"), "bring": ("brought", "brought"), "stand": ("stood", "stood"),
    "breed": ("bred", "bred"), "feed": ("fed", "fed"), "put": ("put", "put"), "set": ("set", "set"),
    "cut": ("cut", "cut"), "hit": ("hit", "hit"), "let": ("let", "let"), "cost": ("cost", "cost"),
    "fall": ("fell", "fallen"), "fight": ("fought", "fought"), "catch": ("caught", "caught"),
    "overhear": ("overheard", "overheard"), "hear": ("heard", "heard"),
    "send": ("sent", "sent"), "sit": ("sat", "sat"), "throw": ("threw", "thrown"),
    "forget": ("forgot", "forgotten"), "understand": ("understood", "understood"), "weave": ("wove", "woven"),
    "mean": ("meant", "meant"), "deal": ("dealt", "dealt"), "lean": ("leant", "leant"), "dream": ("dreamt", "dreamt"),
    "steal": ("stole", "stolen"), "stick": ("stuck", "stuck"), "shake": ("shook", "shaken"),
    "seek": ("sought", "sought"), "ring": ("rang", "rung"), "rise": ("rose", "risen"), "freeze": ("froze", "frozen"),
    "bite": ("bit", "bitten"), "blow": ("blew", "blown"), "bend": ("bent", "bent"), "hang": ("hung", "hung"),
    "lay": ("laid", "laid"), "strike": ("struck", "struck"), "swear": ("swore", "sworn"), "slide": ("slid", "slid"),
    "sink": ("sank", "sunk"), "dig": ("dug", "dug"), "forgive": ("forgave", "forgiven"),
    "undergo": ("underwent", "undergone"), "lend": ("lent", "lent"), "shoot": ("shot", "shot"),
    "hide": ("hid", "hidden"), "spin": ("spun", "spun"), "sew": ("sewed", "sewn"), "show": ("showed", "shown"),
}  # fmt: skip
"""Base form -> past, participle, where they are not formed with -ed."""

SAME_FORM = frozenset(base for base, forms in IRREGULAR_VERBS.items() if base in forms)
"""Base forms that are a past or a participle as well ("put", "come")."""
