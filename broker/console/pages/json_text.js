// JSON for reading.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * JSON with its parts on lines of their own; any other text as it is.
 *
 * It is not written anew from its values: large numbers, and names that are there twice, would change.
 * @param {string} text
 * @returns {string}
 */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(TOKEN);
  let depth = 0;
  let out = '';
  const newLine = () => `\n${'  '.repeat(depth)}`;
  tokens.forEach((token, index) => {
    if (isStart(token)) {
      depth += 1;
      out += isEnd(tokens[index + 1]) ? token : token + newLine();
    } else if (isEnd(token)) {
      depth -= 1;
      out += isStart(tokens[index - 1]) ? token : newLine() + token;
    } else if (token === ',') {
      out += token + newLine();
    } else {
      out += token === ':' ? ': ' : token;
    }
  });
  return out;
}

function isStart(token) {
  return token === '{' || token === '[';
}

function isEnd(token) {
  return token === '}' || token === ']';
}
