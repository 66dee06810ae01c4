// The clients that are connected.

import { Badge, Empty, Head, Loaded, Pager, Panel, Search, Table } from '../components.js';
import { ago, byteRate, counted, duration } from '../format.js';
import { useRates } from '../rates.js';
import { useQuery } from '../router.js';
import { html, useMemo } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

const PERIOD_MS = 2000;

/** The view. */
export function Connections() {
  const [query, change] = useQuery();
  const { search, from = 0 } = query;
  const source = useWatched('/connections', { search, from });
  return html`
    <${Head} title="Connections" note=${source.data && counted(source.data.total, 'connection')} />
    <div class="filters"><${Search} label="Search in clients, addresses and principals" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} /></div>
    <${Panel} title="Connections">
      <${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} from=${Number(from)} change=${change} isFiltered=${Boolean(search)} />`}<//>
    <//>`;
}

function Rows({ data, from, change, isFiltered }) {
  const counters = useMemo(() => Object.fromEntries(data.connections.flatMap((row) => [[`in ${row.id}`, row.bytesIn ?? 0], [`out ${row.id}`, row.bytesOut ?? 0]])), [data]);
  const rates = useRates(counters, PERIOD_MS) ?? {};
  if (data.total === 0) {
    return isFiltered ? html`<${Empty} title="No connection is like that.">Search for less.<//>`
      : html`<${Empty} title="No client is connected.">The overview says what to connect to.<//>`;
  }
  return html`
    <${Table} label="Connections" rows=${data.connections} keyOf=${(row) => row.id} columns=${[
      { title: 'Client', kind: 'fixed', cell: (row) => html`${row.clientId || 'without a client id'}<br /><span class="muted">${row.address}</span>` },
      { title: 'Principal', kind: 'text', cell: (row) => html`${row.principal}<br /><span class="muted">${row.listener}</span>` },
      { title: 'Software', kind: 'text', cell: (row) => html`${row.software || 'unknown'}<br /><span class="muted">${row.softwareVersion}</span>` },
      { title: 'Connected', cell: (row) => html`${ago(row.connectedMs)}<br /><span class="muted">idle for ${duration(row.idleMs)}</span>` },
      { title: 'In and out', kind: 'number', cell: (row) => html`${byteRate(rates[`in ${row.id}`])}<br />${byteRate(rates[`out ${row.id}`])}` },
      { title: 'Throttled', kind: 'number', cell: (row) => (row.throttledMs ? html`<${Badge} kind="warning">${duration(row.throttledMs)}<//>` : 'no') },
      { title: 'API versions', kind: 'fixed', cell: (row) => html`<${Versions} versions=${row.apiVersions} />` },
    ]} />
    <${Pager} from=${from} total=${data.total} onMove=${(target) => change({ from: target || null })} />`;
}

function Versions({ versions }) {
  const names = Object.entries(versions ?? {});
  if (names.length === 0) return '–';
  return html`<details><summary>${counted(names.length, 'API')}</summary>${names.map(([name, version]) => html`<div>${name} ${version}</div>`)}</details>`;
}
