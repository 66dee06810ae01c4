// Light or dark: as the system is, or as was chosen in this browser.

import { makeStore } from './store.js';

const KEY = 'odradek.theme';

/** @type {import('./store.js').Store<'system'|'light'|'dark'>} */
export const theme = makeStore(localStorage.getItem(KEY) ?? 'system');

theme.subscribe((choice) => {
  localStorage.setItem(KEY, choice);
  show(choice);
});
show(theme.get());

function show(choice) {
  if (choice === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}
