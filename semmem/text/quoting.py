"""Sentences that are kept as the user wrote them: a memory's content within double quotes."""


def quoted(sentence: str) -> str:
    """The sentence as the content of a memory. Double quotes within it become single ones."""
    return f'"{sentence.replace(chr(34), chr(39))}"'


def unquoted(content: str) -> str:
    """The bare words of a memory: what is embedded, indexed and compared."""
    return content[1:-1] if is_quoted(content) else content


def is_quoted(content: str) -> bool:
    """Whether the whole content is one quoted sentence of the user's."""
    return len(content) > 2 and content[0] == content[-1] == '"' and '"' not in content[1:-1]
