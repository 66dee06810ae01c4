// The address behind the #: a path, and a query with every filter and position of the view.

import { makeStore, useStore } from './store.js';
import { useCallback } from './vendor/htm-preact.js';

/** @typedef {{path: string[], query: Object<string, string>}} Place */

/** @type {import('./store.js').Store<Place>} */
export const place = makeStore(read(location.hash));

addEventListener('hashchange', () => place.set(read(location.hash)));

/**
 * @param {string} hash
 * @returns {Place}
 */
function read(hash) {
  const [path, query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
  return {
    path: path.split('/').filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The hash of a place, for links. Values that are undefined, null or '' are left out.
 * @param {(string|number)[]} path
 * @param {Object<string, any>} [query]
 * @returns {string}
 */
export function to(path, query = {}) {
  const filled = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(filled).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text && `?${text}`}`;
}

/**
 * @param {(string|number)[]} path
 * @param {Object<string, any>} [query]
 */
export function go(path, query) {
  location.hash = to(path, query);
}

/**
 * The query of the address, and a function that changes some of it. The back button returns to what
 * was before, unless `isSmall`: the letters of a search are no places of their own.
 * @returns {[Object<string, string>, (changes: Object<string, any>, isSmall?: boolean) => void]}
 */
export function useQuery() {
  const { query } = useStore(place);
  const change = useCallback((changes, isSmall = false) => {
    const { path: current, query: last } = place.get();
    const hash = to(current, { ...last, ...changes });
    if (isSmall) {
      history.replaceState(null, '', hash);
      place.set(read(hash));
    } else {
      location.hash = hash;
    }
  }, []);
  return [query, change];
}
