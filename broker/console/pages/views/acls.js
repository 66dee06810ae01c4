// The rules of the authorizer.

import { send, useLoaded } from '../api.js';
import { Badge, Empty, Field, Loaded, Pager, Panel, Search, Table, toast, useOpen } from '../components.js';
import { ChangeForm, Confirm, Dialog } from '../dialogs.js';
import { plain } from '../format.js';
import { useQuery } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';

const OPERATIONS = ['READ', 'WRITE', 'CREATE', 'DELETE', 'ALTER', 'DESCRIBE', 'CLUSTER_ACTION', 'DESCRIBE_CONFIGS', 'ALTER_CONFIGS', 'IDEMPOTENT_WRITE', 'CREATE_TOKENS', 'DESCRIBE_TOKENS', 'TWO_PHASE_COMMIT', 'ALL'];
const RESOURCES = ['TOPIC', 'GROUP', 'CLUSTER', 'TRANSACTIONAL_ID', 'DELEGATION_TOKEN', 'USER'];

/** The tab. */
export function Acls() {
  const [query, change] = useQuery();
  const [isAdding, open, close] = useOpen();
  const { search, from = 0 } = query;
  const source = useLoaded('/acls', { search, from });
  return html`
    <div class="filters">
      <${Search} label="Search in principals and resources" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} />
      ${source.data?.mayChange && html`<button type="button" class="main" onClick=${open}>Add a rule</button>`}
    </div>
    <${Panel} title="ACLs"><${Loaded} source=${source}>${(data) => html`
      <${Rules} data=${data} onChange=${source.reload} isFiltered=${Boolean(search)} />
      <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`}<//>
    <//>
    ${isAdding && html`<${Add} onClose=${close} onChange=${source.reload} />`}`;
}

function Rules({ data, onChange, isFiltered }) {
  const [deleted, setDeleted] = useState(null);
  if (!data.authorizer) return html`<${Empty} title="There is no authorizer: everybody may do everything.">Set authorizer.class.name to have rules.<//>`;
  if (data.acls.length === 0) {
    return isFiltered ? html`<${Empty} title="No rule is like that.">Search for less.<//>`
      : html`<${Empty} title="There are no rules.">Only super users may do anything. Add a rule.<//>`;
  }
  return html`
    <${Table} label="ACLs" rows=${data.acls} keyOf=${(acl) => JSON.stringify(acl)} columns=${[
      { title: 'Principal', cell: (acl) => acl.principal },
      { title: 'May', cell: (acl) => html`<${Badge} kind=${acl.permission === 'DENY' ? 'problem' : 'ok'}>${plain(acl.permission)}<//> ${plain(acl.operation)}` },
      { title: 'On', cell: (acl) => `${plain(acl.resourceType)} ${acl.resourceName}` },
      { title: 'Name', cell: (acl) => plain(acl.patternType) },
      { title: 'From host', cell: (acl) => acl.host },
      ...(data.mayChange ? [{ title: '', cell: (acl) => html`<button type="button" class="danger small"
        aria-label=${`Delete ${textOf(acl)}`} onClick=${() => setDeleted(acl)}>Delete</button>` }] : []),
    ]} />
    ${deleted && html`<${Confirm} title="Delete this rule?" action="Delete" done="The rule was deleted." onClose=${() => setDeleted(null)}
      onConfirm=${async () => {
        await send('DELETE', '/acls', { acl: deleted });
        onChange();
      }}><p>${textOf(deleted)}</p><//>`}`;
}

function textOf(acl) {
  return `${acl.principal}: ${plain(acl.permission)} ${plain(acl.operation)} on ${plain(acl.resourceType)} ${acl.resourceName} (${plain(acl.patternType)}) from ${acl.host}`;
}

function Add({ onClose, onChange }) {
  const add = async (fields) => {
    await send('POST', '/acls', { acl: fields });
    toast('The rule was added.');
    onClose();
    onChange();
  };
  const choice = (label, name, values) => html`<${Field} label=${label}><select name=${name}>${values.map((value) => html`<option value=${value}>${plain(value)}</option>`)}</select><//>`;
  return html`<${Dialog} title="Add a rule" onClose=${onClose}>
    <${ChangeForm} action="Add" onClose=${onClose} onSend=${add}>
      <div class="pair">
        <${Field} label="Principal"><input name="principal" required defaultValue="User:" spellcheck=${false} /><//>
        <${Field} label="From host"><input name="host" required defaultValue="*" spellcheck=${false} /><//>
      </div>
      <div class="pair">${choice('Permission', 'permission', ['ALLOW', 'DENY'])}${choice('Operation', 'operation', OPERATIONS)}</div>
      <div class="pair">${choice('Resource', 'resourceType', RESOURCES)}
        <${Field} label="Its name" hint="* is all; kafka-cluster is the cluster."><input name="resourceName" required spellcheck=${false} /><//></div>
      ${choice('The name is', 'patternType', ['LITERAL', 'PREFIXED'])}
    <//>
  <//>`;
}
