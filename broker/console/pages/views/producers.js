// The producers of a partition, their open transactions, and what these hold back.

import { send, url, useLoaded } from '../api.js';
import { Badge, Empty, Loaded, Pager, Panel, Table } from '../components.js';
import { Confirm } from '../dialogs.js';
import { ago, counted, number, time } from '../format.js';
import { useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';
import { PartitionChoice } from './partition_choice.js';

/** @param {{topic: object}} props the response of /topics/{topic} */
export function Producers({ topic }) {
  const [query] = useQuery();
  const partition = query.partition ?? '0';
  const source = useLoaded(url`/topics/${topic.name}/partitions/${partition}/producers`, { from: query.from });
  return html`
    <div class="filters"><${PartitionChoice} topic=${topic} />
      <button type="button" onClick=${source.reload}>Refresh</button></div>
    <${Loaded} source=${source}>${(data) => html`<${Page} data=${data} topic=${topic} partition=${partition} onChange=${source.reload} />`}<//>`;
}

function Page({ data, topic, partition, onChange }) {
  const [query, change] = useQuery();
  const [aborted, setAborted] = useState(null);
  const from = Number(query.from ?? 0);
  const columns = [
    { title: 'Producer', cell: (row) => html`${row.producerId}, epoch ${row.producerEpoch}
      ${row.transactionalId && html`<br /><code>${row.transactionalId}</code>`}` },
    { title: 'Transaction', kind: 'wide', cell: (row) => (row.transactionStartOffset == null ? 'none'
      : html`<${Badge} kind=${row.isHanging ? 'problem' : 'warning'}>${row.isHanging ? 'hangs' : 'open'}<//> since offset ${number(row.transactionStartOffset)}${row.transactionStartMs != null && `, ${ago(row.transactionStartMs)}`}
      ${row.ends && html`<br /><span class="muted">${row.ends}</span>`}`) },
    { title: 'Holds back', kind: 'number', cell: (row) => (row.heldBackRecords ? counted(row.heldBackRecords, 'record') : '–') },
    { title: 'Last sequence', kind: 'number', cell: (row) => number(row.lastSequence) },
    { title: 'Last record', kind: 'fixed', cell: (row) => html`${time(row.lastTimestampMs).slice(0, 19)}<br /><span class="muted">${ago(row.lastTimestampMs)}</span>` },
  ];
  if (data.producers.some((row) => row.mayAbort)) {
    columns.push({ title: '', cell: (row) => row.mayAbort && html`<button type="button" class="danger small"
      aria-label=${`Abort the transaction of producer ${row.producerId}`} onClick=${() => setAborted(row)}>Abort</button>` });
  }
  return html`
    ${data.heldBackRecords > 0 && html`<p class="advice"><strong>${counted(data.heldBackRecords, 'record')} are held back.</strong>
      ${' '}Consumers that read committed records stop at offset ${number(data.lastStableOffset)}, the log ends at ${number(data.logEndOffset)}.
      ${' '}They go on when the transaction below ends: by its producer, by its timeout, or aborted here.</p>`}
    <${Panel} title="Producers" note="Those with a producer id: idempotent and transactional ones. Others leave no trace.">
      ${data.total === 0
        ? html`<${Empty} title="No producer with an id has written here lately.">Ids are forgotten after producer.id.expiration.ms.<//>`
        : html`<${Table} label="Producers" rows=${data.producers} keyOf=${(row) => row.producerId} columns=${columns} />
          <${Pager} from=${from} total=${data.total} onMove=${(target) => change({ from: target || null })} />`}
    <//>
    ${aborted && html`<${Abort} topic=${topic.name} partition=${partition} transaction=${{ startOffset: aborted.transactionStartOffset, ...aborted }}
      onClose=${() => setAborted(null)} onDone=${onChange} />`}`;
}

/**
 * Asks, and aborts the transaction that is open in a partition.
 * @param {{topic: string, partition: number|string, transaction: {producerId: number, producerEpoch: number, startOffset: number, transactionalId?: string},
 *          onClose: () => void, onDone?: () => void}} props
 */
export function Abort({ topic, partition, transaction, onClose, onDone }) {
  const { producerId, producerEpoch, startOffset, transactionalId } = transaction;
  const abort = async () => {
    const body = { producerId, producerEpoch, transactionStartOffset: startOffset };
    await send('POST', url`/topics/${topic}/partitions/${partition}/abort`, body);
    onDone?.();
  };
  return html`<${Confirm} title="Abort this transaction?" action="Abort the transaction" done="The transaction was aborted."
    onClose=${onClose} onConfirm=${abort}>
    <p>Producer ${producerId}${transactionalId && ` (${transactionalId})`} has it open in ${topic}, partition ${partition}, since offset ${number(startOffset)}.</p>
    <p>Consumers that read committed records will skip the records of this transaction, and get those behind it. It is aborted in all its partitions.
      Its producer, if it still runs, gets an error.</p>
  <//>`;
}
