// Requests to the console's API.

import { makeStore, useStore } from './store.js';
import { useCallback, useEffect, useState } from './vendor/htm-preact.js';

// Without a name and a password that may stand in the address of the page: fetch refuses those.
const PREFIX = `${location.origin}/api/v1`;

/** What the API answers to a request that it cannot serve. */
export class Failure extends Error {
  /**
   * @param {{error: string, message: string}} body
   * @param {number} status of HTTP; 0 if nothing was answered
   */
  constructor({ error, message }, status = 0) {
    super(message);
    this.error = error;
    this.status = status;
  }
}

/** The response of /me, or null before it is there. */
export const me = makeStore(null);

/** Get /me again: the token of changes is another one after a restart of the broker. */
export async function loadMe() {
  me.set(await get('/me'));
}

/** Whether buttons that change something are shown. */
export function useMayChange() {
  const client = useStore(me);
  return client !== null && !client.readOnly;
}

/**
 * A tag for paths: url`/topics/${name}` encodes what is filled in.
 * @param {TemplateStringsArray} parts
 * @param {...(string|number)} values
 * @returns {string}
 */
export function url(parts, ...values) {
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

/**
 * The address of a GET. Values of the query that are undefined, null or '' are left out.
 * @param {string} path
 * @param {Object<string, any>} [query]
 * @returns {string}
 */
export function addressOf(path, query = {}) {
  const filled = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(filled).toString();
  return PREFIX + path + (text && `?${text}`);
}

/**
 * @param {string} path below the prefix
 * @param {Object<string, any>} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, query, signal) {
  return request(addressOf(path, query), { signal });
}

/**
 * Change something.
 * @param {'POST'|'PUT'|'DELETE'} method
 * @param {string} path
 * @param {Object<string, any>} body
 * @returns {Promise<any>}
 */
export async function send(method, path, body) {
  const token = me.get()?.token;
  try {
    return await sendWith(token, method, path, body);
  } catch (failure) {
    if (failure.status !== 403 || failure.error !== 'FORBIDDEN') throw failure;
    await loadMe();
    if (me.get().token === token) throw failure;
    return sendWith(me.get().token, method, path, body);
  }
}

function sendWith(token, method, path, body) {
  const headers = { 'Content-Type': 'application/json', 'X-Odradek-Token': token };
  return request(PREFIX + path, { method, headers, body: JSON.stringify(body) });
}

async function request(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure({ error: 'NO_ANSWER', message: 'The broker does not answer. Is it running?' });
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Failure(body?.error ? body : { error: `HTTP_${response.status}`, message: response.statusText }, response.status);
}

/**
 * What a GET returns, asked once, and again by `reload`.
 * @param {string} path
 * @param {Object<string, any>} [query]
 * @returns {{data: any, failure: ?Failure, reload: () => Promise<void>}}
 */
export function useLoaded(path, query) {
  const address = addressOf(path, query);
  const [state, setState] = useState({ address: '', data: null, failure: null });
  const load = useCallback(async (signal) => {
    try {
      const data = await request(address, { signal });
      if (!signal?.aborted) setState({ address, data, failure: null });
    } catch (failure) {
      if (!signal?.aborted) setState({ address, data: null, failure });
    }
  }, [address]);
  useEffect(() => {
    const controller = new AbortController();
    load(controller.signal);
    return () => controller.abort();
  }, [load]);
  const reload = useCallback(() => load(), [load]);
  const isCurrent = state.address === address;
  return { data: isCurrent ? state.data : null, failure: isCurrent ? state.failure : null, reload };
}
