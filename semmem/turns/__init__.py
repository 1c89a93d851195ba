"""From requests to turns: the user's messages of a request (``user_messages``), which of them were seen before
(``seen``), which of the history are recovered (``recovery``), and turns as they open and close (``recorder``)."""
