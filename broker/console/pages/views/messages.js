// The records of a topic: searched from a position, or live.

import { addressOf, url } from '../api.js';
import { Check, Choice, Empty, FailureNote, Field, Loading, Meter, Panel, useOpen } from '../components.js';
import { counted, number } from '../format.js';
import { to, useQuery } from '../router.js';
import { html, useEffect, useState } from '../vendor/htm-preact.js';
import { watch } from '../watch.js';
import { FORMATS, Records } from './record.js';
import { PartitionChoice } from './partition_choice.js';
import { Produce } from './produce.js';
import { useSearch } from './search.js';

const FILTERS = ['partition', 'key', 'value', 'header', 'jsonPath', 'format', 'isolation'];
const TYPED = ['key', 'value', 'header', 'jsonPath', 'offset', 'timestampMs'];
const POSITIONS = [['newest', 'newest first'], ['oldest', 'oldest first'], ['offset', 'from an offset'], ['time', 'from a time']];
const KEPT_LIVE = 300;

/** @param {{topic: object}} props the response of /topics/{topic} */
export function Messages({ topic }) {
  const [query, change] = useQuery();
  const [isProducing, open, close] = useOpen();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query[name]]));
  const isLive = query.live === 'true';
  return html`
    <${Panel} title="Which records" actions=${html`
      <${Check} label="Live" isOn=${isLive} onChange=${(isOn) => change({ live: isOn || null })} />
      ${topic.mayWrite && html`<button type="button" class="main" onClick=${open}>Produce</button>`}`}>
      <${Filters} key=${JSON.stringify(TYPED.map((name) => query[name]))} topic=${topic} query=${query} change=${change} isLive=${isLive} />
    <//>
    ${!filters.isolation && html`<${HeldBack} topic=${topic} partition=${filters.partition} change=${change} />`}
    ${isLive
      ? html`<${Live} key=${JSON.stringify(filters)} topic=${topic.name} filters=${filters} />`
      : html`<${Found} topic=${topic.name} request=${{ ...filters, ...positionOf(query) }} />`}
    ${isProducing && html`<${Produce} topic=${topic} onClose=${close} />`}`;
}

function HeldBack({ topic, partition, change }) {
  const count = topic.partitions
    .filter((row) => !partition || String(row.partition) === partition)
    .reduce((sum, row) => sum + (row.highWatermark - row.lastStableOffset), 0);
  if (count === 0) return null;
  return html`<div class="advice actions"><span><strong>${counted(count, 'record')}</strong> at the end are held back by an open transaction, and not shown.</span>
    <button type="button" class="small" onClick=${() => change({ isolation: 'read_uncommitted' })}>Show all</button>
    <a href=${to(['topics', topic.name, 'producers'], { partition })}>See the transaction</a></div>`;
}

function positionOf({ position = 'newest', offset, timestampMs }) {
  return {
    position,
    offset: position === 'offset' ? offset ?? 0 : null,
    timestampMs: position === 'time' ? timestampMs ?? 0 : null,
  };
}

/**
 * What is typed stays when the topic is drawn again, because it is watched, and when something is chosen: the fields have
 * default values only. The form is made anew when what was searched for changes, as by Clear.
 */
function Filters({ topic, query, change, isLive }) {
  const position = query.position ?? 'newest';
  const search = (event) => {
    event.preventDefault();
    const { at, ...texts } = Object.fromEntries(new FormData(event.currentTarget));
    change({ ...texts, ...(at ? { timestampMs: new Date(at).getTime() } : {}) });
  };
  const text = (name, label, hint) => html`<${Field} label=${label}>
    <input name=${name} defaultValue=${query[name] ?? ''} placeholder=${hint} spellcheck=${false} autocomplete="off" /><//>`;
  return html`<form class="form" onSubmit=${search}>
    <div class="filters">
      <${PartitionChoice} topic=${topic} hasAll />
      ${!isLive && html`<${Choice} label="Position" value=${position} options=${POSITIONS} onChange=${(value) => change({ position: value === 'newest' ? null : value })} />`}
      ${!isLive && position === 'offset' && html`<${Field} label="Offset"><input name="offset" type="number" min="0" defaultValue=${query.offset ?? 0} /><//>`}
      ${!isLive && position === 'time' && html`<${Field} label="Time"><input name="at" type="datetime-local" step="1" defaultValue=${localTime(query.timestampMs)} /><//>`}
      <${Choice} label="Show as" value=${query.format ?? ''} options=${FORMATS} onChange=${(value) => change({ format: value })} />
      <${Choice} label="Transactions" value=${query.isolation ?? ''} onChange=${(value) => change({ isolation: value })}
        options=${[['', 'committed only'], ['read_uncommitted', 'all records']]} />
    </div>
    <div class="pair">
      ${text('key', 'Key has', 'text')}
      ${text('value', 'Value has', 'text')}
      ${text('header', 'A header has', 'text, or name=text')}
      ${text('jsonPath', 'JSON path', '$.customer.city=Prague')}
    </div>
    <div class="actions">
      <button type="submit" class="main">Search</button>
      <button type="button" onClick=${() => change(Object.fromEntries([...FILTERS, 'position', 'offset', 'timestampMs'].map((name) => [name, null])))}>Clear</button>
      <a class="button" href=${addressOf(url`/topics/${topic.name}/messages/export`, exported(query))} download=${`${topic.name}.jsonl`}>Export as JSON lines</a>
    </div>
  </form>`;
}

function exported(query) {
  return { ...Object.fromEntries(FILTERS.map((name) => [name, query[name]])), ...positionOf(query), limit: 10000 };
}

/** A moment as <input type=datetime-local> has it; without one, or with one that is none, an hour ago. */
function localTime(timestampMs) {
  const asked = new Date(Number(timestampMs || NaN));
  const date = isNaN(asked) ? new Date(Date.now() - 3600000) : asked;
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

function Found({ topic, request }) {
  const search = useSearch(topic, request);
  const { records, unreadable, failure, isRunning, isComplete } = search;
  const isFiltered = Boolean(request.key || request.value || request.header || request.jsonPath);
  return html`<${Panel} title="Records">
    <${Progress} search=${search} />
    ${failure && html`<${FailureNote} failure=${failure} onRetry=${search.goOn} />`}
    ${isRunning && records.length === 0 && html`<${Loading} />`}
    ${unreadable.map((range) => html`<p class="advice">Partition ${range.partition}, offsets ${number(range.firstOffset)} to ${number(range.lastOffset)}, cannot be read: ${range.reason}.</p>`)}
    ${records.length > 0 && html`<${Records} topic=${topic} records=${records} query=${{ format: request.format }} />`}
    ${!isRunning && !failure && records.length === 0 && html`<${Empty} title=${isFiltered ? 'No record matches.' : 'There are no records here.'}>
      ${isFiltered && !isComplete && 'Search on, or change the filters.'}
      ${isFiltered && isComplete && 'Everything was searched. Change the filters, or the position.'}
      ${!isFiltered && 'Produce one, or choose another position or partition.'}<//>`}
    ${!isRunning && !isComplete && !failure && html`<div class="actions"><button type="button" onClick=${search.goOn}>
      ${isFiltered ? 'Search on' : 'Show more'}</button></div>`}
  <//>`;
}

function Progress({ search }) {
  const { records, searched, total, isRunning, stop } = search;
  return html`<div class="progress">
    <span role="status">${counted(records.length, 'record')}, searched ${number(searched)} of ${number(total)}</span>
    <${Meter} label="Searched" share=${total > 0 ? searched / total : 0} />
    ${isRunning && html`<button type="button" class="small" onClick=${stop}>Stop</button>`}
  </div>`;
}

/** New records as they come. */
function Live({ topic, filters }) {
  const [records, setRecords] = useState([]);
  const [skipped, setSkipped] = useState(0);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    let cursor = null; // where a new attempt goes on
    return watch(url`/topics/${topic}/messages/live`, () => ({ ...filters, cursor }), (data) => {
      cursor = data.cursor;
      setFailure(null);
      setSkipped((count) => count + data.skipped);
      setRecords((last) => [...data.records.toReversed(), ...last].slice(0, KEPT_LIVE));
    }, setFailure);
  }, []);
  return html`<${Panel} title="New records" note=${`The newest ${KEPT_LIVE} that came since this page was opened${skipped ? `; ${number(skipped)} more came too fast to be shown` : ''}.`}>
    ${failure && html`<${FailureNote} failure=${failure} />`}
    ${records.length > 0
      ? html`<${Records} topic=${topic} records=${records} query=${{ format: filters.format }} />`
      : html`<${Empty} title="Waiting for new records.">They appear here as they are written.<//>`}
  <//>`;
}
