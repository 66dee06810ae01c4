// The parts of which views are made.

import { number } from './format.js';
import { makeStore, useStore } from './store.js';
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';

const TOAST_MS = 6000;
const PAGE = 100;

let lastId = 0;

/** An id that no other element has, the same as long as the component lives. */
export function useId() {
  const id = useRef('');
  if (!id.current) {
    lastId += 1;
    id.current = `part-${lastId}`;
  }
  return id.current;
}

/**
 * The head of a view; also the title of the browser's tab.
 * @param {{title: string, above?: any, note?: any, children?: any}} props `children` are actions
 */
export function Head({ title, above, note, children }) {
  useEffect(() => {
    document.title = `${title} · odradek`;
  }, [title]);
  return html`<header class="head">
    <div class="head-text">
      ${above && html`<p class="above">${above}</p>`}
      <h1>${title}</h1>
      ${note && html`<p class="note">${note}</p>`}
    </div>
    <div class="actions">${children}</div>
  </header>`;
}

/**
 * @param {{title: string, note?: any, actions?: any, children: any}} props
 */
export function Panel({ title, note, actions, children }) {
  const id = useId();
  return html`<section class="panel" aria-labelledby=${id}>
    <div class="panel-head">
      <h2 id=${id}>${title}</h2>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${note && html`<p class="note">${note}</p>`}
    ${children}
  </section>`;
}

/**
 * Shows `children(data)`, or that data are loaded, or why there are none.
 * @param {{source: {data: any, failure: any, reload: () => void}, children: (data: any) => any}} props
 */
export function Loaded({ source, children }) {
  const { data, failure, reload } = source;
  return html`
    ${failure && html`<${FailureNote} failure=${failure} onRetry=${reload} />`}
    ${!failure && data === null && html`<${Loading} />`}
    ${data !== null && children(data)}
  `;
}

/** Grey bars in the place of what is loaded. */
export function Loading() {
  return html`<div class="loading" role="status"><span class="hidden">Loading</span><i></i><i></i><i></i></div>`;
}

const ADVICE = {
  NO_ANSWER: 'The page tries again by itself.',
  UNKNOWN_TOPIC_OR_PARTITION: 'It may have been deleted. Look into the list.',
  GROUP_ID_NOT_FOUND: 'It may have been deleted, or its last offset has expired. Look into the list.',
  FORBIDDEN: 'Ask who runs the broker for the permission, or log in as somebody else.',
};

/** What went wrong, and what to do. */
export function FailureNote({ failure, onRetry }) {
  const advice = ADVICE[failure.error] ?? (failure.error?.endsWith('AUTHORIZATION_FAILED') ? ADVICE.FORBIDDEN : '');
  return html`<div class="failure" role="alert">
    <p><strong>${failure.message || String(failure)}</strong></p>
    <p>${advice} <code>${failure.error}</code></p>
    ${onRetry && html`<button type="button" onClick=${() => onRetry()}>Try again</button>`}
  </div>`;
}

/**
 * There is nothing, and what to do about it.
 * @param {{title: string, children?: any}} props
 */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
}

/** @param {{kind?: 'ok'|'warning'|'problem'|'plain', children: any}} props */
export function Badge({ kind = 'plain', children }) {
  return html`<span class="badge ${kind}">${children}</span>`;
}

/**
 * Names and values.
 * @param {{items: [string, any][]}} props those with a value of undefined or null are left out
 */
export function Facts({ items }) {
  const shown = items.filter(([, value]) => value !== undefined && value !== null);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/**
 * A table, at phone width a list of cards.
 *
 * The first column names the row. Columns of kind `fixed` are never broken, `text` and `wide` ones have
 * room. `sort` of a column is the name that `onSort` gets.
 * @param {{label: string, columns: {title: string, cell: (row: any) => any, kind?: 'number'|'fixed'|'text'|'wide', sort?: string}[],
 *          rows: any[], keyOf: (row: any) => any, sorted?: {by: string, isDescending: boolean}, onSort?: (by: string) => void,
 *          kindOf?: (row: any) => string}} props
 */
export function Table({ label, columns, rows, keyOf, sorted, onSort, kindOf }) {
  return html`<div class="table-box"><table role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`
      <th role="columnheader" scope="col" class=${column.kind} aria-sort=${orderOf(column, sorted)}>
        ${column.sort
          ? html`<button type="button" class="sort" onClick=${() => onSort(column.sort)}>${column.title}</button>`
          : column.title || html`<span class="hidden">Actions</span>`}
      </th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row) => html`<tr role="row" key=${keyOf(row)} class=${kindOf?.(row)}>
      ${columns.map((column, index) => index === 0
        ? html`<th role="rowheader" scope="row" class=${column.kind}>${column.cell(row)}</th>`
        : html`<td role="cell" class=${column.kind} data-label=${column.title}>${column.cell(row)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

function orderOf(column, sorted) {
  if (!column.sort) return undefined;
  if (sorted?.by !== column.sort) return 'none';
  return sorted.isDescending ? 'descending' : 'ascending';
}

/**
 * Which part of a long list is shown, and the way to the others.
 * @param {{from: number, total: number, onMove: (from: number) => void, size?: number}} props
 */
export function Pager({ from, total, onMove, size = PAGE }) {
  if (total <= size && from === 0) return null;
  const last = Math.floor(Math.max(0, total - 1) / size) * size;
  const step = (title, target) => html`<button type="button" disabled=${target < 0 || target > last || target === from}
    onClick=${() => onMove(target)}>${title}</button>`;
  return html`<nav class="pager" aria-label="Pages">
    ${step('First', 0)} ${step('Previous', from - size)}
    <span>${number(Math.min(from + 1, total))} to ${number(Math.min(from + size, total))} of ${number(total)}</span>
    ${step('Next', from + size)} ${step('Last', last)}
  </nav>`;
}

/** The part of rows that a page shows, for lists that come whole. */
export function pageOf(rows, from) {
  return rows.slice(from, from + PAGE);
}

/**
 * @param {{label: string, links: {title: string, href: string, isCurrent: boolean}[]}} props
 */
export function Tabs({ label, links }) {
  const bar = useRef(null);
  const current = links.find((link) => link.isCurrent)?.href;
  useEffect(() => {
    bar.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${bar}>
    ${links.map(({ title, href, isCurrent }) => html`<a href=${href} aria-current=${isCurrent ? 'page' : undefined}>${title}</a>`)}
  </nav>`;
}

/**
 * A label and what it is the label of: an <input>, <select> or <textarea> as its only child.
 * @param {{label: string, hint?: any, children: any}} props
 */
export function Field({ label, hint, children }) {
  const id = useId();
  return html`<label class="field"><span class="label">${label}</span>${children}
    ${hint && html`<span class="hint" id=${id}>${hint}</span>`}</label>`;
}

/**
 * A search in the names of a list, sent when typing pauses. A view that is drawn again meanwhile leaves what is typed.
 * @param {{label: string, value?: string, onSearch: (text: string) => void}} props
 */
export function Search({ label, value = '', onSearch }) {
  const timer = useRef(0);
  const [typed, setTyped] = useState(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  const later = (event) => {
    const text = event.currentTarget.value;
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setTyped(null);
      onSearch(text);
    }, 250);
  };
  return html`<${Field} label=${label}><input type="search" value=${typed ?? value} onInput=${later} spellcheck=${false} /><//>`;
}

/**
 * @param {{label: string, value?: string, options: [string, string][], onChange: (value: string) => void}} props
 */
export function Choice({ label, value = '', options, onChange }) {
  return html`<${Field} label=${label}>
    <select value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
      ${options.map(([name, title]) => html`<option value=${name} selected=${name === value}>${title}</option>`)}
    </select>
  <//>`;
}

/** @param {{label: string, isOn: boolean, onChange: (isOn: boolean) => void}} props */
export function Check({ label, isOn, onChange }) {
  return html`<label class="check"><input type="checkbox" checked=${isOn}
    onChange=${(event) => onChange(event.currentTarget.checked)} /> ${label}</label>`;
}

/** A button that copies a text. */
export function Copy({ text, label = 'Copy' }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast('Copied.');
    } catch {
      toast('The browser does not let pages copy here. Select the text and copy it yourself.', 'problem');
    }
  };
  return html`<button type="button" class="small" onClick=${copy}>${label}</button>`;
}

/**
 * How much of a whole: a bar.
 * @param {{label: string, share: number, kind?: string}} props
 */
export function Meter({ label, share, kind = '' }) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return html`<div class="meter ${kind}" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${percent}>
    <i style=${`width:${percent}%`}></i></div>`;
}

const toasts = makeStore([]);

/**
 * Say what an action has done.
 * @param {string} text
 * @param {'ok'|'problem'} [kind]
 */
export function toast(text, kind = 'ok') {
  const shown = { text, kind };
  toasts.set([...toasts.get(), shown]);
  setTimeout(() => remove(shown), kind === 'ok' ? TOAST_MS : 2 * TOAST_MS);
}

function remove(shown) {
  toasts.set(toasts.get().filter((other) => other !== shown));
}

/** Where toasts appear; it is there once. */
export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${useStore(toasts).map((shown) => html`<p class="toast ${shown.kind}">${shown.text}
      <button type="button" class="small" aria-label="Dismiss" onClick=${() => remove(shown)}>×</button></p>`)}
  </div>`;
}

/** Whether something is open, and functions that open and close it. */
export function useOpen() {
  const [isOpen, setOpen] = useState(false);
  return [isOpen, () => setOpen(true), () => setOpen(false)];
}
