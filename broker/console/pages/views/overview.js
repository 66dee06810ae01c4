// What the broker is, what it does, and what is wrong now.

import { Badge, Empty, Facts, Head, Loaded, Meter, Panel, Table } from '../components.js';
import { ago, byteRate, bytes, compact, duration, number, rate, time } from '../format.js';
import { Plot } from '../plots.js';
import { useRates } from '../rates.js';
import { to } from '../router.js';
import { html, useEffect, useMemo, useRef, useState } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

const PERIOD_MS = 2000;
const KEPT = 90;
const LINES = 5;

/** The view. */
export function Overview() {
  const source = useWatched('/overview');
  return html`<${Head} title="Overview" note=${source.data && `Node ${source.data.nodeId}, up ${duration(source.data.uptimeMs)}`} />
    <${Loaded} source=${source}>${(data) => html`<${Page} data=${data} />`}<//>`;
}

function Page({ data }) {
  const counters = useMemo(() => ({
    ...data.totals,
    ...Object.fromEntries(data.apis.map((api) => [`requests of ${api.name}`, api.requests])),
  }), [data]);
  const rates = useRates(counters, PERIOD_MS);
  const latencies = useLatencies(data);
  const history = useHistory({ rates, latencies });
  return html`
    <${Findings} findings=${data.findings} />
    <${Tiles} data=${data} rates=${rates} />
    <${Plots} history=${history} data=${data} />
    <${Apis} data=${data} rates=${rates} latencies=${latencies} />
    <${Panel} title="What clients are told"><${Table} label="Listeners" rows=${data.listeners} keyOf=${(row) => row.name} columns=${[
        { title: 'Listener', cell: (row) => row.name },
        { title: 'Protocol', cell: (row) => row.protocol },
        { title: 'Listens at', cell: (row) => html`<code>${row.address}</code>` },
        { title: 'Told to clients', cell: (row) => html`<code>${row.advertised}</code>` },
      ]} /><//>
    <div class="columns">
      <${Disks} directories=${data.directories} />
      <${About} data=${data} />
    </div>`;
}

function Findings({ findings }) {
  const bad = findings.filter((finding) => finding.health !== 'ok');
  return html`<${Panel} title="What is wrong now">
    ${bad.length === 0 && html`<p class="finding"><${Badge} kind="ok">ok<//> Nothing is wrong.</p>`}
    ${bad.map((finding) => html`<div class="finding">
      <${Badge} kind=${finding.health}>${finding.health}<//><strong>${finding.text}</strong>
      ${finding.advice && html`<span class="note">What to do: ${finding.advice}.</span>`}
      ${finding.view && html`<a href=${to([finding.view])}>See it</a>`}
    </div>`)}
  <//>`;
}

function Tiles({ data, rates }) {
  const { counts } = data;
  const tiles = [
    ['Messages in', rate(rates?.messagesIn)],
    ['Bytes in', byteRate(rates?.bytesIn)],
    ['Bytes out', byteRate(rates?.bytesOut)],
    ['Requests', rate(rates?.requests)],
    ['Event loop delay, 99 %', loopDelayOf(data.loopDelay)],
    ['All topics', linked('topics', counts.topics, { internal: true })],
    ['Partitions', compact(counts.partitions)],
    ['Groups', linked('groups', counts.groups)],
    ['Connections', linked('connections', counts.connections)],
    ['Open transactions', linked('transactions', counts.openTransactions, { openOnly: true })],
  ];
  return html`<dl class="tiles five">${tiles.map(([name, value]) => html`<div class="tile"><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function loopDelayOf({ measured, p99Ms }) {
  if (measured === 0) return '–';
  return p99Ms == null ? 'over the scale' : `≤ ${duration(p99Ms)}`;
}

function linked(view, count, query) {
  return html`<a href=${to([view], query)}>${compact(count)}</a>`;
}

function Plots({ history, data }) {
  const times = useMemo(() => history.map((moment) => moment.time), [history]);
  const line = (name, pick) => ({ name, values: history.map((moment) => pick(moment) ?? null) });
  const busiest = data.apis.slice(0, LINES).map((api) => api.name);
  return html`<div class="plots">
    <${Plot} title="Messages" times=${times} format=${rate} lines=${[line('in', ({ rates }) => rates?.messagesIn)]} />
    <${Plot} title="Bytes" times=${times} format=${byteRate} base=${1024} lines=${[
      line('in', ({ rates }) => rates?.bytesIn), line('out', ({ rates }) => rates?.bytesOut)]} />
    <${Plot} title="Requests of each API" times=${times} format=${rate}
      lines=${busiest.map((name) => line(name, ({ rates }) => rates?.[`requests of ${name}`]))} />
    <${Plot} title="Latency of each API, 99 %" times=${times} format=${duration}
      lines=${busiest.map((name) => line(name, ({ latencies }) => latencies?.[name]?.p99Ms))} />
  </div>`;
}

function Apis({ data, rates, latencies }) {
  const limit = (value) => (value == null ? '–' : `≤ ${duration(value)}`);
  return html`<${Panel} title="APIs" note="Latencies are the bounds below which they lie. A Fetch waits for records, as its client has asked.">
    ${data.apis.length === 0
      ? html`<${Empty} title="No client has asked for anything yet.">Connect one to the address below.<//>`
      : html`<${Table} label="APIs" rows=${data.apis} keyOf=${(api) => api.name} columns=${[
        { title: 'API', cell: (api) => api.name },
        { title: 'Requests', kind: 'number', cell: (api) => number(api.requests) },
        { title: 'Now', kind: 'number', cell: (api) => rate(rates?.[`requests of ${api.name}`]) },
        { title: '50 % now', kind: 'number', cell: (api) => limit(latencies?.[api.name]?.p50Ms) },
        { title: '99 % now', kind: 'number', cell: (api) => limit(latencies?.[api.name]?.p99Ms) },
        { title: '50 %', kind: 'number', cell: (api) => limit(api.p50Ms) },
        { title: '99 %', kind: 'number', cell: (api) => limit(api.p99Ms) },
        { title: 'Without a response', kind: 'number', cell: (api) => number(api.errors) },
      ]} />`}
  <//>`;
}

function Disks({ directories }) {
  return html`<${Panel} title="Disks">${directories.map((directory) => html`<div class="stack">
    <h3><code>${directory.path}</code> ${!directory.isOnline && html`<${Badge} kind="problem">offline<//>`}</h3>
    ${directory.reason && html`<p>${directory.reason}</p>`}
    ${directory.totalBytes != null && html`<${Meter} label="Used" share=${1 - directory.freeBytes / directory.totalBytes}
      kind=${directory.freeBytes < directory.minFreeBytes ? 'problem' : ''} />`}
    <${Facts} items=${[
      ['Logs', bytes(directory.sizeBytes)],
      ['Free', directory.freeBytes == null ? null : `${bytes(directory.freeBytes)} of ${bytes(directory.totalBytes)}`],
      ['Producers are refused below', directory.minFreeBytes > 0 ? `${bytes(directory.minFreeBytes)} free` : null],
    ]} />
  </div>`)}<//>`;
}

function About({ data }) {
  return html`<${Panel} title="This broker"><${Facts} items=${[
    ['Version', data.version],
    ['Cluster', html`<code>${data.clusterId}</code>`],
    ['Started', `${time(data.startedMs).slice(0, 19)} (${ago(data.startedMs)})`],
    ['Memory', bytes(data.memoryBytes)],
    ['Open files', number(data.openFiles)],
    ['Largest loop delay', data.loopDelay.maxMs == null ? null : `≤ ${duration(data.loopDelay.maxMs)}`],
    ...data.features.map((feature) => [feature.name, String(feature.level)]),
  ]} /><//>`;
}

/** The latencies of each API since the response before this one, as bounds of the buckets. */
function useLatencies(data) {
  const before = useRef(null);
  const [latencies, setLatencies] = useState(null);
  useEffect(() => {
    const current = Object.fromEntries(data.apis.map((api) => [api.name, api.buckets]));
    if (before.current) {
      setLatencies(Object.fromEntries(data.apis.map(({ name, buckets }) => {
        const last = before.current[name];
        const counts = buckets.map(([, count], index) => count - (last?.[index]?.[1] ?? 0));
        const bounds = buckets.map(([upToMs]) => upToMs);
        return [name, { p50Ms: quantile(bounds, counts, 0.5), p99Ms: quantile(bounds, counts, 0.99) }];
      })));
    }
    before.current = current;
  }, [data]);
  return latencies;
}

function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return null;
  let seen = 0;
  const index = counts.findIndex((count) => {
    seen += count;
    return seen >= total * share;
  });
  return bounds[index] < 0 ? null : bounds[index];
}

/** The last moments, for plots. */
function useHistory({ rates, latencies }) {
  const [history, setHistory] = useState([]);
  useEffect(() => {
    if (rates) setHistory((last) => [...last.slice(-KEPT + 1), { time: Date.now() / 1000, rates, latencies }]);
  }, [rates]);
  return history;
}
