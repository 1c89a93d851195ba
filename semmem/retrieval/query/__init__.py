"""From a conversation to the text that memories are searched with."""
