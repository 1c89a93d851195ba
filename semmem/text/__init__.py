"""What texts are made of. Pure functions of a text, the same for whoever reads, and linear in its length.

There is one of each: ``words`` (the tokeniser), ``stems`` (the stemmer, and irregular verbs), ``stop_words`` (a list
per language), ``number_words`` (a table per language), ``times.calendar`` (months and weekdays). Who needs
another list derives it from these, where it is needed, and says why. On them stand ``terms`` (what ranking compares),
``grounding`` (is a statement made of the user's words?), ``times`` (which times does a text name?) and ``screening``
(what no prompt may carry)."""
