// All topics, a page at a time, and the form that makes one.

import { send, useMayChange } from '../api.js';
import { Badge, Check, Empty, Facts, Field, Head, Loaded, Pager, Panel, Search, Table, toast, useOpen } from '../components.js';
import { ChangeForm, Dialog } from '../dialogs.js';
import { byteRate, bytes, compact, counted, number, rate } from '../format.js';
import { useRates } from '../rates.js';
import { go, to, useQuery } from '../router.js';
import { html, useMemo, useState } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

const PERIOD_MS = 2000;

/** The view. */
export function Topics() {
  const [query, change] = useQuery();
  const mayChange = useMayChange();
  const [isCreating, open, close] = useOpen();
  const { search, sort = 'name', descending, internal, from = 0 } = query;
  const source = useWatched('/topics', { search, sort, descending, internal, from });
  return html`
    <${Head} title="Topics" note=${source.data && counted(source.data.total, 'topic')}>
      ${mayChange && html`<button type="button" class="main" onClick=${open}>Create a topic</button>`}
    <//>
    <div class="filters">
      <${Search} label="Search in names" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} />
      <${Check} label="Internal topics too" isOn=${internal === 'true'} onChange=${(isOn) => change({ internal: isOn || null, from: null })} />
    </div>
    <${Panel} title=${search ? `Topics with “${search}” in their names` : 'All topics'}>
      <${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} query=${query} change=${change} />`}<//>
    <//>
    ${isCreating && html`<${Create} onClose=${close} />`}`;
}

function Rows({ data, query, change }) {
  const { search, sort = 'name', descending, from = 0 } = query;
  const counters = useMemo(() => Object.fromEntries(data.topics.flatMap((topic) => [
    [`messages ${topic.name}`, topic.messagesIn], [`in ${topic.name}`, topic.bytesIn], [`out ${topic.name}`, topic.bytesOut],
  ])), [data]);
  const rates = useRates(counters, PERIOD_MS) ?? {};
  if (data.total === 0) {
    return search
      ? html`<${Empty} title="No topic has that in its name.">Search for less, or look at internal topics too.<//>`
      : html`<${Empty} title="There are no topics yet.">Create one, or let a producer do it.<//>`;
  }
  const onSort = (by) => {
    const isDescending = by === sort ? descending !== 'true' : by !== 'name';
    change({ sort: by, descending: isDescending || null, from: null });
  };
  return html`
    <${Table} label="Topics" rows=${data.topics} keyOf=${(topic) => topic.name} onSort=${onSort}
      sorted=${{ by: sort, isDescending: descending === 'true' }}
      columns=${[
        { title: 'Topic', kind: 'text', sort: 'name', cell: (topic) => html`<a href=${to(['topics', topic.name])}>${topic.name}</a>
          ${topic.isInternal && html` <${Badge}>internal<//>`}
          ${topic.offlinePartitions > 0 && html` <${Badge} kind="problem">${counted(topic.offlinePartitions, 'partition')} offline<//>`}` },
        { title: 'Partitions', sort: 'partitions', kind: 'number', cell: (topic) => number(topic.partitions) },
        { title: 'Offsets', sort: 'records', kind: 'number', cell: (topic) => compact(topic.records) },
        { title: 'Size', sort: 'size', kind: 'number', cell: (topic) => bytes(topic.sizeBytes) },
        { title: 'Messages in', sort: 'messagesIn', kind: 'number', cell: (topic) => rate(rates[`messages ${topic.name}`]) },
        { title: 'Bytes in', kind: 'number', cell: (topic) => byteRate(rates[`in ${topic.name}`]) },
        { title: 'Bytes out', kind: 'number', cell: (topic) => byteRate(rates[`out ${topic.name}`]) },
        { title: 'Cleanup', cell: (topic) => topic.cleanupPolicy ?? '–' },
      ]} />
    <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`;
}

/** Makes a topic in two steps: the broker checks what is asked for, and then does it. */
function Create({ onClose }) {
  const [configs, setConfigs] = useState([]);
  const [checked, setChecked] = useState(null);
  const edit = (index, changes) => setConfigs(configs.map((row, place) => (place === index ? { ...row, ...changes } : row)));
  const check = async (fields) => {
    const asked = {
      name: fields.name,
      partitions: fields.partitions ? Number(fields.partitions) : null,
      config: Object.fromEntries(configs.filter((row) => row.name).map((row) => [row.name, row.value])),
    };
    const answer = await send('POST', '/topics', { ...asked, validateOnly: true });
    setChecked({ asked, answer });
  };
  const create = async () => {
    await send('POST', '/topics', { ...checked.asked, validateOnly: false });
    toast(`Topic ${checked.asked.name} was created.`);
    onClose();
    go(['topics', checked.asked.name]);
  };
  if (checked) {
    const { asked, answer } = checked;
    return html`<${Dialog} title="Create this topic?" onClose=${onClose}>
      <${ChangeForm} key="create" action="Create" onClose=${onClose} onSend=${create}
        buttons=${html`<button type="button" onClick=${() => setChecked(null)}>Back</button>`}>
        <p>The broker accepts this topic. It has not made it yet.</p>
        <${Facts} items=${[['Name', answer.name], ['Partitions', number(answer.partitions)],
          ...answer.config.filter((entry) => entry.name in asked.config || entry.name === 'cleanup.policy' || entry.name === 'retention.ms')
            .map((entry) => [entry.name, entry.value])]} />
      <//>
    <//>`;
  }
  return html`<${Dialog} title="Create a topic" onClose=${onClose}>
    <${ChangeForm} key="check" action="Check" onClose=${onClose} onSend=${check}>
      <${Field} label="Name" hint="Letters, digits, dot, underscore and hyphen; at most 249.">
        <input name="name" required autocomplete="off" spellcheck=${false} /><//>
      <${Field} label="Partitions" hint="Empty: as num.partitions says."><input name="partitions" type="number" min="1" /><//>
      <fieldset><legend>Configuration that differs from the broker's</legend>
        ${configs.map((row, index) => html`<div class="row">
          <input aria-label="Key" placeholder="retention.ms" value=${row.name} onInput=${(event) => edit(index, { name: event.currentTarget.value })} />
          <input aria-label="Value" placeholder="3600000" value=${row.value} onInput=${(event) => edit(index, { value: event.currentTarget.value })} />
          <button type="button" aria-label="Remove" onClick=${() => setConfigs(configs.filter((_, place) => place !== index))}>×</button>
        </div>`)}
        <div><button type="button" class="small" onClick=${() => setConfigs([...configs, { name: '', value: '' }])}>Add a key</button></div>
      </fieldset>
    <//>
  <//>`;
}
