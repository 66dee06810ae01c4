// The configuration of a topic: where each value comes from, edited in place.

import { send, url, useLoaded } from '../api.js';
import { Badge, Check, Empty, FailureNote, Loaded, Panel, Search, Table, toast } from '../components.js';
import { plain } from '../format.js';
import { useQuery } from '../router.js';
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';

const OWN = 'DYNAMIC_TOPIC_CONFIG';

/** @param {{topic: object}} props the response of /topics/{topic} */
export function TopicConfig({ topic }) {
  const [query, change] = useQuery();
  const source = useLoaded(url`/topics/${topic.name}/config`);
  return html`
    <div class="filters">
      <${Search} label="Search in keys" value=${query.search} onSearch=${(text) => change({ search: text }, true)} />
      <${Check} label="Only what this topic has set itself" isOn=${query.own === 'true'} onChange=${(isOn) => change({ own: isOn || null })} />
    </div>
    <${Panel} title="Configuration">
      <${Loaded} source=${source}>${(data) => html`<${Configs} topic=${topic} configs=${shown(data.configs, query)} onChange=${source.reload} />`}<//>
    <//>`;
}

function shown(configs, { search = '', own }) {
  return configs.filter((config) => config.name.includes(search.toLowerCase()) && (own !== 'true' || config.source === OWN));
}

function Configs({ topic, configs, onChange }) {
  const [edited, setEdited] = useState(null);
  if (configs.length === 0) return html`<${Empty} title="No key is shown.">Search for less, or show what comes from the broker too.<//>`;
  return html`<${Table} label="Configuration" rows=${configs} keyOf=${(config) => config.name} columns=${[
    { title: 'Key', kind: 'wide', cell: Name },
    { title: 'Value', kind: 'wide', cell: (config) => (edited === config.name
      ? html`<${Edit} topic=${topic.name} config=${config} onClose=${() => setEdited(null)} onChange=${onChange} />`
      : html`${valueOf(config)}
        ${topic.mayAlterConfigs && !config.isReadOnly && html` <button type="button" class="small" aria-label=${`Edit ${config.name}`} onClick=${() => setEdited(config.name)}>Edit</button>`}`) },
    { title: 'Comes from', cell: (config) => html`<${Badge} kind=${config.source === OWN ? 'ok' : 'plain'}>${plain(config.source)}<//>` },
  ]} />`;
}

function valueOf({ isSensitive, value }) {
  if (isSensitive) return html`<span class="muted">hidden</span>`;
  return value ? html`<code>${value}</code>` : html`<span class="muted">empty</span>`;
}

function Name(config) {
  return html`<code>${config.name}</code>
    ${(config.documentation || config.synonyms.length > 0) && html`<details><summary>What it is, and all its sources</summary>
      <div class="documentation">${config.documentation}</div>
      ${config.synonyms.map((synonym) => html`<div class="documentation"><code>${synonym.name} = ${synonym.value ?? 'hidden'}</code>, ${plain(synonym.source)}</div>`)}
    </details>`}`;
}

function Edit({ topic, config, onClose, onChange }) {
  const [failure, setFailure] = useState(null);
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  const put = async (body, text) => {
    try {
      await send('PUT', url`/topics/${topic}/config`, { set: {}, remove: [], ...body, validateOnly: false });
      toast(text);
      onClose();
      onChange();
    } catch (error) {
      setFailure(error);
    }
  };
  const save = (event) => {
    event.preventDefault();
    const { value } = Object.fromEntries(new FormData(event.currentTarget));
    put({ set: { [config.name]: value } }, `${config.name} is ${value} now.`);
  };
  const escape = (event) => {
    if (event.key === 'Escape') onClose();
  };
  return html`<form class="stack" onSubmit=${save} onKeyDown=${escape}>
    <input name="value" aria-label=${config.name} defaultValue=${config.value ?? ''} spellcheck=${false} ref=${input} />
    ${failure && html`<${FailureNote} failure=${failure} />`}
    <div class="actions">
      <button type="submit" class="main small">Save</button>
      ${config.source === OWN && html`<button type="button" class="small"
        onClick=${() => put({ remove: [config.name] }, `${config.name} is the broker's again.`)}>Use the broker's</button>`}
      <button type="button" class="small" onClick=${onClose}>Cancel</button>
    </div>
  </form>`;
}
