// What the broker does by itself: compaction, recovery, moves between directories, retention.

import { Badge, Empty, Facts, Head, Loaded, Meter, Panel, Table } from '../components.js';
import { ago, bytes, counted, duration, number } from '../format.js';
import { to } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

/** The view. */
export function Maintenance() {
  const source = useWatched('/maintenance');
  return html`<${Head} title="Maintenance" /><${Loaded} source=${source}>${(data) => html`<${Page} data=${data} />`}<//>`;
}

function Page({ data }) {
  const { cleaner, recovery, moves, retentionCheck } = data;
  return html`
    <div class="columns">
      <${Panel} title="Retention"><${Facts} items=${[
        ['Looked last', ago(retentionCheck.lastMs)], ['Looks every', duration(retentionCheck.everyMs)]]} /><//>
      <${Panel} title="Recovery after the start">
        ${recovery.waiting > 0
          ? html`<p>${counted(recovery.waiting, 'log')} of ${number(recovery.total)} wait.</p><${Meter} label="Recovered" share=${1 - recovery.waiting / recovery.total} />`
          : html`<p class="finding"><${Badge} kind="ok">done<//> ${recovery.total > 0 ? `${counted(recovery.total, 'log')} were recovered.` : 'No log waits.'}</p>`}
      <//>
    </div>
    <${Panel} title="Moves between directories">
      ${moves.length === 0 ? html`<${Empty} title="No partition moves." />` : moves.map((move) => html`<div class="stack">
        <p><a href=${to(['topics', move.topic])}>${move.topic} ${move.partition}</a> from <code>${move.from}</code> to <code>${move.to}</code>:
          ${' '}${bytes(move.copiedBytes)} of ${bytes(move.totalBytes)}</p>
        <${Meter} label=${`${move.topic} ${move.partition}`} share=${move.totalBytes > 0 ? move.copiedBytes / move.totalBytes : 1} />
      </div>`)}
    <//>
    <${Panel} title="Compaction" note=${cleaner.isEnabled ? `${counted(cleaner.threads, 'thread')}; the dirtiest logs first.` : 'It is switched off (log.cleaner.enable).'}>
      ${cleaner.logs.length === 0 ? html`<${Empty} title="No log is compacted.">Topics with cleanup.policy=compact appear here.<//>`
        : html`<${Table} label="Compacted logs" rows=${cleaner.logs} keyOf=${(log) => `${log.topic}/${log.partition}`} columns=${[
          { title: 'Partition', cell: (log) => html`<a href=${to(['topics', log.topic, 'segments'], { partition: log.partition })}>${log.topic} ${log.partition}</a>` },
          { title: 'Dirty', kind: 'number', cell: (log) => `${Math.round(log.dirtyRatio * 100)} %` },
          { title: 'Dirty bytes', kind: 'number', cell: (log) => bytes(log.dirtyBytes) },
          { title: 'Cleaned up to offset', kind: 'number', cell: (log) => number(log.cleanedToOffset) },
          { title: 'State', cell: (log) => log.state },
        ]} />`}
    <//>`;
}
