"""Server-sent events, read as they arrive, and the text that they leave behind. Pure: bytes in, values out.

The rules are those of the WHATWG HTML standard, section "Parsing an event stream", with two departures:

- An event that the stream's end cuts off before its blank line is delivered by ``end()``. The standard discards it,
  because a browser reconnects and gets it again; here nobody reconnects, and servers exist that close right after
  their last event. A reader of JSON notices by itself when such an event is not whole.
- An event larger than a limit is dropped, and ``oversize`` says so.

Lines end with LF, CR or CRLF, also when CR and LF come in two chunks. A line is decoded only when it is whole, so that
no chunk boundary falls into a character.
"""

from dataclasses import dataclass, field

BOM = b"\xef\xbb\xbf"


@dataclass(slots=True, eq=False, repr=False)
class EventStream:
    """Cuts a byte stream into events. ``event_bytes_max`` bounds what is kept of one event (its data and its name) and
    of the line that is being read. Time is linear in the bytes fed, and the events are the same, however the stream is
    split."""

    event_bytes_max: int
    oversize: bool = False
    """Whether an event was dropped."""
    _line: list[bytes] = field(init=False, default_factory=list)  # pieces of the line that has no end yet
    _line_bytes: int = field(init=False, default=0)
    _first: bool = field(init=False, default=True)
    _after_cr: bool = field(init=False, default=False)
    _data: list[str] = field(init=False, default_factory=list)
    _name: str = field(init=False, default="")
    _event_bytes: int = field(init=False, default=0)
    _dropping: bool = field(init=False, default=False)

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """The events, as (name, data), that are whole now. An event without a name is called ``message``."""
        events: list[tuple[str, str]] = []
        if not chunk:
            return events
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):  # of bytes: at LF, CR and CRLF only
            line = piece.rstrip(b"\r\n")
            self._keep(line)
            if line != piece:
                self._end_line(events)
        return events

    def end(self) -> list[tuple[str, str]]:
        """The event, if any, that the end of the stream left without its blank line. Called once, after the last."""
        events: list[tuple[str, str]] = []
        if self._line_bytes:
            self._end_line(events)
        self._dispatch(events)
        return events

    def _keep(self, piece: bytes) -> None:
        if not piece:  # a blank line ends an event that just fits
            return
        self._line_bytes += len(piece)
        if self._event_bytes + self._line_bytes > self.event_bytes_max:
            self._dropping = self.oversize = True
            self._data.clear()
            self._line.clear()
        if not self._dropping:
            self._line.append(piece)

    def _end_line(self, events: list[tuple[str, str]]) -> None:
        line = b"".join(self._line)
        blank = not self._line_bytes
        if self._first:
            line = line.removeprefix(BOM)
            blank = not line and not self._dropping
            self._first = False
        self._line.clear()
        self._line_bytes = 0
        if blank:
            self._dispatch(events)
        elif not self._dropping:
            self._field(line)

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._event_bytes += len(line) + 1  # plus its line end, so that empty lines of data are bounded, too
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            self._event_bytes += len(line)
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")

    def _dispatch(self, events: list[tuple[str, str]]) -> None:
        if self._data:
            events.append((self._name or "message", "\n".join(self._data)))
            self._data.clear()
        self._name = ""
        self._event_bytes = 0
        self._dropping = False
