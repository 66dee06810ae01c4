// Moves the offsets of a group, after it was shown what they will be.

import { send, url } from '../api.js';
import { Field, Table, toast } from '../components.js';
import { ChangeForm, Dialog } from '../dialogs.js';
import { number } from '../format.js';
import { html, useState } from '../vendor/htm-preact.js';

const TARGETS = [['earliest', 'the first record'], ['latest', 'the end'], ['offset', 'an offset'], ['time', 'a time'], ['shift', 'so many records further (less than 0: back)']];

/** @param {{group: object, onClose: () => void}} props */
export function ResetOffsets({ group, onClose }) {
  const [target, setTarget] = useState('earliest');
  const [checked, setChecked] = useState(null);
  // Those of the page that is shown: another may be typed.
  const topics = [...new Set(group.offsets.map((row) => row.topic))];
  const path = url`/groups/${group.groupId}/offsets`;
  const preview = async ({ topic, partitions, value, at }) => {
    const asked = {
      topic,
      partitions: partitions ? partitions.split(',').map(Number) : null,
      to: target,
      value: at ? new Date(at).getTime() : value ? Number(value) : null,
    };
    setChecked({ asked, ...await send('POST', path, { ...asked, preview: true }) });
  };
  const apply = async () => {
    await send('POST', path, { ...checked.asked, preview: false });
    toast(`The offsets of ${group.groupId} were set.`);
    onClose();
  };
  if (checked) {
    return html`<${Dialog} title="Set these offsets?" isWide onClose=${onClose}>
      <${ChangeForm} key="apply" action="Set the offsets" isDangerous isReady=${!checked.refusal} onClose=${onClose} onSend=${apply}
        buttons=${html`<button type="button" onClick=${() => setChecked(null)}>Back</button>`}>
        ${checked.refusal && html`<p class="advice">They cannot be set now: ${checked.refusal}.</p>`}
        <${Table} label="Offsets" rows=${checked.offsets} keyOf=${(row) => row.partition} columns=${[
          { title: 'Partition', cell: (row) => `${row.topic} ${row.partition}` },
          { title: 'Now', kind: 'number', cell: (row) => row.from == null ? 'none' : number(row.from) },
          { title: 'Then', kind: 'number', cell: (row) => number(row.to) },
        ]} />
      <//>
    <//>`;
  }
  return html`<${Dialog} title="Reset offsets" onClose=${onClose}>
    <${ChangeForm} key="preview" action="Preview" onClose=${onClose} onSend=${preview}>
      ${group.totalMembers > 0 && html`<p class="advice">The group has members: stop them first. What would be set can be looked at now.</p>`}
      <${Field} label="Topic"><input name="topic" list="topics-of-the-group" defaultValue=${topics[0]} required autocomplete="off" /><//>
      <datalist id="topics-of-the-group">${topics.map((topic) => html`<option value=${topic} />`)}</datalist>
      <${Field} label="Partitions" hint="Empty: all. Else numbers, as 0,1,2."><input name="partitions" pattern="[0-9]+(,[0-9]+)*" /><//>
      <${Field} label="Go to"><select value=${target} onChange=${(event) => setTarget(event.currentTarget.value)}>
        ${TARGETS.map(([name, title]) => html`<option value=${name} selected=${name === target}>${title}</option>`)}</select><//>
      ${(target === 'offset' || target === 'shift') && html`<${Field} label=${target === 'offset' ? 'Offset' : 'Records'}><input name="value" type="number" required /><//>`}
      ${target === 'time' && html`<${Field} label="Time"><input name="at" type="datetime-local" step="1" required /><//>`}
    <//>
  <//>`;
}
