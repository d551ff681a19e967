// The app: inserts one row, waits for the agent's result, prints it and ends. `hearth app start my-app` runs it,
// `hearth app logs my-app` shows what it printed.
import { setTimeout as pause } from 'node:timers/promises';

// Hearth sets them: who this app is, the secret that proves it, and where the service is.
const { SVC_APP_ID, SVC_APP_SECRET, SERVER_URL } = process.env;

async function hearth(method, path, body) {
  const reply = await fetch(SERVER_URL + path, {
    method,
    headers: { 'content-type': 'application/json', 'x-app-id': SVC_APP_ID, 'x-app-secret': SVC_APP_SECRET },
    body: body && JSON.stringify(body),
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${answer.message ?? answer.error}`);
  return answer;
}

try {
  const permissions = ['activities.read', 'activities.write'];
  console.log(`asks for ${permissions.join(', ')}`); // and waits for you, when you have not granted them
  await hearth('POST', '/sdk/register', { app_id: SVC_APP_ID, app_name: 'my-app', permissions });
  let { data: row } = await hearth('POST', '/activities', { raw_data: { text: 'The app itself says hello' } });
  console.log(`inserted ${row.id}`);
  while (!['completed', 'failed'].includes(row.status)) {
    await pause(200);
    ({ data: row } = await hearth('GET', `/activities/${row.id}`));
  }
  console.log(`${row.status}: ${row.error_message ?? JSON.stringify(row.result)}`);
} catch (error) {
  console.error(error.message); // a missing permission: `hearth permission grant my-app --requested`
  process.exitCode = 1;
}
