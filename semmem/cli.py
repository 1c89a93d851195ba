"""The ``semmem`` command: one way in, one way out for whatever goes wrong. What it can do is in commands/table.py."""

import gc
import os
import sys

from semmem.commands.command import Exit, Failure, Parser, report


def main(argv: list[str] | None = None) -> int:
    """Run one command; its exit status, one of commands.command.Exit. Ends by SystemExit for --help alone."""
    # Before numpy comes: its threads wait in busy loops, which takes ten times as long as products as small as ours.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    words = sys.argv[1:] if argv is None else argv
    try:
        status = _guarded(words)
        sys.stdout.flush()
    except BrokenPipeError:
        from semmem.commands.terminal import give_up_output

        give_up_output()
        return Exit.PIPE_CLOSED
    except KeyboardInterrupt:
        sys.stderr.write("semmem: interrupted; what was begun may not be finished\n")
        return Exit.INTERRUPTED
    return status


def _guarded(words: list[str]) -> int:
    """What failed is said. Raises what ends a program from outside."""
    gc.disable()  # what is imported stays: to look for garbage meanwhile takes a fifth of the time
    from semmem.commands.table import root_parser  # takes half a second, in which Ctrl-C shall be quiet too
    from semmem.config import ConfigError

    gc.enable()
    parser = root_parser()
    try:
        return _run(parser, words)
    except ConfigError as error:
        failure = _of_configuration(error)
    except Failure as failed:
        failure = failed
    except BrokenPipeError:
        raise
    except OSError as error:
        failure = Failure("FAILED", str(error.filename or ""), error.strerror or str(error))
    report(failure, parser.called(words), as_json="--json" in words)
    return failure.status


def _run(parser: Parser, words: list[str]) -> int:
    try:
        given = parser.parse_args(words)
    finally:
        sys.stdout.flush()  # of --help, which ends here
    if given.command.run is not None:
        return int(given.command.run(given))
    if given.command is parser.command:
        sys.stderr.write(parser.format_help())
        return Exit.MISUSED
    known = ", ".join(child.name for child in given.command.inside)
    raise Failure("USAGE", "", f"name what to do: {known}", Exit.MISUSED)


def _of_configuration(error: Exception) -> Failure:
    from dataclasses import asdict

    problems = [asdict(problem) for problem in getattr(error, "problems", ())]
    path, reason = next(((each["path"], each["reason"]) for each in problems), ("", str(error)))
    return Failure("BAD_CONFIG", path, reason, Exit.MISUSED, text=str(error), problems=problems)
