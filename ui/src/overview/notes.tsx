/* What cannot be profiled and why, and what is profiled with errors: a line each, more on demand. */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Target } from '../api';
import { OFF_BY_DEFAULT } from '../types';

interface Group {
  reason: string;
  remedy: string;
  targets: Target[];
}

/* This reader is the same for all processes. */
const CPU = 'cpu';
/* Off in most programs; the service page explains them. */
const OPTIONAL = OFF_BY_DEFAULT.map((o) => o.reader);

/** Why there is no CPU column, if there is none. */
export function NoCpu({ targets }: { targets: Target[] }) {
  const cpu = targets[0]?.readers.find((r) => r.reader === CPU);
  if (!cpu || cpu.available) return null;
  return <p class="hint">No CPU profiles: {cpu.reason}{cpu.remedy && `; ${cpu.remedy}`}.</p>;
}

/** Thousands of processes share a handful of reasons: one line each. */
function groupByReason(targets: Target[]): Group[] {
  const groups = new Map<string, Group>();
  for (const t of targets) {
    if (!t.readers.length) continue;
    // CPU sampling is the same for all. Of the other readers, only what can be fixed is worth a line.
    const some = t.readers.some((r) => r.available);
    const said = some ? t.readers.find((r) => !r.available && r.remedy && r.reader !== CPU && !OPTIONAL.includes(r.reader))
      : (t.readers.find((r) => r.reason) ?? t.readers[0]!);
    if (!said) continue;
    const reason = some ? `${said.reader}: ${said.reason}` : said.reason ?? 'no reason given';
    const remedy = said.remedy ?? '';
    const key = `${reason}\n${remedy}`;
    const g = groups.get(key);
    if (g) g.targets.push(t);
    else groups.set(key, { reason, remedy, targets: [t] });
  }
  // What can be fixed comes first.
  return [...groups.values()].sort(
    (a, b) => Number(!!b.remedy) - Number(!!a.remedy) || b.targets.length - a.targets.length,
  );
}

const WHO = 12;
const LISTED = 50;

/** A heading with a count; what is below it on demand. */
function Fold({ id, title, count, children }: { id: string; title: string; count: number; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <details class="note-fold">
        <summary><h2 id={id}>{title} <span class="dim">{count}</span></h2></summary>
        {children}
      </details>
    </section>
  );
}

export function Unprofiled({ targets, filter }: { targets: Target[]; filter: string }) {
  const [open, setOpen] = useState<string>('');
  const low = filter.toLowerCase();
  const groups = useMemo(
    () => groupByReason(targets.filter((t) => !low || `${t.comm} ${t.exe ?? ''} ${t.pid} ${t.service ?? ''}`.toLowerCase().includes(low))),
    [targets, low],
  );
  const count = groups.reduce((s, g) => s + g.targets.length, 0);
  if (!count) return null;
  return (
    <Fold id="not-profiled" title="Not profiled" count={count}>
      <table class="why">
        <thead><tr><th scope="col">Reason</th><th scope="col">Fix</th><th scope="col">Processes</th></tr></thead>
        <tbody>
          {groups.map((g) => {
            const all = open === g.reason;
            const shown = all ? g.targets : g.targets.slice(0, WHO);
            return (
              <tr>
                <td data-title="Reason">{g.reason}</td>
                <td data-title="Fix">{g.remedy || <span class="dim">none</span>}</td>
                <td data-title="Processes" class="who">
                  {shown.map((t) => <><span class="proc" title={t.exe ?? ''}>{t.comm} <span class="dim">{t.pid}</span></span> </>)}
                  {g.targets.length > WHO && (
                    <button type="button" class="link" aria-expanded={all} onClick={() => setOpen(all ? '' : g.reason)}>
                      {all ? 'show fewer' : `and ${g.targets.length - WHO} more`}
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Fold>
  );
}

export function Troubled({ targets }: { targets: Target[] }) {
  const lines = targets.flatMap((t) =>
    t.readers.filter((r) => r.available && (r.trouble || r.slow)).map((r) => ({ t, r })),
  );
  if (!lines.length) return null;
  return (
    <Fold id="troubled" title="Profiled with errors" count={lines.length}>
      <ul class="plain">
        {lines.slice(0, LISTED).map(({ t, r }) => (
          <li>
            <b>{t.service ?? t.comm}</b> <span class="dim">{t.pid} · {r.reader}</span> {r.trouble ?? 'missed its deadline'}
          </li>
        ))}
        {lines.length > LISTED && <li class="dim">and {lines.length - LISTED} more</li>}
      </ul>
    </Fold>
  );
}
