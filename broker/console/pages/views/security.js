// Who may do what: ACLs, users, quotas and delegation tokens.

import { Head, Tabs } from '../components.js';
import { place, to } from '../router.js';
import { useStore } from '../store.js';
import { html } from '../vendor/htm-preact.js';
import { Acls } from './acls.js';
import { Quotas } from './quotas.js';
import { Tokens } from './tokens.js';
import { Users } from './users.js';

const TABS = [['acls', 'ACLs', Acls], ['users', 'Users', Users], ['quotas', 'Quotas', Quotas], ['tokens', 'Tokens', Tokens]];

/** The view. */
export function Security() {
  const { path } = useStore(place);
  const [current, , View] = TABS.find(([known]) => known === path[1]) ?? TABS[0];
  return html`
    <${Head} title="Security" />
    <${Tabs} label="Parts of security" links=${TABS.map(([known, title]) => ({ title, href: to(['security', known]), isCurrent: known === current }))} />
    <${View} key=${current} />`;
}
