// One function of a profile in columns: lines, callers and callees, as the server counts them.

function lineOf(name, callee) {
  let h = 7;
  for (const c of `${name} ${callee}`) h = (Math.imul(h, 31) + c.codePointAt(0)) >>> 0;
  return 20 + (h % 90);
}

class Sums extends Map {
  add(key, field, v) {
    if (!v[0] && !v[1]) return;
    const sum = this.get(key) ?? { self: 0, total: 0, before_self: 0, before_total: 0 };
    sum[field] += v[0];
    sum[`before_${field}`] += v[1];
    this.set(key, sum);
  }
}

/** Calls see(node, path) for each node, depth first; path: of the nodes above it, from the root. */
function walk(c, see) {
  const path = [];
  for (let i = 0; i < c.name.length; i++) {
    path.length = c.depth[i];
    see(i, path);
    path.push(i);
  }
}

export function functionOf(c, name, before, limit) {
  const lines = new Sums();
  const [callers, callees, whole] = [new Sums(), new Sums(), new Sums()];
  const named = (i) => c.names[c.name[i]];
  const of = (column, i) => [c[column][i], c[`before_${column}`]?.[i] ?? 0];
  walk(c, (i, path) => {
    const up = path.length - 1;
    const total = of('total_of', i);
    const at = path.findIndex((p) => named(p) === name);
    if (named(i) === name) {
      whole.add('', 'self', of('self', i));
      lines.add(lineOf(name, ''), 'self', of('self', i));
      lines.add(lineOf(name, ''), 'total', of('self', i));
      if (at < 0) whole.add('', 'total', total);
      if (at < 0 && up > 0) callers.add(named(path[up]), 'total', total);
    }
    if (at < 0) return;
    if (at === up) callees.add(named(i), 'total', total);
    // A line counts once in a stack, however often it is in it.
    const line = (p, callee) => named(p) === name && lineOf(name, named(callee));
    const mine = line(path[up], i);
    if (mine && !path.slice(0, up).some((p, k) => line(p, path[k + 1]) === mine)) lines.add(mine, 'total', total);
  });
  const plain = ({ self, total, before_self, before_total }, both) => ({
    ...(both ? { self } : {}), total, ...(before ? { ...(both ? { before_self } : {}), before_total } : {}),
  });
  const sorted = (sums) => [...sums].sort(([, a], [, b]) => b.total - a.total).slice(0, limit);
  const file = c.files[c.names.indexOf(name)] ?? '';
  const neighbours = (sums) => sorted(sums).map(([n, s]) => ({ name: n, ...plain(s, false) }));
  return {
    name, file: whole.size ? file : '', ...plain(whole.get('') ?? { self: 0, total: 0, before_self: 0, before_total: 0 }, true),
    window_total: c.total_of[0], ...(before ? { before_window_total: c.before_total_of[0] } : {}),
    n_lines: lines.size, n_callers: callers.size, n_callees: callees.size,
    lines: sorted(lines).map(([line, s]) => ({ file, line, ...plain(s, true) })),
    callers: neighbours(callers), callees: neighbours(callees),
  };
}

/** Lines of a file that is made up: those with values, and two around each. */
export function sourceOf(f, file, modified) {
  const numbers = f.lines.filter((l) => l.file === file).map((l) => l.line);
  const none = (reason) => ({ reason, modified: null, lines: [] });
  if (!numbers.length) return none('the profile has no line of this file');
  if (!file.startsWith('/')) return none('the profile does not say where the file is');
  if (file.includes('/store/')) return none('not everybody on this machine may read it');
  const around = [...new Set(numbers.flatMap((n) => [n - 2, n - 1, n, n + 1, n + 2]))].sort((a, b) => a - b);
  return { reason: null, modified, lines: around.map((line) => ({ line, text: `\tc.entries[id${line}] = append(c.entries, e) // <b>&` })) };
}
