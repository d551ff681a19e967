#include "api/resources/session_page.h"

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

const struct page session_page = { .title = "Signing in", .body = sections, .script = "session.js" };

const struct page dead_link_page = {
    .title = "This link is no longer valid",
    .body =
        "<h1>This link is no longer valid</h1>\n"
        "<p>It has been used or has expired. <code>hearth open</code> in a terminal prints a new one.</p>\n"
        "<p>If it signed this browser in before, the browser still is: <a href=\"/session\">open the page of its session</a>.</p>\n",
};

const struct page unfollowed_link_page = {
    .title = "This link was not used",
    .body =
        "<h1>This link was not used</h1>\n"
        "<p>It signs a browser in when a person opens it as a page. A preview, a prefetch or a frame does not use it up.</p>\n",
};
