// Rates from counters: the difference of two responses of a view that is watched.

import { useEffect, useRef, useState } from './vendor/htm-preact.js';

/**
 * How much each counter grows in a second; null before there are two responses.
 *
 * A response comes only if something has changed. So what has changed did so within the last
 * period, however long ago the response before it was; and after a period without one, all is still.
 * @param {?Object<string, number>} counters of the newest response; a new object for each response
 * @param {number} periodMs how often the view is looked at
 * @returns {?Object<string, number>}
 */
export function useRates(counters, periodMs) {
  const last = useRef(null);
  const [rates, setRates] = useState(null);
  useEffect(() => {
    if (!counters) return undefined;
    const now = performance.now();
    if (last.current) setRates(ratesOf(last.current.counters, counters, Math.min(now - last.current.now, 1.5 * periodMs)));
    last.current = { counters, now };
    const timer = setTimeout(() => setRates(ratesOf(counters, counters, periodMs)), 2.5 * periodMs);
    return () => clearTimeout(timer);
  }, [counters]);
  return rates;
}

function ratesOf(before, after, passedMs) {
  const rates = {};
  for (const [name, value] of Object.entries(after)) {
    // A counter that is new has no rate yet; one that has become less has begun anew.
    if (name in before) rates[name] = Math.max(0, value - before[name]) / (passedMs / 1000);
  }
  return rates;
}
