// With a running Hearth on which my-app is registered: a row is inserted and its result comes back. Skipped, with the
// reason, when there is none. HEARTH names the program, HEARTH_DATA its data folder.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

const ask = (...args) => JSON.parse(execFileSync(process.env.HEARTH ?? 'hearth', [...args, '--json'], { encoding: 'utf8', stdio: 'pipe' }));

function look() {
  try {
    return { url: ask('status').url, id: ask('app', 'show', 'my-app').app.app_id, skip: false };
  } catch (error) {
    return { skip: String(error.stderr || error.message).trim() };
  }
}

const { url, id, skip } = look();

test('a row gets its result', { skip, timeout: 60_000 }, async () => {
  const send = async (path, options) => (await fetch(url + path, { headers: { 'x-app-id': id, 'content-type': 'application/json' }, ...options })).json();
  const made = await send('/activities', { method: 'POST', body: JSON.stringify({ raw_data: { text: 'a whole sentence' } }) });
  assert.ok(made.success, `${made.error}: hearth permission grant my-app --requested`);
  let row = made.data;
  while (!['completed', 'failed'].includes(row.status)) {
    await pause(100);
    row = (await send(`/activities/${row.id}`)).data;
  }
  assert.equal(row.error_message, null);
  assert.deepEqual(row.result, { words: 3, longest: 'sentence' });
});
