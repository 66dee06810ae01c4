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
  const { search, type, state, sort = 'name', from = 0 } = query;
  const source = useWatched('/groups', { search, type, state, sort, from });
  return html`
    <${Head} title="Groups" note=${source.data && counted(source.data.total, 'group')} />
    <div class="filters">
      <${Search} label="Search in names" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} />
      <${Choice} label="Type" value=${type} options=${TYPES} onChange=${(value) => change({ type: value, from: null })} />
      <${Choice} label="State" value=${state} options=${STATES} onChange=${(value) => change({ state: value, from: null })} />
    </div>
    <${Panel} title="Groups">
      <${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} sort=${sort} from=${Number(from)} change=${change} isFiltered=${Boolean(search || type || state)} />`}<//>
    <//>`;
}

function Rows({ data, sort, from, change, isFiltered }) {
  if (data.total === 0) {
    return isFiltered ? html`<${Empty} title="No group is like that.">Search for less.<//>`
      : html`<${Empty} title="There are no groups yet.">A group is there when its first consumer joins or commits an offset.<//>`;
  }
  return html`
    <${Table} label="Groups" rows=${data.groups} keyOf=${(group) => group.groupId}
      sorted=${{ by: sort, isDescending: sort === 'lag' }} onSort=${(by) => change({ sort: by === 'name' ? null : by, from: null })}
      columns=${[
        { title: 'Group', sort: 'name', cell: (group) => html`<a href=${to(['groups', group.groupId])}>${group.groupId}</a>` },
        { title: 'Type', cell: (group) => group.type },
        { title: 'State', cell: (group) => html`<${GroupState} state=${group.state} />` },
        { title: 'Members', kind: 'number', cell: (group) => number(group.members) },
        { title: 'Partitions', kind: 'number', cell: (group) => number(group.partitions) },
        { title: 'Lag', sort: 'lag', kind: 'number', cell: (group) => compact(group.lag) },
      ]} />
    <${Pager} from=${from} total=${data.total} onMove=${(target) => change({ from: target || null })} />`;
}

/** @param {{state: string}} props */
export function GroupState({ state }) {
  const kind = { Stable: 'ok', Empty: 'plain', Dead: 'plain' }[state] ?? 'warning';
  return html`<${Badge} kind=${kind}>${spaced(state)}<//>`;
}
