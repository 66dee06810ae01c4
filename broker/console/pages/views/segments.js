// The segments of a partition, and why retention or compaction has not taken them yet.

import { url, useLoaded } from '../api.js';
import { Badge, Facts, Loaded, Pager, Panel, Table } from '../components.js';
import { ago, bytes, counted, duration, number, time } from '../format.js';
import { useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { PartitionChoice } from './partition_choice.js';

/** @param {{topic: object}} props the response of /topics/{topic} */
export function Segments({ topic }) {
  const [query] = useQuery();
  const partition = query.partition ?? '0';
  const source = useLoaded(url`/topics/${topic.name}/partitions/${partition}/segments`, { from: query.from });
  return html`
    <div class="filters"><${PartitionChoice} topic=${topic} />
      <button type="button" onClick=${source.reload}>Look again</button></div>
    <${Loaded} source=${source}>${(data) => html`<${Page} data=${data} />`}<//>`;
}

function Page({ data }) {
  const [query, change] = useQuery();
  const { segments, config, total } = data;
  return html`
    ${config ? html`<${Panel} title="What takes segments away"><${Facts} items=${configFacts(config)} /><//>`
      : html`<p class="advice">Only users who may DESCRIBE_CONFIGS on the topic see its settings, and why a segment is still here.</p>`}
    <${Panel} title="Segments" note=${html`${counted(total, 'segment')}${data.directory && html` in <code>${data.directory}</code>`}, offsets ${number(data.logStartOffset)} to ${number(data.logEndOffset)}, oldest first.
      ${data.cleaning && ` Compaction: ${data.cleaning}.`}`}>
      <div class="segments" aria-hidden="true" title="Their sizes">${segments.map((segment) => html`<i class=${kindOf(segment)} style=${`flex-grow:${Math.max(1, segment.sizeBytes)}`}></i>`)}</div>
      <${Table} label="Segments" rows=${segments} keyOf=${(segment) => segment.baseOffset} columns=${[
        { title: 'Offsets', cell: (segment) => html`${offsetsOf(segment)}
          ${segment.isActive && html` <${Badge} kind="ok">active<//>`}` },
        { title: 'Size', kind: 'number', cell: (segment) => bytes(segment.sizeBytes) },
        { title: 'Newest record', cell: (segment) => (segment.newestTimestampMs == null ? '–'
          : html`${time(segment.newestTimestampMs).slice(0, 19)}<br /><span class="muted">${ago(segment.newestTimestampMs)}${segment.isFileTime && ', the time of the file'}</span>`) },
        ...(config ? [{ title: 'Why it is still here', kind: 'wide', cell: Why }] : []),
        { title: 'Index entries', kind: 'fixed', cell: (segment) => html`${number(segment.offsetIndexEntries)} offsets<br />${number(segment.timeIndexEntries)} times
          ${segment.abortedTransactions > 0 && html`<br />${number(segment.abortedTransactions)} aborted`}` },
        { title: 'Files', kind: 'fixed', cell: (segment) => html`<details><summary>${counted(segment.files.length, 'file')}</summary>
          ${segment.files.map((file) => html`<div><code>${file.name}</code> ${bytes(file.sizeBytes)}</div>`)}</details>` },
      ]} />
      <${Pager} from=${Number(query.from ?? 0)} total=${total} onMove=${(target) => change({ from: target || null })} />
    <//>`;
}

function offsetsOf({ baseOffset, endOffset }) {
  return endOffset > baseOffset ? `${number(baseOffset)} to ${number(endOffset - 1)}` : `none yet, from ${number(baseOffset)}`;
}

function Why(segment) {
  return html`<div>${segment.why}</div>
    ${segment.waitsFor != null && html`<div class="muted">It waits for the segment at offset ${number(segment.waitsFor)}.</div>`}
    ${segment.eligibleAtMs != null && html`<div class="muted">Old enough ${ago(segment.eligibleAtMs)} (${time(segment.eligibleAtMs).slice(0, 19)})</div>`}
    ${segment.cleaning && html`<div class="muted">Compaction: ${segment.cleaning}</div>`}`;
}

function kindOf(segment) {
  if (segment.isActive) return 'active';
  return segment.deletedBy ? 'due' : '';
}

/** Names as Kafka writes them; -1 and what is longer than any life is no limit. */
function configFacts(config) {
  return Object.entries(config).map(([name, value]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `.${letter.toLowerCase()}`),
    typeof value !== 'number' ? value : limitOf(name, value),
  ]);
}

function limitOf(name, value) {
  if (name.endsWith('Ms') || name.endsWith('Bytes')) {
    if (value < 0 || value >= 2 ** 62) return 'no limit';
    return name.endsWith('Ms') ? duration(value) : bytes(value);
  }
  return String(value);
}
