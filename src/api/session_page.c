#include "api/session_page.h"

/* One section is shown at a time; the script says which. */
static const char sections[] =
    "<section id=\"checking\">\n<h1>Signing in</h1>\n<p>One moment: this page asks Hearth whether this browser is signed in.</p>\n"
    "<noscript><p>This page needs JavaScript. Allow it for this address, then run <code>hearth open</code> in a terminal again.</p></noscript>\n</section>\n"

    "<section id=\"in\" hidden>\n<h1>You are signed in</h1>\n<p>This browser may now manage Hearth on this machine for 30 days.</p>\n"
    "<p>Until there is a page for it, the terminal shows what waits for you:</p>\n<ul>\n"
    "<li><code>hearth permission watch</code> asks you as apps ask for permissions.</li>\n"
    "<li><code>hearth permission list</code> shows what you decided.</li>\n"
    "<li><code>hearth task list</code> shows the work of your agents.</li>\n</ul>\n"
    "<p><button type=\"button\" id=\"leave\">Sign out</button></p>\n</section>\n"

    "<section id=\"out\" hidden>\n<h1>This browser is not signed in</h1>\n"
    "<p>Run <code>hearth open</code> in a terminal: it opens a link that signs this browser in.</p>\n</section>\n"

    "<section id=\"refused\" hidden>\n<h1>This sign-in did not work</h1>\n"
    "<p>The browser did not keep the cookie of this sign-in, or the link was changed on its way. Allow cookies for this address, "
    "then run <code>hearth open</code> in a terminal again.</p>\n</section>\n"

    "<section id=\"blocked\" hidden>\n<h1>The browser blocks what this page must keep</h1>\n"
    "<p>Hearth keeps a cookie and a proof of the sign-in for this address, and this browser allows neither. "
    "Allow site data (cookies and storage) for this address, then run <code>hearth open</code> in a terminal again.</p>\n</section>\n"

    "<section id=\"offline\" hidden>\n<h1>Hearth does not answer</h1>\n"
    "<p>Start it with <code>hearth serve</code>, then reload this page.</p>\n</section>\n"

    "<section id=\"ended\" hidden>\n<h1>You are signed out</h1>\n"
    "<p>This browser can no longer manage Hearth. <code>hearth open</code> in a terminal signs it in again.</p>\n</section>\n";

/* The proof leaves the address before anything else happens. A proof that does not work replaces none that does: another page may have sent
 * the person here with one of its own making. */
static const char script[] =
    "'use strict';\n"
    "const item = 'hearth.proof';\n"
    "const call = (method, proof) => fetch('/api/session', { method, headers: { 'x-hearth-proof': proof }, cache: 'no-store' });\n"
    "function show(id) {\n"
    "  for (const section of document.querySelectorAll('section'))\n"
    "    section.hidden = section.id !== id;\n"
    "  document.title = document.querySelector('#' + id + ' h1').textContent + ' - Hearth';\n"
    "}\n"
    "async function works(proof) {\n"
    "  const reply = await call('GET', proof);\n"
    "  if (!reply.ok && reply.status !== 401)\n"
    "    throw new Error('status ' + reply.status);\n"
    "  return reply.ok;\n"
    "}\n"
    "async function check() {\n"
    "  const given = new URLSearchParams(location.hash.slice(1)).get('proof');\n"
    "  if (location.hash)\n"
    "    history.replaceState(null, '', location.pathname);\n"
    "  let kept;\n"
    "  try {\n"
    "    kept = localStorage.getItem(item);\n"
    "    localStorage.setItem(item + '.test', '');\n"
    "    localStorage.removeItem(item + '.test');\n"
    "  } catch {\n"
    "    return 'blocked';\n"
    "  }\n"
    "  for (const proof of [given, kept])\n"
    "    if (proof && await works(proof)) {\n"
    "      localStorage.setItem(item, proof);\n"
    "      return 'in';\n"
    "    }\n"
    "  localStorage.removeItem(item);\n"
    "  return given ? 'refused' : 'out';\n"
    "}\n"
    "async function leave() {\n"
    "  const reply = await call('DELETE', localStorage.getItem(item) ?? '');\n"
    "  if (!reply.ok && reply.status !== 401)\n"
    "    throw new Error('status ' + reply.status);\n"
    "  localStorage.removeItem(item);\n"
    "  return 'ended';\n"
    "}\n"
    "const run = (work) => work().then(show, () => show('offline'));\n"
    "document.getElementById('leave').addEventListener('click', () => run(leave));\n"
    "addEventListener('hashchange', () => location.hash && run(check));\n"
    "addEventListener('storage', (event) => event.key === item && run(check));\n"
    "run(check);\n";

const struct page session_page = { .title = "Signing in", .body = sections, .script = script };

const struct page dead_link_page = {
    .title = "This link is no longer valid",
    .body = "<h1>This link is no longer valid</h1>\n"
            "<p>It has been used or has expired. <code>hearth open</code> in a terminal prints a new one.</p>\n"
            "<p>If it signed this browser in before, the browser still is: <a href=\"/session\">open the page of its session</a>.</p>\n",
};

const struct page unfollowed_link_page = {
    .title = "This link was not used",
    .body = "<h1>This link was not used</h1>\n"
            "<p>It signs a browser in when a person opens it as a page. A preview, a prefetch or a frame does not use it up.</p>\n",
};
