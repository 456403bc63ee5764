/* The flame graph component: canvas, outlines, tooltip, breadcrumbs, screen reader text. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { change } from '../compare';
import { percent, signed, value } from '../format';
import { ROW, type Theme } from './draw';
import { Flame } from './interact';
import type { Profile } from './layout';
import { KINDS, originOf } from './origin';

export interface FlameProps {
  profile: Profile;
  zoom: number;
  hit: Uint8Array | null;
  theme: Theme;
  label: string;
  up?: boolean; // callers: the root is at the bottom, and the height fits the content
  onZoom(node: number): void;
  onMenu(fn: string, x: number, y: number): void;
  onKey(key: string, fn: string): boolean;
}

const shareUnit = (p: Profile, v: number) => (p.norm ? `${v.toFixed(2)}%` : value(v, p.unit));

export function describe(p: Profile, i: number): string[] {
  const lines: string[] = [];
  if (p.diff) {
    const c = change(p, p.beforeTotal[i]!, p.total[i]!);
    const delta = p.norm ? `${c.change > 0 ? '+' : ''}${c.change.toFixed(2)} points` : signed(c.change, p.unit);
    const grown = c.before ? ` (${c.change > 0 ? '+' : ''}${percent(c.change, c.before)})` : ' (new)';
    lines.push(`${shareUnit(p, c.before)} → ${shareUnit(p, c.after)}`, `${delta}${c.change ? grown : ''}`);
  } else {
    lines.push(
      `total ${value(p.total[i]!, p.unit)} · ${percent(p.total[i]!, p.total[0]!)}`,
      `self ${value(p.self[i]!, p.unit)} · ${percent(p.self[i]!, p.total[0]!)}`,
    );
  }
  return lines;
}

function fillTip(tip: HTMLElement, p: Profile, i: number): void {
  const name = document.createElement('b');
  name.textContent = p.names[p.name[i]!]!;
  const parts: Node[] = [name];
  const variants = p.variants[p.name[i]!];
  if (variants) {
    const suffixes = document.createElement('span');
    suffixes.className = 'dim';
    suffixes.textContent = variants.join(', ');
    parts.push(suffixes);
  }
  const file = p.files[p.name[i]!];
  const { kind, module } = originOf(p, p.name[i]!);
  const origin = module && `${KINDS[kind]} · ${module}`;
  for (const [text, cls] of [...describe(p, i).map((s) => [s, '']), [origin, 'dim'], [file, 'dim']]) {
    if (!text) continue;
    const line = document.createElement('div');
    line.textContent = text;
    if (cls) line.className = cls;
    parts.push(line);
  }
  tip.replaceChildren(...parts);
}

export function FlameView(props: FlameProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const hover = useRef<HTMLDivElement>(null);
  const focus = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const live = useRef<HTMLDivElement>(null);
  const flame = useRef<Flame | null>(null);
  const now = useRef(props);
  now.current = props;

  useLayoutEffect(() => {
    let tipped = -1;
    const nameOf = (i: number) => now.current.profile.names[now.current.profile.name[i]!]!;
    const hooks = {
      hover(i: number, x: number, y: number) {
        const t = tip.current!;
        if (i < 0) {
          t.hidden = true;
          tipped = -1;
          return;
        }
        if (i !== tipped) fillTip(t, now.current.profile, i);
        tipped = i;
        t.hidden = false;
        const left = Math.max(4, Math.min(x + 14, innerWidth - t.offsetWidth - 8));
        const below = y + 18 + t.offsetHeight < innerHeight;
        t.style.transform = `translate(${left}px,${below ? y + 18 : y - 10 - t.offsetHeight}px)`;
      },
      zoom: (i: number) => now.current.onZoom(i),
      menu: (i: number, x: number, y: number) => {
        tip.current!.hidden = true;
        now.current.onMenu(nameOf(i), x, y);
      },
      key: (key: string, i: number) => now.current.onKey(key, nameOf(i)),
      say(i: number) {
        const p = now.current.profile;
        live.current!.textContent = `${nameOf(i)}, ${describe(p, i).join(', ')}, level ${p.depth[i]}`;
      },
    };
    const rings = { hover: hover.current!, focus: focus.current! };
    const start = { profile: props.profile, theme: props.theme, up: !!props.up };
    flame.current = new Flame(box.current!, canvas.current!, spacer.current!, rings, hooks, start);
    return () => flame.current!.destroy();
  }, []);

  useLayoutEffect(() => flame.current!.setTheme(props.theme), [props.theme]);
  useLayoutEffect(() => {
    flame.current!.setProfile(props.profile, props.zoom);
  }, [props.profile, props.zoom]);
  useLayoutEffect(() => flame.current!.setHit(props.hit), [props.hit]);
  useEffect(() => {
    if (props.up) flame.current!.scrollToStart();
  }, [props.profile, props.up]);

  return (
    <div class={props.up ? 'flame up' : 'flame'} ref={box} style={props.up ? { flex: `0 1 ${props.profile.levels * ROW}px` } : {}}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="flame graph"
        aria-label={`${props.label}. Arrow keys move, Enter zooms, m opens the menu. The table has the same values.`}
      />
      <div ref={spacer} />
      <div class="ring" ref={hover} hidden />
      <div class="ring focus" ref={focus} hidden />
      <div class="tip" ref={tip} hidden />
      <div class="sr" aria-live="polite" ref={live} />
    </div>
  );
}

export function Crumbs({ p, zoom, onZoom }: { p: Profile; zoom: number; onZoom(i: number): void }) {
  const path: number[] = [];
  for (let i = zoom; i >= 0; i = p.parent[i]!) path.push(i);
  path.reverse();
  const shown = path.length > 6 ? [path[0]!, -1, ...path.slice(-4)] : path;
  return (
    <nav class="crumbs" aria-label="Zoomed to">
      {shown.map((i, k) =>
        i < 0 ? (
          <span class="dim">…</span>
        ) : (
          <button
            type="button"
            class="link mono"
            aria-current={k === shown.length - 1 ? 'true' : undefined}
            title={p.names[p.name[i]!]}
            onClick={() => onZoom(i)}
          >
            {p.short[p.name[i]!]}
          </button>
        ),
      )}
      <span class="dim nowrap">
        {p.diff ? describe(p, zoom).join(', ') : value(p.total[zoom]!, p.unit)}
        {!p.diff && zoom > 0 && ` · ${percent(p.total[zoom]!, p.total[0]!)}`}
      </span>
    </nav>
  );
}
