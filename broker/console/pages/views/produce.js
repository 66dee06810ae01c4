// The form that writes a record, also one that was read before.

import { send, url } from '../api.js';
import { Check, Field, toast } from '../components.js';
import { ChangeForm, Dialog } from '../dialogs.js';
import { go } from '../router.js';
import { html, useState } from '../vendor/htm-preact.js';

/**
 * @param {{topic: object, start?: {record: object, wholeKey: ?string, wholeValue: ?string, wholeHeaders: object[]}, onClose: () => void}} props
 *   `start` is a record that is sent again
 */
export function Produce({ topic, start, onClose }) {
  const [key, setKey] = useState(() => fieldOf(start?.wholeKey));
  const [value, setValue] = useState(() => fieldOf(start ? start.wholeValue : ''));
  const [headers, setHeaders] = useState(() => start?.wholeHeaders.map((header) => ({ name: header.name, ...fieldOf(header.value) })) ?? []);
  const edit = (index, changes) => setHeaders(headers.map((row, place) => (place === index ? { ...row, ...changes } : row)));
  const produce = async ({ partition }) => {
    const { partition: written, offset } = await send('POST', url`/topics/${topic.name}/messages`, {
      partition: partition ? Number(partition) : null,
      ...bodyOf('key', key),
      ...bodyOf('value', value),
      isTombstone: value.isNone,
      headers: headers.filter((header) => header.name).map((header) => ({ name: header.name, ...bodyOf('value', header) })),
    });
    toast(`Written to partition ${written} at offset ${offset}.`);
    onClose();
    go(['topics', topic.name, 'messages', written, offset]);
  };
  return html`<${Dialog} title=${start ? 'Send this record again' : `Produce to ${topic.name}`} isWide onClose=${onClose}>
    <${ChangeForm} action="Produce" onClose=${onClose} onSend=${produce}>
      <${Field} label="Partition" hint="Empty: by the key, or any.">
        <input name="partition" type="number" min="0" max=${topic.partitions.length - 1} defaultValue=${start?.record.partition ?? ''} /><//>
      <${DataField} label="Key" none="No key" data=${key} onChange=${setKey} />
      <${DataField} label="Value" none="Tombstone (no value)" data=${value} onChange=${setValue} isLong />
      <fieldset><legend>Headers</legend>
        ${headers.map((header, index) => html`<div class="row">
          <input aria-label="Header" placeholder="name" value=${header.name} onInput=${(event) => edit(index, { name: event.currentTarget.value })} />
          <input aria-label="Its value" placeholder=${header.isNone ? 'null' : header.isBase64 ? 'Base64' : 'value'} value=${header.text}
            onInput=${(event) => edit(index, { text: event.currentTarget.value, isNone: false })} />
          ${header.isBase64 && html`<span class="muted">in Base64</span>`}
          <button type="button" aria-label="Remove" onClick=${() => setHeaders(headers.filter((_, place) => place !== index))}>×</button>
        </div>`)}
        <div><button type="button" class="small" onClick=${() => setHeaders([...headers, { name: '', ...fieldOf('') }])}>Add a header</button></div>
      </fieldset>
    <//>
  <//>`;
}

function DataField({ label, none, data, onChange, isLong }) {
  const type = (event) => onChange({ ...data, text: event.currentTarget.value });
  const title = data.isBase64 ? `${label}, in Base64` : label;
  return html`<div class="stack">
    ${!data.isNone && html`<${Field} label=${title}>${isLong
      ? html`<textarea value=${data.text} onInput=${type} spellcheck=${false}></textarea>`
      : html`<input value=${data.text} onInput=${type} spellcheck=${false} autocomplete="off" />`}<//>`}
    <div class="actions">
      <${Check} label=${none} isOn=${data.isNone} onChange=${(isNone) => onChange({ ...data, isNone })} />
      ${!data.isNone && html`<${Check} label=${`${label} is Base64`} isOn=${data.isBase64} onChange=${(isBase64) => onChange({ ...data, isBase64 })} />`}
    </div>
  </div>`;
}

/** What a field begins with: bytes that are no text stay in Base64. */
function fieldOf(base64) {
  if (base64 == null) return { text: '', isNone: true, isBase64: false };
  try {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), isNone: false, isBase64: false };
  } catch {
    return { text: base64, isNone: false, isBase64: true };
  }
}

function bodyOf(name, { text, isNone, isBase64 }) {
  if (isNone) return {};
  return isBase64 ? { [`${name}Base64`]: text } : { [name]: text };
}
