// The work itself, without Hearth: an object in, an object out. Replace it by yours.

/** @param {{text?: unknown}} data the row's raw_data @returns {{words: number, longest: string}} */
export function count(data) {
  if (typeof data?.text !== 'string') throw new Error('`raw_data.text` must be a string');
  const words = data.text.split(/\s+/).filter(Boolean);
  const longest = words.reduce((found, word) => (word.length > found.length ? word : found), '');
  return { words: words.length, longest };
}
