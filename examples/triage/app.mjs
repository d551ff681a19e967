// A Local App: requests its permissions, inserts a few messages as activities, and shows their results on a small page.
//
// Hearth starts the app with SVC_APP_ID, SVC_APP_SECRET, SERVER_URL and a free port. GET / lists the messages, POST / {"text": "..."} adds one.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const { SVC_APP_ID, SVC_APP_SECRET, SERVER_URL, TRIAGE_PORT } = process.env;
const samples = [
  'The shop is down since nine, customers see error 500',
  'I was charged twice for invoice 1042, please refund',
  'How do I change my password?',
  'Thanks, the new search is great',
  'Somebody leaked our customer list',
  'Do you also ship to Norway?',
];

async function hearth(method, path, body) {
  const reply = await fetch(SERVER_URL + path, {
    method,
    headers: { 'content-type': 'application/json', 'x-app-id': SVC_APP_ID, 'x-app-secret': SVC_APP_SECRET },
    body: body && JSON.stringify(body),
  });
  return { status: reply.status, body: await reply.json() };
}

// Requests all permissions at once; a person answers with `hearth permission watch` or `hearth permission grant`.
async function permitted(permissions) {
  for (;;) {
    const { body } = await hearth('POST', '/sdk/register', { app_id: SVC_APP_ID, app_name: 'Triage', permissions });
    if (permissions.every((name) => body.permissions?.granted.includes(name))) return;
    if (permissions.some((name) => body.permissions?.denied.includes(name))) throw new Error('a permission was denied');
    console.log('waiting for permission:', permissions.join(', '));
    await pause(1000);
  }
}

const insert = (text) => hearth('POST', '/activities', { raw_data: { text } });
const list = async () => (await hearth('GET', '/activities?limit=100')).body.data ?? [];

async function readJson(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

const page = createServer(async (request, response) => {
  try {
    const body = request.method === 'POST'
      ? (await insert((await readJson(request)).text)).body
      : (await list()).map(({ raw_data, status, result }) => ({ text: raw_data.text, status, ...(result?.data ?? result) }));
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body, null, 2) + '\n');
  } catch (error) {
    response.writeHead(400).end(`${error.message}\n`);
  }
});

page.listen(Number(TRIAGE_PORT), '127.0.0.1', () => console.log(`messages at http://127.0.0.1:${TRIAGE_PORT}/`));
await permitted(['activities.read', 'activities.write']);
if ((await list()).length === 0) for (const text of samples) await insert(text);
console.log('all messages are in; the agent takes it from here');
