// The page of a browser session (src/api/resources/session_page.c). The script first removes the proof from the address. An invalid
// proof does not replace a valid one, because another page may have sent the user here with a forged proof.
'use strict';
const item = 'hearth.proof';
const call = (method, proof) => fetch('/api/session', { method, headers: { 'x-hearth-proof': proof }, cache: 'no-store' });
function show(id) {
  for (const section of document.querySelectorAll('section'))
    section.hidden = section.id !== id;
  document.title = document.querySelector('#' + id + ' h1').textContent + ' - Hearth';
}
async function works(proof) {
  const reply = await call('GET', proof);
  if (!reply.ok && reply.status !== 401)
    throw new Error('status ' + reply.status);
  return reply.ok;
}
async function check() {
  const given = new URLSearchParams(location.hash.slice(1)).get('proof');
  if (location.hash)
    history.replaceState(null, '', location.pathname);
  let kept;
  try {
    kept = localStorage.getItem(item);
    localStorage.setItem(item + '.test', '');
    localStorage.removeItem(item + '.test');
  } catch {
    return 'blocked';
  }
  for (const proof of [given, kept])
    if (proof && await works(proof)) {
      localStorage.setItem(item, proof);
      return 'in';
    }
  localStorage.removeItem(item);
  return given ? 'refused' : 'out';
}
async function leave() {
  const reply = await call('DELETE', localStorage.getItem(item) ?? '');
  if (!reply.ok && reply.status !== 401)
    throw new Error('status ' + reply.status);
  localStorage.removeItem(item);
  return 'ended';
}
const run = (work) => work().then(show, () => show('offline'));
document.getElementById('leave').addEventListener('click', () => run(leave));
addEventListener('hashchange', () => location.hash && run(check));
addEventListener('storage', (event) => event.key === item && run(check));
run(check);
