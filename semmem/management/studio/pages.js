// A long list, a page at a time. It is fetched in larger parts, and the next part before it is asked for, so that
// turning a page waits for nothing; parts that are far away are let go, and fetched again when somebody comes back.

const KEPT = 2;

// ask(cursor) answers { memories, next_cursor }; size: of a page. A page never has memories of two parts.
export function pages(ask, size) {
  let parts = [{ cursor: null }], part = 0, at = 0;

  async function rowsOf(index) {
    const mine = parts[index];
    mine.asking ??= (async () => {
      try {
        mine.told = await ask(mine.cursor);
        mine.number = mine.told.memories.length;
        parts.length = mine.told.next_cursor ? Math.max(parts.length, index + 2) : index + 1;
        if (mine.told.next_cursor) parts[index + 1] ??= { cursor: mine.told.next_cursor };
      } finally {
        mine.asking = undefined;
      }
    })();
    if (!mine.told) await mine.asking;
    return mine.told.memories;
  }

  const loaded = (index) => (parts[index].told ? parts[index].told.memories : rowsOf(index));

  async function shown() {
    let rows = await loaded(part);
    while (!rows.length && part + 1 < parts.length) rows = await loaded((part += 1));
    if (at >= rows.length) at = Math.max(0, Math.floor((rows.length - 1) / size) * size);
    parts.forEach((each, index) => { if (Math.abs(index - part) > KEPT) each.told = undefined; });
    if (part + 1 < parts.length && !parts[part + 1].told) rowsOf(part + 1).catch(() => {});
    const before = parts.slice(0, part).reduce((sum, each) => sum + (each.number ?? 0), 0);
    return { rows: rows.slice(at, at + size), first: before + at + 1, told: parts[part].told, older: at + size < rows.length || part + 1 < parts.length, newer: at > 0 || part > 0 };
  }

  // To the next part that has anything; where none has, this page was the last.
  async function onward() {
    let next = part + 1;
    while (!(await loaded(next)).length && next + 1 < parts.length) next += 1;
    if (parts[next].number) { part = next; at = 0; } else parts.length = part + 1;
  }

  return {
    shown,
    async turn(by) {
      if (by > 0) {
        if (at + size < (await loaded(part)).length) at += size;
        else if (part + 1 < parts.length) await onward();
      } else if (at > 0) at -= size;
      else if (part > 0) {
        const rows = await loaded(part - 1);
        part -= 1;
        at = Math.max(0, Math.floor((rows.length - 1) / size) * size);
      }
      return shown();
    },
    // What was changed is asked for again; the page stays where it is.
    again() {
      parts = parts.slice(0, part + 1).map(({ cursor, number }, index) => (index < part ? { cursor, number } : { cursor }));
      return shown();
    },
  };
}
