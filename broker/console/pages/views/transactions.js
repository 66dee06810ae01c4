// Transactions, and what the open ones hold back.

import { Badge, Check, Empty, Head, Loaded, Pager, Panel, Search, Table } from '../components.js';
import { counted, duration, number, spaced } from '../format.js';
import { to, useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';
import { Abort } from './producers.js';

const KINDS = { Ongoing: 'warning', Hanging: 'problem' };

/** The view. */
export function Transactions() {
  const [query, change] = useQuery();
  const { search, openOnly, from = 0 } = query;
  const source = useWatched('/transactions', { search, openOnly, from });
  return html`
    <${Head} title="Transactions" note="An open transaction holds back all records behind it from consumers that read committed ones." />
    <div class="filters"><${Search} label="Search in transactional ids" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} />
      <${Check} label="Open ones only" isOn=${openOnly === 'true'} onChange=${(isOn) => change({ openOnly: isOn || null, from: null })} /></div>
    <${Panel} title="Transactional ids">
      <${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} from=${Number(from)} change=${change} />`}<//>
    <//>`;
}

function Rows({ data, from, change }) {
  const [aborted, setAborted] = useState(null);
  if (data.total === 0) return html`<${Empty} title="There are no transactions.">A producer with a transactional id makes one.<//>`;
  return html`
    <${Table} label="Transactions" rows=${data.transactions} keyOf=${(row) => `${row.producerId}/${row.producerEpoch}/${row.transactionalId}`} columns=${[
      { title: 'Transactional id', kind: 'text', cell: (row) => row.transactionalId ?? 'unknown' },
      { title: 'State', kind: 'text', cell: (row) => html`<${Badge} kind=${KINDS[row.state] ?? 'plain'}>${spaced(row.state)}<//>
        ${row.ends && html`<div class="muted">${row.ends}</div>`}` },
      { title: 'Open for', kind: 'number', cell: (row) => duration(row.runningMs) },
      { title: 'Timeout', kind: 'number', cell: (row) => duration(row.timeoutMs) },
      { title: 'Producer', kind: 'fixed', cell: (row) => `${row.producerId}, epoch ${row.producerEpoch}` },
      { title: 'Where', kind: 'wide', cell: (row) => (row.partitions.length === 0 ? '–' : html`<div class="rows">${row.partitions.map((part) => html`<div>
        <a href=${to(['topics', part.topic, 'producers'], { partition: part.partition })}>${part.topic} ${part.partition}</a>
        ${part.startOffset != null && ` since offset ${number(part.startOffset)}`}
        ${part.heldBackRecords > 0 && html` <${Badge} kind="warning">${counted(part.heldBackRecords, 'record')} held back<//>`}
        ${row.mayAbort && part.startOffset != null && html` <button type="button" class="danger small"
          aria-label=${`Abort ${row.transactionalId ?? `producer ${row.producerId}`} in ${part.topic} ${part.partition}`}
          onClick=${() => setAborted({ ...part, transaction: { ...row, startOffset: part.startOffset } })}>Abort</button>`}
      </div>`)}</div>`) },
    ]} />
    <${Pager} from=${from} total=${data.total} onMove=${(target) => change({ from: target || null })} />
    ${aborted && html`<${Abort} topic=${aborted.topic} partition=${aborted.partition} transaction=${aborted.transaction} onClose=${() => setAborted(null)} />`}`;
}
