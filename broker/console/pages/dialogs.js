// Dialogs: forms that change something, and questions before something is lost.

import { FailureNote, Field, toast, useId } from './components.js';
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

/**
 * A window above the page. Escape closes it, and the focus returns to where it was.
 * @param {{title: string, onClose: () => void, isWide?: boolean, children: any}} props
 */
export function Dialog({ title, onClose, isWide, children }) {
  const box = useRef(null);
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const escape = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${box} class=${isWide ? 'wide' : ''} aria-labelledby=${id} onCancel=${escape}>
    <div class="dialog-head"><h2 id=${id}>${title}</h2>
      <button type="button" class="small" aria-label="Close" onClick=${onClose}>×</button></div>
    ${children}
  </dialog>`;
}

/**
 * A form that sends a change. What `onSend` raises is shown above the buttons.
 * @param {{action: string, isDangerous?: boolean, isReady?: boolean, onClose: () => void,
 *          onSend: (fields: Object<string, string>) => Promise<void>, buttons?: any, children: any}} props
 */
export function ChangeForm({ action, isDangerous, isReady = true, onClose, onSend, buttons, children }) {
  const [failure, setFailure] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.currentTarget));
    setBusy(true);
    setFailure(null);
    try {
      await onSend(fields);
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  return html`<form class="form" onSubmit=${send}>
    ${children}
    ${failure && html`<${FailureNote} failure=${failure} />`}
    <div class="actions">
      <button type="submit" class=${isDangerous ? 'danger' : 'main'} disabled=${isBusy || !isReady}>${action}</button>
      ${buttons}
      <button type="button" onClick=${onClose}>Cancel</button>
    </div>
  </form>`;
}

/**
 * Asks before something is lost; with `name` only who types that name may go on.
 * @param {{title: string, action: string, name?: string, done: string, onClose: () => void,
 *          onConfirm: () => Promise<any>, children: any}} props `done` is what a toast says then
 */
export function Confirm({ title, action, name, done, onClose, onConfirm, children }) {
  const [typed, setTyped] = useState('');
  const send = async () => {
    await onConfirm();
    toast(done);
    onClose();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${ChangeForm} action=${action} isDangerous isReady=${name === undefined || typed === name} onClose=${onClose} onSend=${send}>
      <div class="prose">${children}</div>
      ${name !== undefined && html`<${Field} label="Type its name to go on" hint=${name}>
        <input autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /><//>`}
    <//>
  <//>`;
}
