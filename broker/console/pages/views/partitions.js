// The partitions of a topic and their offsets.

import { Failure, send, url } from '../api.js';
import { Badge, Field, Pager, pageOf, Panel, Table, toast } from '../components.js';
import { ChangeForm, Dialog } from '../dialogs.js';
import { bytes, counted, number } from '../format.js';
import { to, useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';

/** @param {{topic: object}} props the response of /topics/{topic} */
export function Partitions({ topic }) {
  const [query, change] = useQuery();
  const [emptied, setEmptied] = useState(null);
  const from = Number(query.from ?? 0);
  const columns = [
    { title: 'Partition', cell: (row) => html`<a href=${to(['topics', topic.name, 'messages'], { partition: row.partition })}>${row.partition}</a>
      ${!row.isOnline && html` <${Badge} kind="problem">offline<//> ${row.reason}`}` },
    { title: 'Log start', kind: 'number', cell: (row) => number(row.logStartOffset) },
    { title: 'Last stable', kind: 'number', cell: (row) => html`${number(row.lastStableOffset)}${heldBack(topic.name, row)}` },
    { title: 'High watermark', kind: 'number', cell: (row) => number(row.highWatermark) },
    { title: 'End', kind: 'number', cell: (row) => number(row.logEndOffset) },
    { title: 'Size', kind: 'number', cell: (row) => bytes(row.sizeBytes) },
    { title: 'Segments', kind: 'number', cell: (row) => html`<a href=${to(['topics', topic.name, 'segments'], { partition: row.partition })}
      aria-label=${`Segments of partition ${row.partition}`}>${number(row.segments)}</a>` },
    { title: 'Leader epoch', kind: 'number', cell: (row) => number(row.leaderEpoch) },
  ];
  if (new Set(topic.partitions.map((row) => row.directory)).size > 1) {
    columns.push({ title: 'Directory', cell: (row) => html`<code>${row.directory}</code>` });
  }
  if (topic.mayDelete) {
    columns.push({ title: '', cell: (row) => row.isOnline && row.logEndOffset > row.logStartOffset && html`<button type="button" class="small"
      aria-label=${`Delete records of partition ${row.partition}`} onClick=${() => setEmptied(row)}>Delete records</button>` });
  }
  return html`<${Panel} title="Partitions" note="Consumers that read committed records stop at the last stable offset: an open transaction holds it back.">
    <${Table} label="Partitions" rows=${pageOf(topic.partitions, from)} keyOf=${(row) => row.partition} columns=${columns} />
    <${Pager} from=${from} total=${topic.partitions.length} onMove=${(target) => change({ from: target || null })} />
    ${emptied && html`<${DeleteRecords} topic=${topic.name} row=${emptied} onClose=${() => setEmptied(null)} />`}
  <//>`;
}

function heldBack(topic, row) {
  const count = row.highWatermark - row.lastStableOffset;
  if (!(count > 0)) return null;
  return html`<br /><a href=${to(['topics', topic, 'producers'], { partition: row.partition })}><${Badge} kind="warning">${counted(count, 'record')} held back<//></a>`;
}

function DeleteRecords({ topic, row, onClose }) {
  const remove = async ({ offset }) => {
    const answer = await send('POST', url`/topics/${topic}/delete-records`, { offsets: { [row.partition]: Number(offset) } });
    if (answer.failures.length > 0) throw new Failure({ error: answer.failures[0].error, message: 'The records could not be deleted.' });
    toast(`Partition ${row.partition} begins at offset ${answer.lowWatermarks[row.partition]} now.`);
    onClose();
  };
  return html`<${Dialog} title=${`Delete records of partition ${row.partition}`} onClose=${onClose}>
    <${ChangeForm} action="Delete" isDangerous onClose=${onClose} onSend=${remove}>
      <p>Records before the offset are lost. The log has ${number(row.logStartOffset)} to ${number(row.logEndOffset)} now.</p>
      <${Field} label="Keep from offset"><input name="offset" type="number" required min=${row.logStartOffset} max=${row.highWatermark} defaultValue=${row.highWatermark} /><//>
    <//>
  <//>`;
}
