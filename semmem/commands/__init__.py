"""What the ``semmem`` command can do: one declaration, and everything that is said of a command is made from it.

commands.toml has every command: its name, options, examples, what it prints and what it reads; ``table.RUNS`` the
function that does it. The parser, ``--help``, the manual page, the shell completions and docs/commands.md are views of
that file, so none of them can tell of another command than there is.

Rules of the room: the answer alone goes to standard output (text, or with ``--json`` one document, or a line for each
where it is a stream); whatever else is to be said goes to standard error. Whoever fails raises ``command.Failure``,
which knows its exit status. Nothing heavy is imported before the command is known that needs it.
"""
