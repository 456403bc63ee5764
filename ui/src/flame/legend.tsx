/* What the colours mean: kinds of code with their shares, and their largest modules. */
import { useMemo } from 'preact/hooks';
import { percent } from '../format';
import { go } from '../state';
import type { Theme } from './draw';
import type { Profile } from './layout';
import { KINDS, legendOf, litKey } from './origin';

function Entry({ id, text, share, colour, lit }: { id: string; text: string; share: string; colour?: string; lit: string }) {
  return (
    <button type="button" class={colour ? 'entry' : 'entry kind'} aria-pressed={lit === id} title={`${share} of self values. Click to highlight ${text}`}
      onClick={() => go({ lit: lit === id ? '' : id })}>
      {colour && <i class="sw" style={{ background: colour }} />}
      <span class="entrytext">{text}</span> <span class="dim">{share}</span>
    </button>
  );
}

export function Legend({ p, theme, lit }: { p: Profile; theme: Theme; lit: string }) {
  const kinds = useMemo(() => legendOf(p, theme.dark), [p, theme.dark]);
  const all = p.total[0]!;
  if (p.diff || !kinds.length) return null;
  return (
    <div class="legendbar" role="group" aria-label="Legend">
      {kinds.map((k) => (
        <span class="entries">
          <Entry id={litKey(k.kind)} text={KINDS[k.kind]} share={percent(k.value, all)} lit={lit} />
          {k.modules.map((m) => <Entry id={litKey(k.kind, m.module)} text={m.module} share={percent(m.value, all)} colour={m.colour} lit={lit} />)}
        </span>
      ))}
    </div>
  );
}
