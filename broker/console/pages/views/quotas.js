// Limits of users, clients and addresses.

import { send, useLoaded } from '../api.js';
import { Empty, Field, Loaded, Pager, Panel, Search, Table, toast, useOpen } from '../components.js';
import { ChangeForm, Confirm, Dialog } from '../dialogs.js';
import { useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';

const KEYS = ['producer_byte_rate', 'consumer_byte_rate', 'request_percentage', 'controller_mutation_rate', 'connection_creation_rate'];

/** The tab. */
export function Quotas() {
  const [query, change] = useQuery();
  const { search, from = 0 } = query;
  const source = useLoaded('/quotas', { search, from });
  const mayChange = source.data?.mayChange;
  const [isAdding, open, close] = useOpen();
  return html`
    <div class="filters"><${Search} label="Search in names" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} /></div>
    <${Panel} title="Quotas" actions=${mayChange && html`<button type="button" class="main" onClick=${open}>Set a quota</button>`}>
      <${Loaded} source=${source}>${(data) => html`<${Rows} quotas=${data.quotas} mayChange=${mayChange} onChange=${source.reload} isFiltered=${Boolean(search)} />
        <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`}<//>
    <//>
    ${isAdding && html`<${Add} onClose=${close} onChange=${source.reload} />`}`;
}

function textOf(entity) {
  return entity.map(({ type, name }) => `${type} ${name ?? '(default)'}`).join(', ');
}

function Rows({ quotas, mayChange, onChange, isFiltered }) {
  const [removed, setRemoved] = useState(null);
  const rows = quotas.flatMap(({ entity, values }) => Object.entries(values).map(([key, value]) => ({ entity, key, value })));
  if (rows.length === 0 && isFiltered) return html`<${Empty} title="No quota is like that.">Search for less.<//>`;
  if (rows.length === 0) return html`<${Empty} title="There are no quotas.">Clients may use as much as they can.<//>`;
  return html`
    <${Table} label="Quotas" rows=${rows} keyOf=${(row) => `${textOf(row.entity)}/${row.key}`} columns=${[
      { title: 'Who', cell: (row) => textOf(row.entity) },
      { title: 'Limit', cell: (row) => html`<code>${row.key}</code>` },
      { title: 'Value', kind: 'number', cell: (row) => row.value.toLocaleString('en') },
      ...(mayChange ? [{ title: '', cell: (row) => html`<button type="button" class="danger small"
        aria-label=${`Remove ${row.key} of ${textOf(row.entity)}`} onClick=${() => setRemoved(row)}>Remove</button>` }] : []),
    ]} />
    ${removed && html`<${Confirm} title="Remove this quota?" action="Remove" done="The quota was removed." onClose=${() => setRemoved(null)}
      onConfirm=${async () => {
        await send('PUT', '/quotas', { entity: removed.entity, set: {}, remove: [removed.key] });
        onChange();
      }}><p><code>${removed.key}</code> of ${textOf(removed.entity)}</p><//>`}`;
}

function Add({ onClose, onChange }) {
  const add = async (fields) => {
    const entity = ['user', 'client-id', 'ip'].filter((type) => fields[type]).map((type) => ({ type, name: fields[type] === '*' ? null : fields[type] }));
    await send('PUT', '/quotas', { entity, set: { [fields.key]: Number(fields.value) }, remove: [] });
    toast(`${fields.key} is set.`);
    onClose();
    onChange();
  };
  return html`<${Dialog} title="Set a quota" onClose=${onClose}>
    <${ChangeForm} action="Set" onClose=${onClose} onSend=${add}>
      <p class="note">Name a user, a client id or both, or an address. * is the default: all that have no quota of their own.</p>
      <div class="pair">
        <${Field} label="User"><input name="user" spellcheck=${false} autocomplete="off" /><//>
        <${Field} label="Client id"><input name="client-id" spellcheck=${false} autocomplete="off" /><//>
        <${Field} label="Address"><input name="ip" spellcheck=${false} autocomplete="off" /><//>
      </div>
      <div class="pair">
        <${Field} label="Limit"><select name="key">${KEYS.map((key) => html`<option value=${key}>${key}</option>`)}</select><//>
        <${Field} label="Value"><input name="value" type="number" step="any" min="0" required /><//>
      </div>
    <//>
  <//>`;
}
