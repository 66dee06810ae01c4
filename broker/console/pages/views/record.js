// Records as a list, and one with everything that is known of it.

import { addressOf, url, useLoaded } from '../api.js';
import { Badge, Choice, Copy, Empty, Facts, Loaded, Panel, Table, useOpen } from '../components.js';
import { bytes, number, plain, time } from '../format.js';
import { indented } from '../json_text.js';
import { to, useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { Produce } from './produce.js';

/** How keys and values can be shown. */
export const FORMATS = [['', 'what it is'], ['text', 'text'], ['json', 'JSON'], ['hex', 'hex'], ['avro', 'Avro'], ['protobuf', 'Protobuf'], ['jsonschema', 'JSON Schema']];

// Of a record, and of the marker at the end.
const TRANSACTIONS = {
  open: ['part of one that is open: consumers of committed records do not get it yet', ''],
  committed: ['part of one that was committed', 'its end: it was committed'],
  aborted: ['part of one that was aborted: consumers of committed records skip it', 'its end: it was aborted'],
};
const MARKS = {
  open: html`<br /><${Badge} kind="warning">not committed yet<//>`,
  aborted: html`<br /><${Badge}>aborted<//>`,
};

/** @param {{topic: string, records: object[], query: Object<string, any>}} props `query` is that of links to a record */
export function Records({ topic, records, query }) {
  return html`<${Table} label="Records" rows=${records} keyOf=${(record) => `${record.partition}/${record.offset}`} columns=${[
    { title: 'Offset', kind: 'fixed', cell: (record) => html`<a href=${to(['topics', topic, 'messages', record.partition, record.offset], query)}
      aria-label=${`Partition ${record.partition}, offset ${record.offset}`}>${number(record.offset)}</a> <span class="muted">in ${record.partition}</span>
      ${!record.isControl && MARKS[record.transaction]}` },
    { title: 'Time', kind: 'fixed', cell: (record) => time(record.timestampMs) },
    { title: 'Key', kind: 'text', cell: (record) => html`<${Short} data=${record.key} none="no key" />` },
    { title: 'Value', kind: 'wide', cell: (record) => (record.isControl ? html`<${Badge}>end of a transaction<//>` : html`<${Short} data=${record.value} none="tombstone" />`) },
    { title: 'Headers', cell: (record) => record.headers.map((header) => header.name).join(', ') || '–' },
    { title: 'Size', kind: 'number', cell: (record) => bytes(record.sizeBytes) },
  ]} />`;
}

function Short({ data, none }) {
  if (data === null) return html`<${Badge}>${none}<//>`;
  return html`<div class="data">${data.text.slice(0, 300)}</div>`;
}

/** @param {{topic: object, partition: string, offset: string}} props */
export function OneRecord({ topic, partition, offset }) {
  const [query, change] = useQuery();
  const source = useLoaded(url`/topics/${topic.name}/partitions/${partition}/messages/${offset}`, { format: query.format });
  const place = (target) => to(['topics', topic.name, 'messages', partition, target], { format: query.format });
  const log = topic.partitions.find((row) => String(row.partition) === partition);
  return html`
    <div class="filters">
      <${Choice} label="Show as" value=${query.format ?? ''} options=${FORMATS} onChange=${(value) => change({ format: value })} />
      ${Number(offset) > (log?.logStartOffset ?? 0) && html`<a class="button" href=${place(Number(offset) - 1)}>Offset before</a>`}
      ${Number(offset) + 1 < log?.highWatermark && html`<a class="button" href=${place(Number(offset) + 1)}>Offset after</a>`}
      <a class="button" href=${to(['topics', topic.name, 'messages'], { partition, position: 'offset', offset })}>Records from here</a>
    </div>
    <${Loaded} source=${source}>${(data) => html`<${Whole} topic=${topic} data=${data} />`}<//>`;
}

function Whole({ topic, data }) {
  const { record } = data;
  const [isProducing, open, close] = useOpen();
  const isWhole = (data.wholeKey !== null || record.key === null) && (data.wholeValue !== null || record.value === null) && data.wholeHeaders !== null;
  const file = (part) => addressOf(url`/topics/${topic.name}/partitions/${record.partition}/messages/${record.offset}/${part}`);
  return html`
    <${Panel} title=${`Partition ${record.partition}, offset ${number(record.offset)}`} actions=${html`
      <${Copy} text=${location.href} label="Copy the link" />
      <${Copy} text=${JSON.stringify(record, null, 2)} label="Copy as JSON" />
      ${topic.mayWrite && !record.isControl && isWhole && html`<button type="button" class="small" onClick=${open}>Send again</button>`}`}>
      <${Facts} items=${[
        ['Time', time(record.timestampMs)],
        ['Set by', plain(record.timestampType)],
        ['Size', bytes(record.sizeBytes)],
        ['Compression', record.compression],
        ['Leader epoch', record.leaderEpoch],
        ['Producer', record.producerId == null ? null : `${record.producerId}, epoch ${record.producerEpoch}`],
        ['Transaction', record.transaction && TRANSACTIONS[record.transaction][record.isControl ? 1 : 0]],
      ]} />
    <//>
    <${WholeData} title="Key" none="The record has no key." data=${record.key} file=${file('key')} />
    <${WholeData} title="Value" none="The record has no value: it is a tombstone, which compaction deletes its key by." data=${record.value} file=${file('value')} />
    <${Panel} title="Headers">
      ${record.headers.length === 0 ? html`<${Empty} title="The record has no headers." />`
        : html`<${Table} label="Headers" rows=${record.headers.map((header, index) => ({ index, ...header }))} keyOf=${(header) => header.index} columns=${[
          { title: 'Name', cell: (header) => html`<code>${header.name}</code>` },
          { title: 'Value', kind: 'wide', cell: (header) => (header.value === null ? html`<${Badge}>null<//>` : html`<code>${header.value.text}</code>`) },
        ]} />`}
      ${record.headerCount > record.headers.length && html`<p class="muted">${number(record.headers.length)} of ${number(record.headerCount)} headers are shown.</p>`}
    <//>
    ${isProducing && html`<${Produce} topic=${topic} start=${data} onClose=${close} />`}`;
}

function WholeData({ title, none, data, file }) {
  if (data === null) return html`<${Panel} title=${title}><${Empty} title=${none} /><//>`;
  const text = indented(data.text);
  return html`<${Panel} title=${title} actions=${html`<${Badge}>${data.format}${data.schemaId == null ? '' : `, schema ${data.schemaId}`}<//>
    <span class="muted">${bytes(data.sizeBytes)}</span><${Copy} text=${text} /><a class="button small" href=${file} download>Download</a>`}>
    <pre class="whole" tabindex="0" aria-label=${title}>${text}</pre>
    ${data.isCut && html`<p class="note">It is longer, ${bytes(data.sizeBytes)} in all: download it to see the rest.</p>`}
  <//>`;
}
