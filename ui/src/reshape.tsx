/* The controls that reshape a profile: grouped by a label, folded, or in one language only. */
import { useMemo } from 'preact/hooks';
import type { Labels } from './api';
import type { Profile } from './flame/layout';
import { KINDS, LANGUAGES, type Kind } from './flame/origin';
import { folded, isFoldable, languagesOf, onlyKind } from './flame/shape';
import { go, type State } from './state';

/** What is asked for: a link may name a language that this window lacks. */
export function useReshaped(p: Profile | null, state: State): Profile | null {
  return useMemo(() => {
    if (!p) return null;
    const only = LANGUAGES.find((k) => k === state.only);
    const shown = state.frames === 'all' ? p : folded(p);
    return only && languagesOf(p, [only]).length ? onlyKind(shown, only) : shown;
  }, [p, state.frames, state.only]);
}

/** Labels that tell something apart come first. */
const keysOf = (labels: Labels | null): string[] =>
  (labels?.labels ?? []).slice().sort((a, b) => Number(b.values.length > 1) - Number(a.values.length > 1) || (a.key < b.key ? -1 : 1)).map((l) => l.key);

export function Reshape({ p, state, labels }: { p: Profile | null; state: State; labels: Labels | null }) {
  const keys = keysOf(labels);
  if (state.group && !keys.includes(state.group)) keys.unshift(state.group);
  const languages: Kind[] = useMemo(() => (p ? languagesOf(p, LANGUAGES) : []), [p]);
  const foldable = useMemo(() => !!p && isFoldable(p), [p]);
  return (
    <>
      {keys.length > 0 && (
        <select aria-label="Group by label" value={state.group} onChange={(e) => go({ group: e.currentTarget.value, zoom: '' })}>
          <option value="">Not grouped</option>
          {keys.map((k) => <option value={k}>by {k === 'process.pid' ? 'process' : k}</option>)}
        </select>
      )}
      {(languages.length > 1 || state.only) && (
        <select aria-label="Language" value={state.only} onChange={(e) => go({ only: e.currentTarget.value, zoom: '' })}>
          <option value="">All languages</option>
          {LANGUAGES.filter((k) => languages.includes(k) || k === state.only).map((k) => <option value={k}>Only {KINDS[k]}</option>)}
        </select>
      )}
      {foldable && (
        <button type="button" aria-pressed={state.frames !== 'all'} class="toggle" title="Fold frames that start threads, and an interpreter's own between its functions"
          onClick={() => go({ frames: state.frames === 'all' ? '' : 'all', zoom: '' })}>Fold start-up</button>
      )}
    </>
  );
}
