/*
 * The flame graph canvas: as large as the visible part, and sticky; scrolling repaints it. Outlines
 * for hover and focus are boxes on top: moving them repaints nothing.
 */
import { coloursOf, depthAt, draw, FONT, ROW, rowAt, rowTop, type Frame, type Theme } from './draw';
import type { Profile } from './layout';

export interface Hooks {
  hover(node: number, x: number, y: number): void;
  zoom(node: number): void;
  menu(node: number, x: number, y: number): void;
  key(key: string, node: number): boolean;
  say(node: number): void;
}

export class Flame {
  private ctx: CanvasRenderingContext2D;
  private frame: Frame;
  private ratio = 0;
  private raf = 0;
  private hovered = -1;
  private focused = 0;
  private resize: ResizeObserver;
  private off = new AbortController();
  painted = 0;

  constructor(
    private box: HTMLElement,
    private canvas: HTMLCanvasElement,
    private spacer: HTMLElement,
    private rings: { hover: HTMLElement; focus: HTMLElement },
    private hooks: Hooks,
    start: { profile: Profile; theme: Theme; up: boolean },
  ) {
    this.ctx = canvas.getContext('2d', { alpha: false })!;
    const { profile, theme, up } = start;
    this.frame = {
      profile, theme, up, colours: coloursOf(profile, theme), zoom: 0, hit: null,
      width: 0, height: 0, top: 0, letter: 7,
    };
    this.resize = new ResizeObserver(() => this.size());
    this.resize.observe(box);
    this.listen();
  }

  destroy(): void {
    this.resize.disconnect();
    this.off.abort();
    cancelAnimationFrame(this.raf);
  }

  setProfile(p: Profile, zoom: number): void {
    if (p !== this.frame.profile) {
      this.frame.profile = p;
      this.frame.colours = coloursOf(p, this.frame.theme);
      this.hovered = -1;
      this.focused = zoom;
    }
    this.frame.zoom = zoom;
    if (this.focused < zoom || this.focused >= p.end[zoom]!) this.focused = zoom;
    this.size();
  }

  setTheme(t: Theme): void {
    this.frame.theme = t;
    this.frame.colours = coloursOf(this.frame.profile, t);
    this.later();
  }

  setHit(hit: Uint8Array | null): void {
    this.frame.hit = hit;
    this.later();
  }

  /** Callers grow upwards: start at the bottom, where the function itself is. */
  scrollToStart(): void {
    this.box.scrollTop = this.frame.up ? this.box.scrollHeight : 0;
  }

  private listen(): void {
    const { canvas, box } = this;
    const on = { signal: this.off.signal };
    box.addEventListener('scroll', () => this.scrolled(), { ...on, passive: true });
    canvas.addEventListener('pointermove', (e) => {
      if (e.pointerType === 'touch') return;
      this.hoverAt(this.at(e.offsetX, e.offsetY), e.clientX, e.clientY);
    }, on);
    canvas.addEventListener('pointerleave', () => this.hoverAt(-1, 0, 0), on);
    canvas.addEventListener('click', (e) => {
      const i = this.at(e.offsetX, e.offsetY);
      if (i < 0) return;
      this.focused = i;
      this.hooks.zoom(i);
    }, on);
    canvas.addEventListener('contextmenu', (e) => {
      const i = this.at(e.offsetX, e.offsetY);
      if (i < 0) return;
      e.preventDefault();
      this.focused = i;
      this.hooks.menu(i, e.clientX, e.clientY);
    }, on);
    canvas.addEventListener('keydown', (e) => this.key(e), on);
    canvas.addEventListener('focus', () => { this.mark(); this.hooks.say(this.focused); }, on);
    canvas.addEventListener('blur', () => this.mark(), on);
  }

  private hoverAt(i: number, x: number, y: number): void {
    if (i !== this.hovered) {
      this.hovered = i;
      this.mark();
    }
    this.hooks.hover(i, x, y);
  }

  private scrolled(): void {
    this.frame.top = this.box.scrollTop;
    this.hoverAt(-1, 0, 0);
    this.later();
  }

  private size(): void {
    const f = this.frame;
    const ratio = devicePixelRatio || 1;
    const width = this.box.clientWidth;
    const height = this.box.clientHeight;
    this.spacer.style.height = `${Math.max(0, f.profile.levels * ROW - height)}px`;
    if (width !== f.width || height !== f.height || ratio !== this.ratio) {
      f.width = width;
      f.height = height;
      this.ratio = ratio;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.ctx.font = FONT;
      f.letter = this.ctx.measureText('MMMMMMMMMM').width / 10;
    }
    f.top = this.box.scrollTop;
    this.later();
  }

  private later(): void {
    if (this.raf) return;
    this.raf = requestAnimationFrame(() => {
      this.raf = 0;
      if (!this.frame.width) return;
      this.painted = draw(this.ctx, this.frame);
      this.mark();
    });
  }

  /** The position of a node on the canvas; callers of the zoomed node span its full width. */
  place(i: number): { x: number; y: number; w: number } {
    const f = this.frame;
    const p = f.profile;
    const above = i < f.zoom && p.end[i]! > f.zoom;
    const k = f.width / (p.w[f.zoom]! || 1);
    const x = above ? 0 : (p.x[i]! - p.x[f.zoom]!) * k;
    return { x, y: rowTop(f, p.depth[i]!), w: above ? f.width : p.w[i]! * k };
  }

  private ring(el: HTMLElement, i: number): void {
    const f = this.frame;
    if (i < 0 || i >= f.profile.n) {
      el.hidden = true;
      return;
    }
    const { x, y, w } = this.place(i);
    el.hidden = x + w < 0 || x > f.width || y < -ROW || y > f.height;
    const left = Math.max(0, x);
    el.style.width = `${Math.max(3, Math.min(x + w, f.width) - left)}px`;
    el.style.transform = `translate(${left}px,${y + f.top}px)`;
  }

  private mark(): void {
    this.ring(this.rings.hover, this.hovered);
    this.ring(this.rings.focus, document.activeElement === this.canvas ? this.focused : -1);
  }

  at(px: number, py: number): number {
    const f = this.frame;
    const p = f.profile;
    const depth = depthAt(f, py);
    if (depth < 0 || depth >= p.levels) return -1;
    let i = f.zoom;
    if (depth <= p.depth[i]!) {
      while (i > 0 && p.depth[i]! > depth) i = p.parent[i]!;
      return i;
    }
    const v = p.x[i]! + (px / f.width) * p.w[i]!;
    while (p.depth[i]! < depth) {
      let found = -1;
      for (let c = i + 1; c < p.end[i]! && v >= p.x[c]!; c = p.end[c]!) {
        if (v < p.x[c]! + p.w[c]!) {
          found = c;
          break;
        }
      }
      if (found < 0) return -1;
      i = found;
    }
    return i;
  }

  private neighbour(i: number, key: string): number {
    const p = this.frame.profile;
    const q = p.parent[i]!;
    const inward = this.frame.up ? 'ArrowUp' : 'ArrowDown';
    if (key === inward) {
      let best = i;
      for (let c = i + 1; c < p.end[i]!; c = p.end[c]!) if (best === i || p.w[c]! > p.w[best]!) best = c;
      return best;
    }
    if (key === 'ArrowUp' || key === 'ArrowDown') return q >= 0 ? q : i;
    if (q < 0) return i;
    if (key === 'ArrowRight') return p.end[i]! < p.end[q]! ? p.end[i]! : i;
    let before = i;
    for (let c = q + 1; c < i; c = p.end[c]!) before = c;
    return before;
  }

  private nextHit(i: number, step: number): number {
    const { profile: p, hit } = this.frame;
    if (!hit) return i;
    for (let j = i + step; j > 0 && j < p.n; j += step) if (hit[p.name[j]!]) return j;
    return i;
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const p = this.frame.profile;
    let i = this.focused;
    if (e.key.startsWith('Arrow')) i = this.neighbour(i, e.key);
    else if (e.key === 'Home') i = this.frame.zoom;
    else if (e.key === 'n' || e.key === 'N') i = this.nextHit(i, e.key === 'n' ? 1 : -1);
    else {
      if (e.key === 'Enter' || e.key === ' ') this.hooks.zoom(i);
      else if (e.key === 'Escape') this.hooks.zoom(0);
      else if (e.key === 'Backspace') this.hooks.zoom(Math.max(0, p.parent[this.frame.zoom]!));
      else if (e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey) || e.key === 'm') {
        const box = this.canvas.getBoundingClientRect();
        const at = this.place(i);
        this.hooks.menu(i, box.left + Math.max(0, at.x) + 12, box.top + Math.max(0, at.y) + ROW);
      } else if (!this.hooks.key(e.key, i)) return;
      e.preventDefault();
      e.stopPropagation();
      return;
    }
    e.preventDefault();
    e.stopPropagation();
    this.moveTo(i);
  }

  private moveTo(i: number): void {
    const f = this.frame;
    const p = f.profile;
    this.focused = i;
    const within = i >= f.zoom && i < p.end[f.zoom]!;
    const above = i < f.zoom && p.end[i]! > f.zoom;
    if (!within && !above) this.hooks.zoom(0);
    const y = rowAt(f, p.depth[i]!);
    if (y < f.top) this.box.scrollTop = y;
    else if (y + ROW > f.top + f.height) this.box.scrollTop = y + ROW - f.height;
    this.hooks.say(i);
    this.mark();
  }
}
