"""How what is remembered goes: one order of forgetting, for whoever forgets, and who may change memories meanwhile.

Nothing here knows HTTP, a database or a vendor. What is erased is first marked, then hidden, then removed, then looked
for again; what could not be removed now is remembered until it is."""
