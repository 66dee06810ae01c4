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
  const { cleaner, recovery, moves, movesTotal, retentionCheck } = data;
  return html`
    <div class="columns">
      <${Panel} title="Retention"><${Facts} items=${[
        ['Looked last', ago(retentionCheck.lastMs)], ['Looks every', duration(retentionCheck.everyMs)]]} /><//>
      <${Panel} title="Recovery after the start">
        ${recovery.waiting > 0
          ? html`<p>${number(recovery.waiting)} of ${counted(recovery.total, 'log')} wait, and are not served yet.</p>
            <${Meter} label="Recovered" share=${1 - recovery.waiting / recovery.total} />
            ${recovery.logs.map((log) => html`<div>${log.topic} ${log.partition}: ${bytes(log.unflushedBytes)} to read${log.isAtWork && ', at work'}</div>`)}`
          : html`<p class="finding"><${Badge} kind="ok">done<//> ${recovery.total > 0 ? `${counted(recovery.total, 'log')} were recovered.` : 'No log waits.'}</p>`}
      <//>
    </div>
    <${Panel} title="Moves between directories" note=${movesTotal > moves.length && `${number(movesTotal)} in all.`}>
      ${moves.length === 0 ? html`<${Empty} title="No partition moves." />` : moves.map((move) => html`<div class="stack">
        <p><a href=${to(['topics', move.topic])}>${move.topic} ${move.partition}</a> from <code>${move.from}</code> to <code>${move.to}</code>:
          ${' '}${bytes(move.copiedBytes)} of ${bytes(move.totalBytes)}</p>
        <${Meter} label=${`${move.topic} ${move.partition}`} share=${move.totalBytes > 0 ? move.copiedBytes / move.totalBytes : 1} />
      </div>`)}
    <//>
    <${Panel} title="Compaction" note=${cleaner.isEnabled ? `${counted(cleaner.threads, 'thread')}; the dirtiest logs first, as they were ${ago(cleaner.checkedMs)}.` : 'It is switched off (log.cleaner.enable).'}>
      ${cleaner.lastError && html`<p class="advice">${cleaner.lastError}</p>`}
      ${cleaner.uncleanable.map((log) => html`<p class="advice">${log.topic} ${log.partition} is not compacted until a restart: ${log.reason}</p>`)}
      ${cleaner.cleaning.map((log) => html`<p>At work on ${log.topic} ${log.partition}: ${bytes(log.movedBytes)} read and written.</p>`)}
      ${cleaner.lastRound && html`<p class="muted">${cleaner.lastRound}</p>`}
      ${cleaner.logs.length === 0 ? html`<${Empty} title="No log has anything to compact yet.">Partitions of topics with cleanup.policy=compact appear here after a check, when they have records.<//>`
        : html`<${Table} label="Compacted logs" rows=${cleaner.logs} keyOf=${(log) => `${log.topic}/${log.partition}`} columns=${[
          { title: 'Partition', cell: (log) => html`<a href=${to(['topics', log.topic, 'segments'], { partition: log.partition })}>${log.topic} ${log.partition}</a>` },
          { title: 'Dirty', kind: 'number', cell: (log) => `${Math.round(log.dirtyRatio * 100)} %` },
          { title: 'Dirty bytes', kind: 'number', cell: (log) => bytes(log.dirtyBytes) },
          { title: 'Cleaned up to offset', kind: 'number', cell: (log) => number(log.cleanedToOffset) },
          { title: 'State', kind: 'wide', cell: (log) => html`${log.state}${log.why && html`<div class="muted">${log.why}</div>`}` },
        ]} />`}
    <//>`;
}
