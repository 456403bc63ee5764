/* Small components shared by several pages. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { isAway } from './api';

/** Decoration: its last value is shown beside it as text. */
export function Spark({ points: all }: { points: (number | null)[] }) {
  const points = all.length === 1 ? [all[0]!, all[0]!] : all; // the first minute is a level, not a dot
  const W = 120;
  const H = 26;
  const known = points.filter((v): v is number => v != null);
  const max = Math.max(...known, 1e-9);
  const runs: string[] = [];
  let run: string[] = [];
  const step = W / Math.max(1, points.length - 1);
  points.forEach((v, i) => {
    if (v == null) {
      if (run.length) runs.push(run.join(' '));
      run = [];
      return;
    }
    // Between two gaps a point is a level of its step: alone it could not be seen.
    const alone = points[i - 1] == null && points[i + 1] == null;
    const y = (H - 2 - (v / max) * (H - 4)).toFixed(1);
    for (const x of alone ? [Math.max(0, (i - 0.5) * step), Math.min(W, (i + 0.5) * step)] : [i * step])
      run.push(`${x.toFixed(1)},${y}`);
  });
  if (run.length) runs.push(run.join(' '));
  return (
    <svg class="spark" viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" aria-hidden="true">
      {runs.map((r) => {
        const xs = r.split(' ');
        const [x0, x1] = [xs[0]!.split(',')[0], xs[xs.length - 1]!.split(',')[0]];
        return (
          <>
            <polygon points={`${x0},${H} ${r} ${x1},${H}`} />
            <polyline points={r} />
          </>
        );
      })}
    </svg>
  );
}

export function Failure({ error, retry }: { error: Error; retry(): void }) {
  if (isAway(error)) return null; // said once, above the page
  return (
    <div class="failure" role="alert">
      <span>{error.message}</span>
      <button type="button" onClick={retry}>Try again</button>
    </div>
  );
}

export function Progress({ on }: { on: boolean }) {
  return <div class={on ? 'progress on' : 'progress'} role="status" aria-label={on ? 'Loading' : ''} />;
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export interface MenuItem {
  text: string;
  key?: string;
  run(): void;
}

export interface MenuAt {
  title: string;
  x: number;
  y: number;
  items: MenuItem[];
}

export function Menu({ menu, close }: { menu: MenuAt; close(): void }) {
  const el = useRef<HTMLDivElement>(null);
  const back = useRef(document.activeElement as HTMLElement | null);
  useLayoutEffect(() => {
    const m = el.current!;
    m.style.left = `${Math.max(4, Math.min(menu.x, innerWidth - m.offsetWidth - 8))}px`;
    m.style.top = `${Math.max(4, Math.min(menu.y, innerHeight - m.offsetHeight - 8))}px`;
    m.querySelector('button')!.focus();
    const outside = (e: PointerEvent) => !m.contains(e.target as Node) && close();
    addEventListener('pointerdown', outside);
    return () => removeEventListener('pointerdown', outside);
  }, [menu]);
  const leave = () => {
    close();
    back.current?.focus();
  };
  const keyed = (e: KeyboardEvent) => {
    const buttons = [...el.current!.querySelectorAll('button')];
    const i = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const by = menu.items.find((m) => m.key === e.key);
    if (e.key === 'ArrowDown') buttons[(i + 1) % buttons.length]!.focus();
    else if (e.key === 'ArrowUp') buttons[(i + buttons.length - 1) % buttons.length]!.focus();
    else if (e.key === 'Escape' || e.key === 'Tab') leave();
    else if (by) {
      leave();
      by.run();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={menu.title} ref={el} onKeyDown={keyed}>
      <div class="menutitle mono" aria-hidden="true">{menu.title}</div>
      {menu.items.map((m) => (
        <button type="button" role="menuitem" onClick={() => { leave(); m.run(); }}>
          <span>{m.text}</span>
          {m.key && <kbd aria-hidden="true">{m.key}</kbd>}
        </button>
      ))}
    </div>
  );
}

const KEYS: [string, [string, string][]][] = [
  ['Everywhere', [
    ['?', 'this help'], ['/', 'search or filter'], ['o', 'overview'], ['l', 'toggle live'],
    ['t', 'toggle dark theme'], ['u', 'toggle local time and UTC'],
  ]],
  ['Overview', [['↑ ↓', 'previous, next row'], ['drag', 'zoom into a time'], ['double-click', 'back to the last hour']]],
  ['Service', [
    ['1 2 3 4', 'table, both, flame graph, function'], ['d', 'compare with the preceding window'],
    ['[  ]', 'previous, next window'], ['x', 'reset window'], ['g', 'toggle Go runtime'],
    ['y', 'copy link'],
  ]],
  ['Flame graph and table', [
    ['arrows', 'move'], ['Enter', 'zoom (table: details)'], ['Backspace', 'zoom out'], ['Esc', 'reset zoom'],
    ['m', 'menu'], ['s', 'details'], ['f', 'focus on its stacks'], ['h', 'hide its stacks'],
    ['c', 'collapse its callees'], ['i', 'copy name'], ['n  N', 'next, previous match'],
  ]],
  ['Timeline', [['drag', 'select a window'], ['double-click', 'reset'], ['← →', 'move the window'], ['Shift ← →', 'resize the window']]],
];

export function Help({ close }: { close(): void }) {
  const el = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    el.current!.showModal();
  }, []);
  return (
    <dialog ref={el} class="help" aria-labelledby="help-title" onClose={close} onClick={(e) => e.target === el.current && close()}>
      <div class="helphead">
        <h2 id="help-title">Keyboard shortcuts</h2>
        <button type="button" onClick={close} aria-label="Close">Esc</button>
      </div>
      <div class="helpgrid">
        {KEYS.map(([title, keys]) => (
          <section>
            <h3>{title}</h3>
            <dl>
              {keys.map(([k, what]) => (
                <div><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  );
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
