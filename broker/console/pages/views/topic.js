// One topic: its tabs, and what can be done with the whole of it.

import { send, url } from '../api.js';
import { Badge, Field, Head, Loaded, Tabs, toast, useOpen } from '../components.js';
import { ChangeForm, Confirm, Dialog } from '../dialogs.js';
import { bytes, counted } from '../format.js';
import { go, place, to } from '../router.js';
import { useStore } from '../store.js';
import { html } from '../vendor/htm-preact.js';
import { useWatched } from '../watch.js';
import { Messages } from './messages.js';
import { Partitions } from './partitions.js';
import { Producers } from './producers.js';
import { OneRecord } from './record.js';
import { Segments } from './segments.js';
import { TopicConfig } from './topic_config.js';

const TABS = [
  ['partitions', 'Partitions', Partitions],
  ['messages', 'Messages', Messages],
  ['config', 'Configuration', TopicConfig],
  ['segments', 'Segments', Segments],
  ['producers', 'Producers', Producers],
];

/** @param {{name: string}} props */
export function Topic({ name }) {
  const { path } = useStore(place);
  const [, , tab = 'partitions', partition, offset] = path;
  const [, , View] = TABS.find(([known]) => known === tab) ?? TABS[0];
  const source = useWatched(url`/topics/${name}`);
  return html`
    <${Head} title=${name} above=${html`<a href=${to(['topics'])}>Topics</a>`} note=${source.data && noteOf(source.data)}>
      ${source.data && html`<${Actions} topic=${source.data} />`}
    <//>
    <${Tabs} label="Parts of the topic" links=${TABS.map(([known, title]) => ({
      title, href: to(['topics', name, known]), isCurrent: known === tab }))} />
    <${Loaded} source=${source}>${(topic) => (offset !== undefined
      ? html`<${OneRecord} key=${`${partition}/${offset}`} topic=${topic} partition=${partition} offset=${offset} />`
      : html`<${View} key=${tab} topic=${topic} />`)}<//>`;
}

function noteOf(topic) {
  return html`${topic.isInternal && html`<${Badge}>internal<//> `}${counted(topic.partitions.length, 'partition')},
    ${' '}${bytes(topic.sizeBytes)}, id <code>${topic.topicId}</code>`;
}

function Actions({ topic }) {
  const [isAdding, openAdding, closeAdding] = useOpen();
  const [isDeleting, openDeleting, closeDeleting] = useOpen();
  return html`
    ${topic.mayChange && html`<button type="button" onClick=${openAdding}>Add partitions</button>`}
    ${topic.mayDelete && html`<button type="button" class="danger" onClick=${openDeleting}>Delete</button>`}
    ${isAdding && html`<${AddPartitions} topic=${topic} onClose=${closeAdding} />`}
    ${isDeleting && html`<${Confirm} title="Delete this topic?" action="Delete" name=${topic.name}
      done=${`Topic ${topic.name} was deleted.`} onClose=${closeDeleting} onConfirm=${async () => {
        await send('DELETE', url`/topics/${topic.name}`, { confirm: topic.name });
        go(['topics']);
      }}>
      <p>All its records are lost: ${bytes(topic.sizeBytes)} in ${counted(topic.partitions.length, 'partition')}. There is no way back.</p>
    <//>`}`;
}

function AddPartitions({ topic, onClose }) {
  const count = topic.partitions.length;
  const add = async ({ total }) => {
    const body = { total: Number(total) };
    await send('POST', url`/topics/${topic.name}/partitions`, { ...body, validateOnly: true });
    await send('POST', url`/topics/${topic.name}/partitions`, { ...body, validateOnly: false });
    toast(`${topic.name} has ${total} partitions.`);
    onClose();
  };
  return html`<${Dialog} title="Add partitions" onClose=${onClose}>
    <${ChangeForm} action="Add" onClose=${onClose} onSend=${add}>
      <p>There are ${count} now. Keys of new records may go to other partitions than before. Partitions cannot be taken away again.</p>
      <${Field} label="Partitions then"><input name="total" type="number" required min=${count + 1} defaultValue=${count + 1} /><//>
    <//>
  <//>`;
}
