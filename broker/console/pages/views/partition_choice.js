// Chooses the partition that a view of a topic shows.

import { Field } from '../components.js';
import { useQuery } from '../router.js';
import { html } from '../vendor/htm-preact.js';

const FEW = 500;

/**
 * A list, or a number where a list would be too long.
 * @param {{topic: object, hasAll?: boolean}} props
 */
export function PartitionChoice({ topic, hasAll = false }) {
  const [query, change] = useQuery();
  const current = query.partition ?? (hasAll ? '' : '0');
  const choose = (event) => change({ partition: event.currentTarget.value, from: null });
  const { length } = topic.partitions;
  if (length > FEW) {
    return html`<${Field} label=${hasAll ? 'Partition (empty: all)' : 'Partition'}>
      <input type="number" min="0" max=${length - 1} value=${current} onChange=${choose} /><//>`;
  }
  return html`<${Field} label="Partition"><select value=${current} onChange=${choose}>
    ${hasAll && html`<option value="" selected=${current === ''}>all</option>`}
    ${topic.partitions.map(({ partition }) => html`<option value=${partition} selected=${String(partition) === current}>${partition}</option>`)}
  </select><//>`;
}
