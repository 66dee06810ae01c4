// The frame around all views: navigation, the theme, and which view an address shows.

import { loadMe, me } from './api.js';
import { Empty, FailureNote, Head, Loading, Toasts } from './components.js';
import { place, to } from './router.js';
import { useStore } from './store.js';
import { theme } from './theme.js';
import { html, render, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { Connections } from './views/connections.js';
import { Group } from './views/group.js';
import { Groups } from './views/groups.js';
import { Log } from './views/log.js';
import { Maintenance } from './views/maintenance.js';
import { Overview } from './views/overview.js';
import { Security } from './views/security.js';
import { Topic } from './views/topic.js';
import { Topics } from './views/topics.js';
import { Transactions } from './views/transactions.js';
import { connection } from './watch.js';

const VIEWS = [
  ['overview', 'Overview', Overview],
  ['topics', 'Topics', Topics, Topic],
  ['groups', 'Groups', Groups, Group],
  ['transactions', 'Transactions', Transactions],
  ['connections', 'Connections', Connections],
  ['security', 'Security', Security],
  ['maintenance', 'Maintenance', Maintenance],
  ['log', 'Log', Log],
];

const CONNECTION_TEXTS = {
  none: '',
  live: 'Live',
  paused: 'Paused',
  polled: 'Too many pages are open: this one asks now and then',
  lost: 'The broker does not answer; trying again',
};

function App() {
  const { path } = useStore(place);
  const client = useStore(me);
  const [failure, setFailure] = useState(null);
  const load = () => loadMe().then(() => setFailure(null), setFailure);
  useEffect(() => {
    load();
  }, []);
  const page = useRef(null);
  const isFirst = useRef(true);
  const [name = 'overview', item] = path;
  useEffect(() => {
    if (!isFirst.current) {
      page.current.focus();
      scrollTo(0, 0);
    }
    isFirst.current = false;
  }, [name, item]);
  return html`
    <a class="skip" href="#page" onClick=${skip}>Skip to the page</a>
    <${Side} current=${name} client=${client} />
    <main id="page" tabindex="-1" ref=${page}>
      ${failure && html`<${FailureNote} failure=${failure} onRetry=${load} />`}
      ${!failure && !client && html`<${Loading} />`}
      ${client && html`<${View} key=${`${name}/${item}`} name=${name} item=${item} />`}
    </main>
    <${Toasts} />
  `;
}

function skip(event) {
  event.preventDefault();
  document.getElementById('page').focus();
}

function View({ name, item }) {
  const [, , List, Item] = VIEWS.find(([known]) => known === name) ?? [];
  if (item !== undefined && Item) return html`<${Item} name=${item} />`;
  if (List) return html`<${List} />`;
  return html`<${Head} title="No such page" /><${Empty} title="This address shows nothing.">
    <a href=${to(['overview'])}>Go to the overview</a><//>`;
}

function Side({ current, client }) {
  const [isOpen, setOpen] = useState(false);
  return html`<header class="side">
    <div class="brand">
      <a href=${to(['overview'])}><img src="icon.svg" alt="" width="26" height="26" />odradek</a>
      <button type="button" class="menu" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setOpen(!isOpen)}>Menu</button>
    </div>
    <div id="menu" class=${isOpen ? 'open' : ''}>
      <nav aria-label="Views">
        ${VIEWS.map(([name, title]) => html`<a href=${to([name])} onClick=${() => setOpen(false)}
          aria-current=${name === current ? 'page' : undefined}>${title}</a>`)}
      </nav>
      <div class="side-foot">
        <${ThemeChoice} />
        ${client && html`<p>${client.principal}${client.readOnly ? ', read-only' : ''}<br />odradek ${client.version}<br />
          <a href="/api/v1/openapi.json">API</a></p>`}
      </div>
    </div>
    <${ConnectionState} />
  </header>`;
}

function ConnectionState() {
  const state = useStore(connection);
  return html`<p class="connection ${state}" role="status">${CONNECTION_TEXTS[state]}</p>`;
}

function ThemeChoice() {
  const choice = useStore(theme);
  return html`<label class="theme"><span>Theme</span>
    <select value=${choice} onChange=${(event) => theme.set(event.currentTarget.value)}>
      <option value="system">as the system</option><option value="light">light</option><option value="dark">dark</option>
    </select></label>`;
}

render(html`<${App} />`, document.getElementById('app'));
