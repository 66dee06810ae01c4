// Delegation tokens. Their secrets are never shown.

import { useLoaded } from '../api.js';
import { Empty, Loaded, Pager, Panel, Search, Table } from '../components.js';
import { ago, time } from '../format.js';
import { useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';

/** The tab. */
export function Tokens() {
  const [query, change] = useQuery();
  const { search, from = 0 } = query;
  const source = useLoaded('/tokens', { search, from });
  return html`
    <div class="filters"><${Search} label="Search in ids and owners" value=${search} onSearch=${(text) => change({ search: text, from: null }, true)} /></div>
    <${Panel} title="Delegation tokens"><${Loaded} source=${source}>${(data) => html`<${Rows} data=${data} />
      <${Pager} from=${Number(from)} total=${data.total} onMove=${(target) => change({ from: target || null })} />`}<//><//>`;
}

function Rows({ data }) {
  if (!data.isEnabled) return html`<${Empty} title="Delegation tokens are switched off.">Set delegation.token.secret.key to use them.<//>`;
  if (data.tokens.length === 0) return html`<${Empty} title="There are no tokens.">Clients that have logged in can ask for one.<//>`;
  return html`<${Table} label="Tokens" rows=${data.tokens} keyOf=${(token) => token.tokenId} columns=${[
    { title: 'Token', cell: (token) => html`<code>${token.tokenId}</code>` },
    { title: 'Owner', cell: (token) => token.owner },
    { title: 'Asked for by', cell: (token) => token.requester },
    { title: 'Issued', cell: (token) => time(token.issuedMs) },
    { title: 'Expires', cell: (token) => ago(token.expiresMs) },
    { title: 'Cannot be renewed after', cell: (token) => time(token.maxTimestampMs) },
    { title: 'Renewers', cell: (token) => token.renewers.join(', ') || '–' },
  ]} />`;
}
