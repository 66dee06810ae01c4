// A search in a topic: the broker reads a little at each request, and the page asks on.

import { get, url } from '../api.js';
import { useEffect, useRef, useState } from '../vendor/htm-preact.js';

const PAGE = 50;
const START = { records: [], cursor: null, searched: 0, total: 0, failure: null, isRunning: true, isComplete: false };

/**
 * Search until a page of records is full, everything was searched, or somebody stops it.
 * @param {string} topic
 * @param {Object<string, any>} request the filters and the position
 */
export function useSearch(topic, request) {
  const [state, setState] = useState(START);
  const running = useRef(null);
  const key = JSON.stringify([topic, request]);

  function stop() {
    running.current?.abort();
    setState((last) => ({ ...last, isRunning: false }));
  }

  async function search(start) {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const goal = start.records.length + PAGE;
    let current = { ...start, failure: null, isRunning: true };
    setState(current);
    while (current.isRunning) {
      try {
        const limit = goal - current.records.length;
        const page = await get(url`/topics/${topic}/messages`, { ...request, cursor: current.cursor, limit }, controller.signal);
        current = after(current, page, goal);
      } catch (failure) {
        current = { ...current, failure, isRunning: false };
      }
      if (controller.signal.aborted) return;
      setState(current);
    }
  }

  useEffect(() => {
    search(START);
    return () => running.current?.abort();
  }, [key]);
  return { ...state, stop, goOn: () => search(state) };
}

function after(state, page, goal) {
  const records = [...state.records, ...page.records];
  const isComplete = page.cursor == null;
  return {
    ...state,
    records,
    cursor: page.cursor,
    searched: page.searched,
    total: page.total,
    isComplete,
    isRunning: !isComplete && records.length < goal,
  };
}
