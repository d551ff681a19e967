// A process agent: Hearth starts it for one task, it does the work, reports, and ends.
//
// The agent gets TASK_UUID, ACTIVITY_DATA (or ACTIVITY_FILE when the activity is large), MACHINE_ID, SERVER_URL, TASK_ATTEMPT and HEARTH_TASK_TOKEN.
// A message with `slow_s` keeps the agent busy for that many seconds, to show what happens when an agent is killed.
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { classify } from './rules.mjs';

const { TASK_UUID, ACTIVITY_DATA, ACTIVITY_FILE, MACHINE_ID, SERVER_URL, TASK_ATTEMPT, HEARTH_TASK_TOKEN } = process.env;

async function report(action, data) {
  const reply = await fetch(`${SERVER_URL}/api/external-tasks/${TASK_UUID}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${HEARTH_TASK_TOKEN}` },
    body: JSON.stringify({ action, machine_id: MACHINE_ID, attempt: Number(TASK_ATTEMPT), data }),
  });
  if (!reply.ok) throw new Error(`the service answered ${reply.status}: ${await reply.text()}`);
}

const activity = JSON.parse(ACTIVITY_FILE ? await readFile(ACTIVITY_FILE, 'utf8') : ACTIVITY_DATA);
const { text, slow_s: slow = 0 } = activity.raw_data;

console.log(`task ${TASK_UUID}: reading ${JSON.stringify(text)}`);
await pause(slow * 1000);
if (typeof text !== 'string') {
  await report('failed', { error: { message: '`raw_data.text` must be a string' } });
} else {
  const result = classify(text);
  console.log(`task ${TASK_UUID}: ${result.category}, ${result.urgency}`);
  await report('completed', { result });
}
