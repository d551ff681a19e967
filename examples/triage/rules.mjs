// Finds the subject of a message by plain rules: the first matching rule decides. No model, no network.

const rules = [
  { category: 'security', urgency: 'high', words: /\b(hacked|breach|phishing|stolen|leaked)\b/i },
  { category: 'outage', urgency: 'high', words: /\b(down|outage|crash(es|ed)?|unreachable|500)\b/i },
  { category: 'billing', urgency: 'normal', words: /\b(invoice|refund|charged?|payment|price)\b/i },
  { category: 'account', urgency: 'normal', words: /\b(password|log ?in|sign ?in|account)\b/i },
  { category: 'praise', urgency: 'low', words: /\b(thanks?|great|love|wonderful)\b/i },
];

/** @param {string} text @returns {{category: string, urgency: string, because: string|null}} */
export function classify(text) {
  for (const { category, urgency, words } of rules) {
    const found = words.exec(text);
    if (found) return { category, urgency, because: found[0].toLowerCase() };
  }
  return { category: 'other', urgency: 'low', because: null };
}
