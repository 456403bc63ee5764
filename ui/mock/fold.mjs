// Flame graphs that are too large: what is small becomes one child '(other)' per parent, the last.

/** The columns with at most max nodes, and what was folded; size: of a node, never more than its parent's. */
export function fold(columns, max) {
  const { depth, total_of: total, before_total_of: before } = columns;
  if (depth.length <= max) return { columns, folded: 0 };
  const size = (i) => total[i] + (before?.[i] ?? 0);
  // Every node that is kept may have a child '(other)'.
  const least = total.map((_, i) => size(i)).sort((a, b) => b - a)[Math.floor(max / 2)];
  const keys = Object.keys(columns).filter((k) => k !== 'names' && k !== 'files');
  const out = Object.fromEntries(keys.map((k) => [k, []]));
  const names = [...columns.names, '(other)'];
  const files = [...columns.files, ''];
  let folded = 0;
  const open = []; // the kept ancestors: what was left out below each
  const close = (d) => {
    while (open.length > d) {
      const left = open.pop();
      if (!left.n) continue;
      const node = { name: names.length - 1, depth: open.length + 1, self: left.total, total_of: left.total, before_self: left.before, before_total_of: left.before };
      for (const k of keys) out[k].push(node[k]);
      folded += left.total;
    }
  };
  let gone = Infinity; // the depth of the subtree that is being left out
  for (let i = 0; i < depth.length; i++) {
    if (depth[i] > gone) continue;
    gone = Infinity;
    close(depth[i]);
    if (i > 0 && size(i) <= least) {
      const parent = open[depth[i] - 1];
      parent.n++;
      parent.total += total[i];
      parent.before += before?.[i] ?? 0;
      gone = depth[i];
      continue;
    }
    open.push({ n: 0, total: 0, before: 0 });
    for (const k of keys) out[k].push(columns[k][i]);
  }
  close(0);
  return { columns: { names, files, ...out }, folded };
}
