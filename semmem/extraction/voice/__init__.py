"""Whose voice each part of a message is: the user's own, or that of somebody or something that the user put into it."""
