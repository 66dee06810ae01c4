// Views that come again whenever they have changed, as server-sent events.

import { addressOf, Failure, get } from './api.js';
import { makeStore } from './store.js';
import { useCallback, useEffect, useState } from './vendor/htm-preact.js';

const RETRY_MS = 4000;

/** What the page has from the broker: 'none' (nothing is watched), 'live', 'paused', 'polled' or 'lost'. */
export const connection = makeStore('none');

/**
 * Watch a view, only while the tab is visible: a browser has few connections to a server.
 * @param {string} path
 * @param {() => Object<string, any>} query asked at each attempt
 * @param {(data: any) => void} onData
 * @param {(failure: Failure) => void} onFailure
 * @returns {() => void} ends it
 */
export function watch(path, query, onData, onFailure) {
  let source = null;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    source = new EventSource(addressOf(path, query()));
    source.onmessage = (event) => {
      connection.set('live');
      onData(JSON.parse(event.data));
    };
    // The next attempt is always ours: browsers would connect again at once, and with the query of this one.
    source.addEventListener('failure', (event) => {
      retry();
      onFailure(new Failure(JSON.parse(event.data)));
    });
    source.onerror = () => {
      connection.set('lost');
      const isRefused = source.readyState === EventSource.CLOSED;
      retry();
      if (!isRefused) return;
      // As when too many streams are open. The broker may still answer.
      get(path, query()).then((data) => {
        if (timer === 0) return; // another view is watched by now
        connection.set('polled');
        onData(data);
      }, onFailure);
    };
  }

  function close() {
    clearTimeout(timer);
    timer = 0;
    source?.close();
    source = null;
  }

  function retry() {
    close();
    timer = setTimeout(open, RETRY_MS);
  }

  function follow() {
    close();
    if (document.hidden) connection.set('paused');
    else open();
  }

  document.addEventListener('visibilitychange', follow);
  follow();
  return () => {
    document.removeEventListener('visibilitychange', follow);
    close();
    connection.set('none');
  };
}

/**
 * The last response of a view that is watched. After a failure the last data stay.
 * @param {string} path
 * @param {Object<string, any>} [query]
 * @returns {{data: any, failure: ?Failure, reload: () => void}}
 */
export function useWatched(path, query) {
  const address = addressOf(path, query);
  const [state, setState] = useState({ address: '', data: null, failure: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => watch(
    path,
    () => query,
    (data) => setState({ address, data, failure: null }),
    (failure) => setState((last) => ({ address, data: last.address === address ? last.data : null, failure })),
  ), [address, attempt]);
  const reload = useCallback(() => setAttempt((count) => count + 1), []);
  const isCurrent = state.address === address;
  return { data: isCurrent ? state.data : null, failure: isCurrent ? state.failure : null, reload };
}
