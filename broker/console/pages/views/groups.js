// All groups, a page at a time.

import { Badge, Choice, Empty, Head, Loaded, Pager, Panel, Search, Table } from '../components.js';
import { compact, counted, number, spaced } from '../format.js';
import { to, useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';

const TYPES = [['', 'all types'], ['classic', 'classic'], ['consumer', 'consumer'], ['share', 'share'], ['streams', 'streams']];
const STATES = [['', 'all states'], ...['Stable', 'Empty', 'PreparingRebalance', 'CompletingRebalance', 'Assigning', 'Reconciling', 'NotReady', 'Dead'].map((name) => [name, name])];

/** The view. */
export function Groups() {
  const [query, change] = useQuery();
  const { search, type, state, sort = 'name', descending, from = 0 } = query;
  const source = useWatched('/groups', { search, type, state, sort, descending, from });
  return html`
    <${Head} title="Groups" note=${source.data && counted(source.data.total, 'group')} />
    <div class="filters">
      <${Search} label="Search in names" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} />
      <${Choice} label="Type" value=${type} options=${TYPES} onChange=${(value) => change({ type: value, from: null })} />
      <${Choice} label="State" value=${state} options=${STATES} onChange=${(value) => change({ state: value, from: null })} />
    </div>
    <${Panel} title="Groups">
      <${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} query=${query} change=${change} />`}<//>
    <//>`;
}

function Rows({ data, query, change }) {
  const { search, type, state, sort = 'name', descending, from = 0 } = query;
  if (data.total === 0) {
    const isFiltered = search || type || state;
    if (data.isLoading) return html`<${Empty} title="The groups are being loaded.">The broker has just begun.<//>`;
    return isFiltered ? html`<${Empty} title="No group is like that.">Search for less.<//>`
      : html`<${Empty} title="There are no groups yet.">A group is there when its first consumer joins or commits an offset.<//>`;
  }
  const isDescending = descending === undefined ? sort === 'lag' : descending === 'true';
  const onSort = (by) => change({ sort: by, descending: by === sort ? !isDescending : null, from: null });
  return html`
    ${data.isLoading && html`<p class="advice">The broker has just begun: there will be more groups in a moment.</p>`}
    ${sort === 'lag' && !data.areLagsComplete && html`<p class="advice">There are too many groups to sort all of them by their lag. Search for a part of the names.</p>`}
    <${Table} label="Groups" rows=${data.groups} keyOf=${(group) => group.groupId} sorted=${{ by: sort, isDescending }} onSort=${onSort}
      columns=${[
        { title: 'Group', kind: 'text', sort: 'name', cell: (group) => html`<a href=${to(['groups', group.groupId])}>${group.groupId}</a>` },
        { title: 'Type', cell: (group) => group.type },
        { title: 'State', cell: (group) => html`<${GroupState} state=${group.state} />
          ${group.heldBack > 0 && html` <${Badge} kind="warning">${counted(group.heldBack, 'partition')} held back<//>`}` },
        { title: 'Members', kind: 'number', cell: (group) => number(group.members) },
        { title: 'Partitions', kind: 'number', cell: (group) => number(group.partitions) },
        { title: 'Lag', sort: 'lag', kind: 'number', cell: (group) => compact(group.lag) },
      ]} />
    <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`;
}

/** @param {{state: string}} props */
export function GroupState({ state }) {
  const kind = { Stable: 'ok', Empty: 'plain', Dead: 'plain' }[state] ?? 'warning';
  return html`<${Badge} kind=${kind}>${spaced(state)}<//>`;
}
