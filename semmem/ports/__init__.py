"""What the core needs from the outside, as small protocols, and the errors that may come through them."""
