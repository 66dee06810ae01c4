// The segments of a partition, and why retention or compaction has not taken them yet.

import { url, useLoaded } from '../api.js';
import { Badge, Facts, Loaded, Pager, pageOf, Panel, Table } from '../components.js';
import { ago, bytes, duration, number, time } from '../format.js';
import { useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { PartitionChoice } from './partition_choice.js';

/** @param {{topic: object}} props the response of /topics/{topic} */
export function Segments({ topic }) {
  const [query] = useQuery();
  const partition = query.partition ?? '0';
  const source = useLoaded(url`/topics/${topic.name}/partitions/${partition}/segments`);
  return html`
    <div class="filters"><${PartitionChoice} topic=${topic} />
      <button type="button" onClick=${source.reload}>Look again</button></div>
    <${Loaded} source=${source}>${(data) => html`<${Page} data=${data} />`}<//>`;
}

function Page({ data }) {
  const [query, change] = useQuery();
  const from = Number(query.from ?? 0);
  const { segments, config } = data;
  return html`
    <${Panel} title="What takes segments away"><${Facts} items=${configFacts(config)} /><//>
    <${Panel} title="Segments" note=${`${segments.length} files of records, offsets ${number(data.logStartOffset)} to ${number(data.logEndOffset)}, oldest first. Wide ones are large.`}>
      <div class="segments" aria-hidden="true">${segments.map((segment) => html`<i class=${kindOf(segment)} style=${`flex-grow:${Math.max(1, segment.sizeBytes)}`}></i>`)}</div>
      <${Table} label="Segments" rows=${pageOf(segments, from)} keyOf=${(segment) => segment.baseOffset} columns=${[
        { title: 'Offsets', cell: (segment) => html`${number(segment.baseOffset)} to ${number(segment.endOffset)}
          ${segment.isActive && html` <${Badge} kind="ok">active<//>`}` },
        { title: 'Size', isNumber: true, cell: (segment) => bytes(segment.sizeBytes) },
        { title: 'Newest record', cell: (segment) => (segment.newestTimestampMs == null ? '–'
          : html`${time(segment.newestTimestampMs).slice(0, 19)}<br /><span class="muted">${ago(segment.newestTimestampMs)}</span>`) },
        { title: 'Why it is still here', isWide: true, cell: Why },
        { title: 'Index entries', isNumber: true, cell: (segment) => `${number(segment.offsetIndexEntries)} offset, ${number(segment.timeIndexEntries)} time` },
        { title: 'Files', cell: (segment) => html`<details><summary>${segment.files.length} files</summary>
          ${segment.files.map((file) => html`<div><code>${file.name}</code> ${bytes(file.sizeBytes)}</div>`)}</details>` },
      ]} />
      <${Pager} from=${from} total=${segments.length} onMove=${(target) => change({ from: target || null })} />
    <//>`;
}

function Why(segment) {
  return html`<div>${segment.why}</div>
    ${segment.eligibleAtMs != null && html`<div class="muted">May go ${ago(segment.eligibleAtMs)} (${time(segment.eligibleAtMs).slice(0, 19)})
      ${segment.deletedBy && ` by ${segment.deletedBy}`}</div>`}
    ${segment.notCleanedBecause && html`<div class="muted">Not compacted: ${segment.notCleanedBecause}</div>`}`;
}

function kindOf(segment) {
  if (segment.isActive) return 'active';
  return segment.eligibleAtMs != null && segment.eligibleAtMs <= Date.now() ? 'due' : '';
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
