"""What a session was shown stays where it was shown: the ledger of its blocks.

A model server keeps the beginning of a prompt that it has computed. So a later request of a session gets every earlier
block again, byte for byte, at the message that it was found for, and one new block for what this turn needs and was
not shown yet. Truth goes first: where a memory in a block was erased or quarantined the session's blocks all go, once.

``anchors`` names messages, ``ledger`` keeps blocks, ``truth`` says whether they may stand. One request of a session is
``retrieval.showing``."""
