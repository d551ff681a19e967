// Without Hearth: the work, and the agent as Hearth starts it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { count } from './words.mjs';

const agent = (activity) => spawnSync(process.execPath, [fileURLToPath(new URL('agent.mjs', import.meta.url))],
  { encoding: 'utf8', env: { ...process.env, ACTIVITY_DATA: JSON.stringify(activity) } });

test('words are counted', () => {
  assert.deepEqual(count({ text: ' A small\n example ' }), { words: 3, longest: 'example' });
  assert.deepEqual(count({ text: '' }), { words: 0, longest: '' });
  assert.throws(() => count({ text: 7 }), /must be a string/);
});

test('the agent prints the result', () => {
  assert.deepEqual(JSON.parse(agent({ raw_data: { text: 'two words' } }).stdout), { words: 2, longest: 'words' });
});

test('the agent fails with a reason', () => {
  const { status, stderr } = agent({ raw_data: {} });
  assert.equal(status, 1);
  assert.match(stderr, /must be a string/);
});
