"""From requests to turns: what the user says in one (``said``), what of it was seen before (``seen``), what of its
history is made up for (``recovery``), and the halves that the journal is given (``recorder``)."""
