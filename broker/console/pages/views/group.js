// One group: where it is, who is in it, and what it waits for.

import { send, url } from '../api.js';
import { Badge, Empty, Facts, Head, Loaded, Pager, pageOf, Panel, Search, Table, Tabs, useOpen } from '../components.js';
import { Confirm } from '../dialogs.js';
import { ago, compact, counted, duration, number, plain } from '../format.js';
import { go, place, to, useQuery } from '../router.js';
import { useStore } from '../store.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';
import { GroupState } from './groups.js';
import { ResetOffsets } from './reset_offsets.js';

/** @param {{name: string}} props */
export function Group({ name }) {
  const { path, query } = useStore(place);
  const { search, from, membersFrom } = query;
  const source = useWatched(url`/groups/${name}`, { search, from, membersFrom, limit: 100 });
  const tabs = tabsOf(source.data);
  const [current, , View] = tabs.find(([known]) => known === path[2]) ?? tabs[0];
  return html`
    <${Head} title=${name} above=${html`<a href=${to(['groups'])}>Groups</a>`} note=${source.data && html`<${Note} group=${source.data} />`}>
      ${source.data && html`<${Actions} group=${source.data} />`}
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
  return html`${group.type} group, <${GroupState} state=${group.state} />, ${counted(group.totalMembers, 'member')}${group.assignor && `, assignor ${group.assignor}`}`;
}

function Actions({ group }) {
  const [isResetting, openReset, closeReset] = useOpen();
  const [isDeleting, openDeleting, closeDeleting] = useOpen();
  return html`
    ${group.mayChange && html`<button type="button" onClick=${openReset} disabled=${group.offsets.length === 0}>Reset offsets</button>`}
    ${group.mayDelete && html`<button type="button" class="danger" onClick=${openDeleting}>Delete</button>`}
    ${isResetting && html`<${ResetOffsets} group=${group} onClose=${closeReset} />`}
    ${isDeleting && html`<${Confirm} title="Delete this group?" action="Delete" name=${group.groupId} done=${`Group ${group.groupId} was deleted.`}
      onClose=${closeDeleting} onConfirm=${async () => {
        await send('DELETE', url`/groups/${group.groupId}`, { confirm: group.groupId });
        go(['groups']);
      }}><p>Its offsets in ${counted(group.totalOffsets, 'partition')} are lost. The broker refuses it while the group has members.</p><//>`}`;
}

function Offsets({ group }) {
  const [query, change] = useQuery();
  const { offsets, totalOffsets } = group;
  const waiting = offsets.filter((row) => row.waitsFor);
  const clients = new Map(group.members.map((member) => [member.memberId, member.clientId]));
  return html`
    <dl class="tiles">
      <div class="tile"><dt>Total lag</dt><dd>${compact(group.lag)}</dd></div>
      <div class="tile"><dt>Partitions</dt><dd>${number(totalOffsets)}</dd></div>
      <div class="tile"><dt>Members</dt><dd>${number(group.totalMembers)}</dd></div>
    </dl>
    ${waiting.length > 0 && html`<div class="advice"><p><strong>${counted(waiting.length, 'partition')} cannot move on.</strong></p>
      ${waiting.slice(0, 5).map((row) => html`<p>${row.topic}, partition ${row.partition}: ${row.waitsFor}.
        ${' '}<a href=${to(['topics', row.topic, 'producers'], { partition: row.partition })}>See its producers, and abort</a></p>`)}</div>`}
    ${(totalOffsets > offsets.length || query.search) && html`<div class="filters">
      <${Search} label="Search in topics" value=${query.search} onSearch=${(text) => change({ search: text, from: null }, true)} /></div>`}
    <${Panel} title="Offsets">
      ${offsets.length === 0 ? html`<${Empty} title="The group has no offsets.">It commits some after it has read, unless its consumers commit none.<//>`
        : html`<${Table} label="Offsets" rows=${offsets} keyOf=${(row) => `${row.topic}/${row.partition}`}
          kindOf=${(row) => (row.waitsFor ? 'warning' : '')} columns=${[
          { title: 'Partition', cell: (row) => html`<a href=${to(['topics', row.topic, 'messages'], { partition: row.partition, position: 'offset', offset: row.committed ?? row.logStartOffset })}>${row.topic} ${row.partition}</a>
            ${row.problem && html` <${Badge} kind="problem">${row.problem}<//>`}` },
          { title: 'Committed', kind: 'number', cell: (row) => number(row.committed) },
          { title: 'Last stable', kind: 'number', cell: (row) => number(row.lastStableOffset) },
          { title: 'End', kind: 'number', cell: (row) => number(row.logEndOffset) },
          { title: 'Lag', kind: 'number', cell: (row) => number(row.lag) },
          { title: 'Read by', cell: (row) => (row.memberId ? clients.get(row.memberId) ?? row.memberId : 'nobody') },
          { title: 'Expires', cell: (row) => (row.expiresMs == null ? 'no' : ago(row.expiresMs)) },
          { title: 'Metadata', cell: (row) => row.metadata || '–' },
        ]} />
        <${Pager} from=${Number(query.from ?? 0)} total=${totalOffsets} onMove=${(target) => change({ from: target || null })} />`}
    <//>`;
}

function Members({ group }) {
  const hasTargets = group.members.some((member) => member.targetAssignment);
  return html`
    <${Panel} title="The group"><${Facts} items=${[
      ['Protocol', group.protocol], ['Assignor', group.assignor], ['Epoch', group.groupEpoch], ['Epoch of the assignment', group.assignmentEpoch]]} /><//>
    <${Panel} title="Members">
      ${group.members.length === 0 ? html`<${Empty} title="Nobody is in the group now.">Its offsets stay until they expire.<//>`
        : html`<${Table} label="Members" rows=${group.members} keyOf=${(member) => member.memberId} columns=${[
          { title: 'Client', cell: (member) => html`${member.clientId}${member.instanceId && ` (${member.instanceId})`}<br /><code class="muted">${member.memberId}</code>` },
          { title: 'Host', cell: (member) => html`${member.host}${member.rackId && `, rack ${member.rackId}`}` },
          { title: 'State', cell: (member) => `${member.state ?? '–'}${member.memberEpoch == null ? '' : `, epoch ${member.memberEpoch}`}` },
          { title: 'Subscribed to', cell: (member) => member.subscribed.join(', ') || member.subscribedPattern || '–' },
          { title: 'Reads', kind: 'wide', cell: (member) => html`<${Assignment} topics=${member.assignment} />` },
          ...(hasTargets ? [{ title: 'Will read', kind: 'wide', cell: (member) => html`<${Assignment} topics=${member.targetAssignment ?? []} />` }] : []),
        ]} />
        <${MembersPager} group=${group} />`}
    <//>`;
}

function MembersPager({ group }) {
  const [query, change] = useQuery();
  return html`<${Pager} from=${Number(query.membersFrom ?? 0)} total=${group.totalMembers} onMove=${(target) => change({ membersFrom: target || null })} />`;
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
  const from = Number(query.locksFrom ?? 0);
  const settings = group.shareSettings;
  const locks = group.share.flatMap((row) => row.acquired.map((lock) => ({ ...lock, topic: row.topic, partition: row.partition })));
  return html`
    ${settings && html`<${Panel} title="How records are delivered"><${Facts} items=${[
      ['Isolation', plain(settings.isolation)], ['A lock lasts', duration(settings.lockDurationMs)], ['Deliveries at most', settings.deliveryCountLimit],
      ['Locks in a partition at most', number(settings.maxRecordLocks)], ['Dead letters go to', settings.deadLetterQueue || 'nowhere']]} /><//>`}
    <${Panel} title="Partitions">
      ${group.share.length === 0 ? html`<${Empty} title="No partition is shared yet.">It is when a member has asked for records.<//>`
        : html`<${Table} label="Shared partitions" rows=${group.share} keyOf=${(row) => `${row.topic}/${row.partition}`} columns=${[
          { title: 'Partition', cell: (row) => html`<a href=${to(['topics', row.topic])}>${row.topic}</a> ${row.partition}` },
          { title: 'Start offset', kind: 'number', cell: (row) => row.startOffset == null ? 'not decided' : number(row.startOffset) },
          { title: 'In flight', kind: 'number', cell: (row) => number(row.inFlight) },
          { title: 'Read now', cell: (row) => (row.isRead ? 'yes' : 'no') },
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
        <${Pager} from=${from} total=${locks.length} onMove=${(target) => change({ locksFrom: target || null })} />`}
    <//>`;
}

function Tasks({ group }) {
  const list = (tasks) => (tasks?.length ? tasks.map((task) => html`<div>${task.subtopologyId}: ${ranges(task.partitions)}</div>`) : '–');
  return html`
    <${Panel} title="Tasks">
      ${group.members.length === 0 ? html`<${Empty} title="No member runs tasks now." />`
        : html`<${Table} label="Tasks" rows=${group.members} keyOf=${(member) => member.memberId} columns=${[
          { title: 'Member', cell: (member) => html`${member.clientId}<br /><code class="muted">${member.memberId}</code>` },
          { title: 'Active', cell: (member) => list(member.tasks?.active) },
          { title: 'Standby', cell: (member) => list(member.tasks?.standby) },
          { title: 'Warming up', cell: (member) => list(member.tasks?.warmup) },
          { title: 'Restored', cell: (member) => member.taskOffsets.map((task) => html`<div>${task.subtopologyId} ${task.partition}: ${number(task.offset)} of ${number(task.endOffset)}</div>`) },
        ]} />
        <${MembersPager} group=${group} />`}
    <//>
    ${group.topology && html`<${Panel} title="Topology" note=${`Epoch ${group.topology.epoch}`}>
      <${Table} label="Subtopologies" rows=${group.topology.subtopologies} keyOf=${(part) => part.subtopologyId} columns=${[
        { title: 'Subtopology', cell: (part) => part.subtopologyId },
        { title: 'Reads', cell: (part) => part.sourceTopics.join(', ') || '–' },
        { title: 'Repartitions from', cell: (part) => part.repartitionSourceTopics.map((topic) => topic.name).join(', ') || '–' },
        { title: 'Repartitions to', cell: (part) => part.repartitionSinkTopics.join(', ') || '–' },
        { title: 'Changelogs', cell: (part) => part.stateChangelogTopics.map((topic) => topic.name).join(', ') || '–' },
      ]} /><//>`}`;
}
