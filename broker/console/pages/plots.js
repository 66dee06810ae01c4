// Lines over time, drawn by uPlot.

import { useStore } from './store.js';
import { theme } from './theme.js';
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import uPlot from './vendor/uplot.js';

const HEIGHT = 150;
const LINES = 5;
const SHOWN_S = 180;
// What a value may grow by from one tick to the next.
const STEPS = Object.fromEntries([1000, 1024].map((base) => [base, [0.001, 1, base, base ** 2, base ** 3, base ** 4]
  .flatMap((unit) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * unit))]));
const dark = matchMedia('(prefers-color-scheme: dark)');

/**
 * A plot whose lines may change their number; the values that are shown last stand below it as text.
 * @param {{title: string, times: number[], lines: {name: string, values: (number|null)[]}[],
 *          format: (value: ?number) => string, base?: 1000|1024}} props
 *   `times` are seconds since the epoch; units of the values are `base` of the unit below
 */
export function Plot({ title, times, lines, format, base = 1000 }) {
  const box = useRef(null);
  const plot = useRef(null);
  const choice = useStore(theme);
  const isDark = useMatch(dark);
  const names = lines.map((line) => line.name).join('\n');

  useEffect(() => {
    plot.current = new uPlot(optionsOf(box.current, lines, format, base), [times, ...lines.map((line) => line.values)], box.current);
    const resized = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      plot.current.destroy();
    };
  }, [names, choice, isDark]);
  useEffect(() => {
    plot.current.setData([times, ...lines.map((line) => line.values)]);
  }, [times]);

  return html`<figure class="plot">
    <figcaption>${title}</figcaption>
    <div ref=${box} role="img" aria-label=${`${title}: a plot of the last minutes`}></div>
    <ul class="legend">${lines.map((line, index) => html`<li class=${`line-${index % LINES}`}>
      <span>${line.name}</span> <b>${format(line.values.at(-1))}</b></li>`)}</ul>
  </figure>`;
}

function useMatch(query) {
  const [matches, setMatches] = useState(query.matches);
  useEffect(() => {
    const changed = () => setMatches(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, [query]);
  return matches;
}

/** A canvas needs colours as they are computed, not the names of variables. */
function colorOf(element, name) {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function optionsOf(box, lines, format, base) {
  const color = (name) => colorOf(box, name);
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString('sv');
  const axis = { stroke: color('muted'), font: '11px system-ui, sans-serif', ticks: { show: false } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { range: (_, __, last) => [(last ?? Date.now() / 1000) - SHOWN_S, last ?? Date.now() / 1000] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 90, values: (_, ticks) => ticks.map(clock) },
      { ...axis, grid: { stroke: color('line'), width: 1 }, size: 68, space: 36, incrs: STEPS[base], values: (_, ticks) => ticks.map(format) },
    ],
    series: [{}, ...lines.map((line, index) => ({
      label: line.name,
      stroke: color(`line-${index % LINES}`),
      width: 1.75,
      points: { show: false },
    }))],
  };
}
