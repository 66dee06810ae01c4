// One group: where it is, who is in it, and what it waits for.

import { send, url, useMayChange } from '../api.js';
import { Badge, Empty, Facts, Head, Loaded, Pager, pageOf, Panel, Table, Tabs, useOpen } from '../components.js';
import { Confirm } from '../dialogs.js';
import { ago, compact, counted, number } from '../format.js';
import { go, place, to, useQuery } from '../router.js';
import { useStore } from '../store.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';
import { GroupState } from './groups.js';
import { ResetOffsets } from './reset_offsets.js';

/** @param {{name: string}} props */
export function Group({ name }) {
  const { path } = useStore(place);
  const source = useWatched(url`/groups/${name}`);
  const tabs = tabsOf(source.data);
  const [current, , View] = tabs.find(([known]) => known === path[2]) ?? tabs[0];
  return html`
    <${Head} title=${name} above=${html`<a href=${to(['groups'])}>Groups</a>`} note=${source.data && html`<${Note} group=${source.data} />`}>
      ${source.data?.mayChange && html`<${Actions} group=${source.data} />`}
    <//>
    <${Tabs} label="Parts of the group" links=${tabs.map(([known, title]) => ({
      title, href: to(['groups', name, known]), isCurrent: known === current }))} />
    <${Loaded} source=${source}>${(group) => html`<${View} group=${group} />`}<//>`;
}

function tabsOf(group) {
  const tabs = [['offsets', 'Offsets and lag', Offsets], ['members', 'Members', Members]];
  if (group?.share) tabs.push(['share', 'Locks and deliveries', Share]);
  if (group?.type === 'streams') tabs.push(['tasks', 'Tasks', Tasks]);
  return tabs;
}

function Note({ group }) {
  return html`${group.type} group, <${GroupState} state=${group.state} />, ${counted(group.members.length, 'member')}${group.assignor && `, assignor ${group.assignor}`}`;
}

function Actions({ group }) {
  const mayChange = useMayChange();
  const [isResetting, openReset, closeReset] = useOpen();
  const [isDeleting, openDeleting, closeDeleting] = useOpen();
  if (!mayChange) return null;
  return html`
    <button type="button" onClick=${openReset} disabled=${group.offsets.length === 0 && !group.share?.length}>Reset offsets</button>
    <button type="button" class="danger" onClick=${openDeleting}>Delete</button>
    ${isResetting && html`<${ResetOffsets} group=${group} onClose=${closeReset} />`}
    ${isDeleting && html`<${Confirm} title="Delete this group?" action="Delete" name=${group.groupId} done=${`Group ${group.groupId} was deleted.`}
      onClose=${closeDeleting} onConfirm=${async () => {
        await send('DELETE', url`/groups/${group.groupId}`, { confirm: group.groupId });
        go(['groups']);
      }}><p>Its ${counted(group.offsets.length, 'offset')} are lost. The broker refuses it while the group has members.</p><//>`}`;
}

function Offsets({ group }) {
  const [query, change] = useQuery();
  const from = Number(query.from ?? 0);
  const { offsets } = group;
  const lag = offsets.reduce((sum, row) => sum + Math.max(0, row.lag ?? 0), 0);
  const waiting = offsets.filter((row) => row.waitsFor);
  const clients = new Map(group.members.map((member) => [member.memberId, member.clientId]));
  return html`
    <dl class="tiles">
      <div class="tile"><dt>Lag of all</dt><dd>${compact(lag)}</dd></div>
      <div class="tile"><dt>Partitions</dt><dd>${number(offsets.length)}</dd></div>
      <div class="tile"><dt>Members</dt><dd>${number(group.members.length)}</dd></div>
    </dl>
    ${waiting.length > 0 && html`<div class="advice"><p><strong>${counted(waiting.length, 'partition')} cannot move on.</strong></p>
      ${waiting.slice(0, 5).map((row) => html`<p>${row.topic}, partition ${row.partition}, waits for: ${row.waitsFor}.
        ${' '}<a href=${to(['topics', row.topic, 'producers'], { partition: row.partition })}>See its producers, and abort</a></p>`)}</div>`}
    <${Panel} title="Offsets">
      ${offsets.length === 0 ? html`<${Empty} title="The group has no offsets.">It commits some after it has read, unless its consumers commit none.<//>`
        : html`<${Table} label="Offsets" rows=${pageOf(offsets, from)} keyOf=${(row) => `${row.topic}/${row.partition}`}
          kindOf=${(row) => (row.waitsFor ? 'warning' : '')} columns=${[
          { title: 'Partition', cell: (row) => html`<a href=${to(['topics', row.topic, 'messages'], { partition: row.partition, position: 'offset', offset: row.committed ?? row.logStartOffset })}>${row.topic} ${row.partition}</a>` },
          { title: 'Committed', kind: 'number', cell: (row) => number(row.committed) },
          { title: 'Last stable', kind: 'number', cell: (row) => number(row.lastStableOffset) },
          { title: 'End', kind: 'number', cell: (row) => number(row.logEndOffset) },
          { title: 'Lag', kind: 'number', cell: (row) => number(row.lag) },
          { title: 'Read by', cell: (row) => (row.memberId ? clients.get(row.memberId) ?? row.memberId : 'nobody') },
          { title: 'Expires', cell: (row) => (row.expiresMs == null ? 'no' : ago(row.expiresMs)) },
          { title: 'Metadata', cell: (row) => row.metadata || '–' },
        ]} />
        <${Pager} from=${from} total=${offsets.length} onMove=${(target) => change({ from: target || null })} />`}
    <//>`;
}

function Members({ group }) {
  const [query, change] = useQuery();
  const from = Number(query.from ?? 0);
  const hasTargets = group.members.some((member) => member.targetAssignment);
  return html`
    <${Panel} title="The group"><${Facts} items=${[
      ['Protocol', group.protocol], ['Assignor', group.assignor], ['Epoch', group.groupEpoch], ['Epoch of the assignment', group.assignmentEpoch]]} /><//>
    <${Panel} title="Members">
      ${group.members.length === 0 ? html`<${Empty} title="Nobody is in the group now.">Its offsets stay until they expire.<//>`
        : html`<${Table} label="Members" rows=${pageOf(group.members, from)} keyOf=${(member) => member.memberId} columns=${[
          { title: 'Client', cell: (member) => html`${member.clientId}${member.instanceId && ` (${member.instanceId})`}<br /><code class="muted">${member.memberId}</code>` },
          { title: 'Host', cell: (member) => html`${member.host}${member.rackId && `, rack ${member.rackId}`}` },
          { title: 'State', cell: (member) => `${member.state ?? '–'}${member.memberEpoch == null ? '' : `, epoch ${member.memberEpoch}`}` },
          { title: 'Subscribed to', cell: (member) => member.subscribed.join(', ') || '–' },
          { title: 'Reads', kind: 'wide', cell: (member) => html`<${Assignment} topics=${member.assignment} />` },
          ...(hasTargets ? [{ title: 'Will read', kind: 'wide', cell: (member) => html`<${Assignment} topics=${member.targetAssignment ?? []} />` }] : []),
        ]} />
        <${Pager} from=${from} total=${group.members.length} onMove=${(target) => change({ from: target || null })} />`}
    <//>`;
}

function Assignment({ topics }) {
  if (topics.length === 0) return 'nothing';
  return html`<div>${topics.map(({ topic, partitions }) => html`<div><a href=${to(['topics', topic])}>${topic}</a> ${ranges(partitions)}</div>`)}</div>`;
}

/** 0, 1, 2, 5 as 0–2, 5 */
function ranges(numbers) {
  const parts = [];
  for (const value of numbers.toSorted((left, right) => left - right)) {
    const last = parts.at(-1);
    if (last && last[1] === value - 1) last[1] = value;
    else parts.push([value, value]);
  }
  return parts.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(', ');
}

function Share({ group }) {
  const [query, change] = useQuery();
  const from = Number(query.from ?? 0);
  const locks = group.share.flatMap((row) => row.acquired.map((lock) => ({ ...lock, topic: row.topic, partition: row.partition })));
  return html`
    <${Panel} title="Partitions">
      ${group.share.length === 0 ? html`<${Empty} title="No partition is shared yet.">It is when a member has asked for records.<//>`
        : html`<${Table} label="Shared partitions" rows=${group.share} keyOf=${(row) => `${row.topic}/${row.partition}`} columns=${[
          { title: 'Partition', cell: (row) => html`<a href=${to(['topics', row.topic])}>${row.topic}</a> ${row.partition}` },
          { title: 'Start offset', kind: 'number', cell: (row) => number(row.startOffset) },
          { title: 'In flight', kind: 'number', cell: (row) => number(row.inFlight) },
        ]} />`}
    <//>
    <${Panel} title="Records in flight" note="Acquired ones are locked until their member acknowledges them or the lock ends.">
      ${locks.length === 0 ? html`<${Empty} title="No record is in flight." />`
        : html`<${Table} label="Records in flight" rows=${pageOf(locks, from)} keyOf=${(row) => `${row.topic}/${row.partition}/${row.firstOffset}`} columns=${[
          { title: 'Offsets', cell: (row) => html`<a href=${to(['topics', row.topic, 'messages', row.partition, row.firstOffset])}>${row.topic} ${row.partition}</a>: ${number(row.firstOffset)} to ${number(row.lastOffset)}` },
          { title: 'State', cell: (row) => html`<${Badge} kind=${row.deliveryCount > 1 ? 'warning' : 'plain'}>${row.state.toLowerCase()}<//>` },
          { title: 'Deliveries', kind: 'number', cell: (row) => number(row.deliveryCount) },
          { title: 'Member', cell: (row) => (row.memberId ? html`<code>${row.memberId}</code>` : '–') },
          { title: 'Lock ends', cell: (row) => ago(row.lockedUntilMs) },
        ]} />
        <${Pager} from=${from} total=${locks.length} onMove=${(target) => change({ from: target || null })} />`}
    <//>`;
}

function Tasks({ group }) {
  const list = (tasks) => (tasks?.length ? tasks.map((task) => html`<div><code>${typeof task === 'string' ? task : `${task.subtopologyId}: ${ranges(task.partitions)}`}</code></div>`) : '–');
  return html`
    <${Panel} title="Tasks">
      ${group.members.length === 0 ? html`<${Empty} title="No member runs tasks now." />`
        : html`<${Table} label="Tasks" rows=${group.members} keyOf=${(member) => member.memberId} columns=${[
          { title: 'Member', cell: (member) => html`${member.clientId}<br /><code class="muted">${member.memberId}</code>` },
          { title: 'Active', cell: (member) => list(member.tasks?.active) },
          { title: 'Standby', cell: (member) => list(member.tasks?.standby) },
          { title: 'Warming up', cell: (member) => list(member.tasks?.warmup) },
        ]} />`}
    <//>
    ${group.topology && html`<${Panel} title="Topology"><pre class="whole" tabindex="0" aria-label="Topology">${JSON.stringify(group.topology, null, 2)}</pre><//>`}`;
}
