// The last warnings and errors of the broker's log.

import { Badge, Choice, Empty, Head, Loaded, Panel, Search, Table } from '../components.js';
import { time } from '../format.js';
import { useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

/** The view. */
export function Log() {
  const [query, change] = useQuery();
  const source = useWatched('/log');
  return html`
    <${Head} title="Log" note="The last 150 warnings and errors since the broker's start, and 50 that clients have caused, newest first." />
    <div class="filters">
      <${Search} label="Search in texts" value=${query.search} onSearch=${(text) => change({ search: text }, true)} />
      <${Choice} label="Level" value=${query.level} options=${[['', 'warnings and errors'], ['ERROR', 'errors only']]} onChange=${(level) => change({ level })} />
    </div>
    <${Panel} title="Entries"><${Loaded} source=${source}>${(data) => html`<${Entries} entries=${shown(data.entries, query)} />`}<//><//>`;
}

function shown(entries, { search = '', level }) {
  const part = search.toLowerCase();
  return entries.filter((entry) => (!level || isBad(entry)) && `${entry.logger} ${entry.text}`.toLowerCase().includes(part));
}

function isBad(entry) {
  return entry.level === 'ERROR' || entry.level === 'CRITICAL';
}

function Entries({ entries }) {
  if (entries.length === 0) return html`<${Empty} title="No entries.">No warning and no error was logged.<//>`;
  return html`<${Table} label="Log entries" rows=${entries.map((entry, index) => ({ index, ...entry }))} keyOf=${(entry) => entry.index} columns=${[
    { title: 'Time', kind: 'fixed', cell: (entry) => time(entry.timestampMs) },
    { title: 'Level', cell: (entry) => html`<${Badge} kind=${isBad(entry) ? 'problem' : 'warning'}>${entry.level.toLowerCase()}<//>` },
    { title: 'Part', cell: (entry) => html`<code>${entry.logger}</code>` },
    { title: 'Text', kind: 'wide', cell: (entry) => html`<pre>${entry.text}</pre>` },
  ]} />`;
}
