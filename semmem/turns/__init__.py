"""From requests to turns: the user messages of a request (``said``), which of them were seen before (``seen``), which
of the history are recovered (``recovery``), and turns as they open and close in the journal (``recorder``)."""
