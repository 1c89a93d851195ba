"""What was said, as it was said: kept beside memories, and found where memories do not answer.

A passage is a piece of a user's own message, or the gist of what a model answered. It is kept as a Memory of the type
``passage``, so that one road leads to the store, through the same gates, and back out of it when it is erased. It lies
in a collection of its own (``shelves``), is never ranked among memories, and never takes one's place."""
