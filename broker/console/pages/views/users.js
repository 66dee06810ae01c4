// Users that log in by SCRAM.

import { send, useLoaded } from '../api.js';
import { Empty, Field, Loaded, Pager, Panel, Search, Table, toast, useOpen } from '../components.js';
import { ChangeForm, Confirm, Dialog } from '../dialogs.js';
import { number } from '../format.js';
import { useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';

/** The tab. */
export function Users() {
  const [query, change] = useQuery();
  const { search, from = 0 } = query;
  const source = useLoaded('/users', { search, from });
  const mayChange = source.data?.mayChange;
  const [isAdding, open, close] = useOpen();
  return html`
    <div class="filters"><${Search} label="Search in names" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} /></div>
    <${Panel} title="Users" note="Those with a SCRAM password. Others may log in by certificates, tokens or files."
      actions=${mayChange && html`<button type="button" class="main" onClick=${open}>Set a password</button>`}>
      <${Loaded} source=${source}>${(data) => html`<${Rows} users=${data.users} mayChange=${mayChange} onChange=${source.reload} isFiltered=${Boolean(search)} />
        <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`}<//>
    <//>
    ${isAdding && html`<${Add} onClose=${close} onChange=${source.reload} />`}`;
}

function Rows({ users, mayChange, onChange, isFiltered }) {
  const [deleted, setDeleted] = useState(null);
  const rows = users.flatMap((user) => user.mechanisms.map((mechanism) => ({ name: user.name, ...mechanism })));
  if (rows.length === 0 && isFiltered) return html`<${Empty} title="No user is like that.">Search for less.<//>`;
  if (rows.length === 0) return html`<${Empty} title="There are no users with a SCRAM password.">Set one, if clients log in by SCRAM.<//>`;
  return html`
    <${Table} label="Users" rows=${rows} keyOf=${(row) => `${row.name}/${row.mechanism}`} columns=${[
      { title: 'User', cell: (row) => row.name },
      { title: 'Mechanism', cell: (row) => row.mechanism },
      { title: 'Iterations', kind: 'number', cell: (row) => number(row.iterations) },
      ...(mayChange ? [{ title: '', cell: (row) => html`<button type="button" class="danger small"
        aria-label=${`Delete the ${row.mechanism} password of ${row.name}`} onClick=${() => setDeleted(row)}>Delete</button>` }] : []),
    ]} />
    ${deleted && html`<${Confirm} title=${`Delete the ${deleted.mechanism} password?`} action="Delete" name=${deleted.name} done=${`${deleted.name} cannot log in by ${deleted.mechanism} any more.`}
      onClose=${() => setDeleted(null)} onConfirm=${async () => {
        await send('DELETE', '/users', { name: deleted.name, mechanism: deleted.mechanism });
        onChange();
      }}><p>Clients that are connected stay so until they log in again.</p><//>`}`;
}

function Add({ onClose, onChange }) {
  const add = async ({ name, password, mechanism, iterations }) => {
    await send('POST', '/users', { name, password, mechanism, iterations: iterations ? Number(iterations) : null });
    toast(`${name} can log in by ${mechanism}.`);
    onClose();
    onChange();
  };
  return html`<${Dialog} title="Set a password" onClose=${onClose}>
    <${ChangeForm} action="Set" onClose=${onClose} onSend=${add}>
      <${Field} label="User"><input name="name" required autocomplete="off" spellcheck=${false} /><//>
      <${Field} label="Password"><input name="password" type="password" required autocomplete="new-password" /><//>
      <${Field} label="Mechanism"><select name="mechanism"><option value="SCRAM-SHA-512">SCRAM-SHA-512</option><option value="SCRAM-SHA-256">SCRAM-SHA-256</option></select><//>
      <${Field} label="Iterations" hint="Empty: 4096."><input name="iterations" type="number" min="4096" max="16384" /><//>
    <//>
  <//>`;
}
