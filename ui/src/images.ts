/* The menu that saves the flame graph as it is shown. */
import { png, save, svg, type Picture } from './flame/export';
import { value } from './format';
import type { MenuAt } from './parts';
import type { State, Window } from './state';
import { typeText } from './types';

/** "checkout-cpu-20261118T051500Z.svg" */
export function imageName(service: string, type: string, from: number, ending: string): string {
  const at = new Date(from).toISOString().replace(/[-:]|\.\d+/g, '');
  return `${service}-${type.split(':')[1] ?? type}-${at}.${ending}`.replace(/[^\w.-]/g, '_');
}

/** Windows in UTC: whoever gets the file may be elsewhere. */
const text = (w: Window) => `${new Date(w.from).toISOString().slice(0, 19)}Z to ${new Date(w.to).toISOString().slice(0, 19)}Z`;

export interface Shown extends Pick<Picture, 'profile' | 'zoom' | 'hit' | 'theme'> {
  state: State;
  type: string;
  w: Window;
  base: Window | null;
}

function captionOf({ profile: p, zoom, state, w, base }: Shown): string {
  const how = state.norm ? 'by share' : state.per ? 'per process' : '';
  const what = base ? [`${text(base)} compared with ${text(w)}`, how] : [text(w), value(p.total[zoom]!, p.unit)];
  const filters = [...state.labels, ...state.focus.map((f) => `only ${f}`), ...state.hide.map((f) => `without ${f}`), state.q && `search: ${state.q}`];
  return [...what, ...filters].filter(Boolean).join(', ');
}

export function imageMenu(shown: Shown, button: HTMLElement, say: (s: string) => void): MenuAt {
  const { state, type, w } = shown;
  const picture: Picture = { ...shown, title: `${state.service} · ${typeText(type).title}`, caption: captionOf(shown) };
  const box = button.getBoundingClientRect();
  const keep = (blob: Blob | null, ending: string) =>
    blob ? save(blob, imageName(state.service, type, w.from, ending)) : say('The browser could not make the image');
  return {
    title: 'Flame graph as shown', x: box.left, y: box.bottom + 4,
    items: [
      { text: 'SVG, with full names', run: () => keep(new Blob([svg(picture)], { type: 'image/svg+xml' }), 'svg') },
      { text: 'PNG', run: async () => keep(await png(picture), 'png') },
    ],
  };
}
