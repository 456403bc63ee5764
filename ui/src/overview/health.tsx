/* sonde itself in one line: what it costs, what it has stored, and everything that was lost. */
import { missing, type Feature, type Health } from '../api';
import { percent, span, value } from '../format';

/** One line names what is missing; expanded, it gives reasons and fixes. */
function Missing({ features }: { features: Feature[] }) {
  if (!features.length) return null;
  return (
    <details class="missing">
      <summary class="warn">{features.map((f) => `${f.title}: ${f.state}`).join(' · ')}</summary>
      <table class="why">
        <thead>
          <tr>
            <th scope="col">Feature</th>
            <th scope="col">Reason</th>
            <th scope="col">Fix</th>
          </tr>
        </thead>
        <tbody>
          {features.map((f) => (
            <tr>
              <td data-title="Feature">{f.title}: {f.state}</td>
              <td data-title="Reason">{f.reason}</td>
              <td data-title="Fix">{f.remedy ? <code>{f.remedy}</code> : <span class="dim">none</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

export function HealthLine({ health }: { health: Health }) {
  const h = health;
  const said = [h.trouble, h.store.trouble, h.store.damage, h.store.budget].filter((t): t is string => !!t);
  const troubles = [...new Set(said)];
  if (!h.store.writing && !h.store.trouble) troubles.push('Profiles are not being stored.');
  if (h.store.clock_ahead_ms) troubles.push(`The clock jumped ahead by ${span(h.store.clock_ahead_ms)}: old days are kept until 24 h confirm it.`);
  const losses: [number, string][] = [
    [h.failures, 'failed collections'],
    [h.hung_reads, 'reads that hang'],
    [h.lost_records, 'lost records'],
    [h.cpu_samples_lost, 'lost CPU samples'],
    [h.write_failures, 'failed writes'],
    [h.sinks.reduce((n, s) => n + s.dropped + s.spool_lost, 0), 'dropped records'],
    [h.store.profiles_lost, 'lost profiles'],
    [h.store.damaged_files, 'damaged files moved aside'],
    [h.store.damaged_blocks, 'damaged blocks'],
    [h.store.over_budget, 'over budget, stored as (other)'],
  ];
  const about = [
    `up for ${span(h.uptime_ms)}`, `${h.targets} processes, ${h.profiled} with a heap profile`, `collected every ${span(h.interval_ms)}`,
    `last delay ${Math.round(h.lag_ms)} ms`, `${h.store.samples} samples stored`,
  ].join('; ');
  return (
    <div class="health" role="group" aria-label="Health of sonde">
      <span title={about}>
        <span class="dim">sonde</span> {h.version}{' '}
        <span class="dim">uses</span> {percent(h.cpu_percent, 100)} <span class="dim">of a core and</span> {value(h.rss_bytes, 'bytes')}<span class="dim">, stores</span>{' '}
        {value(h.store.bytes, 'bytes')}{h.store.oldest != null && <> <span class="dim">of the last</span> {span(Math.max(0, h.now - h.store.oldest))}</>}
      </span>
      {losses.filter(([n]) => n > 0).map(([n, text]) => <span class="warn">{n} {text}</span>)}
      {troubles.map((t) => <span class="warn" role="alert">{t}</span>)}
      <Missing features={missing(h.features)} />
    </div>
  );
}
