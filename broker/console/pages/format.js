// Numbers, sizes and times as text.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const NONE = '–';

/** @param {?number} value @returns {string} with all digits */
export function number(value) {
  return value == null ? NONE : whole.format(value);
}

/** @param {?number} value @returns {string} such as 1.2M */
export function compact(value) {
  if (value == null) return NONE;
  return Math.abs(value) < 10000 ? (Number.isInteger(value) ? whole : fine).format(value) : short.format(value);
}

/** @param {?number} value @returns {string} such as 1.2 MiB */
export function bytes(value) {
  if (value == null) return NONE;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? whole.format(value) : fine.format(value)} ${UNITS[unit]}`;
}

/** @param {?number} value @returns {string} bytes in a second */
export function byteRate(value) {
  return value == null ? NONE : `${bytes(value)}/s`;
}

/** @param {?number} value @returns {string} a number in a second */
export function rate(value) {
  return value == null ? NONE : `${compact(value)}/s`;
}

/** @param {?number} value in milliseconds @returns {string} such as 3 h 20 min */
export function duration(value) {
  if (value == null) return NONE;
  if (value < 0) return `-${duration(-value)}`;
  if (value < 1000) return `${fine.format(value)} ms`;
  const seconds = value / 1000;
  if (seconds < 60) return `${fine.format(seconds)} s`;
  const pairs = [[86400, 'd', 3600, 'h'], [3600, 'h', 60, 'min'], [60, 'min', 1, 's']];
  const [large, largeName, small, smallName] = pairs.find(([limit]) => seconds >= limit);
  const rest = Math.floor((seconds % large) / small);
  return `${whole.format(Math.floor(seconds / large))} ${largeName}${rest ? ` ${rest} ${smallName}` : ''}`;
}

/** @param {?number} value milliseconds since the epoch @returns {string} in the browser's time zone */
export function time(value) {
  if (value == null || value < 0) return NONE;
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return String(value);
  const two = (part) => String(part).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${clock}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** @param {?number} value milliseconds since the epoch @returns {string} such as 5 s ago */
export function ago(value) {
  if (value == null || value < 0) return NONE;
  const passed = Date.now() - value;
  return passed < 0 ? `in ${duration(-passed)}` : `${duration(Math.floor(passed / 1000) * 1000)} ago`;
}

/** @param {string} word such as ABOUT_THIS @returns {string} such as about this */
export function plain(word) {
  return word.toLowerCase().replaceAll('_', ' ');
}

/** @param {string} word such as PreparingRebalance @returns {string} such as preparing rebalance */
export function spaced(word) {
  return word.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

/** @param {number} count @param {string} noun @returns {string} such as 2 records */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}
