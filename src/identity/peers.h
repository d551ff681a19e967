/* May the other end of this connection name itself an app, or report about a task? Ids are names, not secrets, so the
 * kernel is asked who holds the other end (os/peer.h), once per connection; the answer is kept with the connection.
 *
 * Setting identity.peers: `same_user` accepts ids from programs of the service's user and of root; `launched` accepts
 * the ids of programs that Hearth starts only from those programs; `any` accepts ids from everybody. Any thread; when
 * peers_has_to_wait() is true, workers only.
 *
 *     r = peers_check(id, connection, &(struct launch_what){ .app_id = app_id }, is_launchable, e);
 */
#pragma once

#include "http/peer.h"
#include "identity/launches.h"

enum peers_mode { PEERS_SAME_USER, PEERS_LAUNCHED, PEERS_ANY };
enum peers_mode peers_mode_of(const char *name);

/* connection NULL: the request came from this process. is_launchable: Hearth starts that program. -EPERM
 * PEER_NOT_ALLOWED, with a remedy in the text. */
int peers_check(struct identity *id, struct http_peer *connection, const struct launch_what *what, bool is_launchable,
                struct err *e) MUST_CHECK;
/* The check of the user, which also applies with `any`: for routes where an id alone is not enough. */
int peers_check_user(struct identity *id, struct http_peer *connection, const struct launch_what *what,
                     struct err *e) MUST_CHECK;
/* May a browser's session come on this connection? While no service runs, another program may hold the service's port,
 * and a tab that is still open sends its cookie and proof to that program. So of this machine's programs only those of
 * the service's user and of root may be the administrator, whatever the setting is; never a program in a sandbox. */
bool peers_may_be_admin(struct identity *id, struct http_peer *connection);
/* Is the other end a program of this machine and of the service's own user? Root's programs are refused, because a
 * proxy run by root speaks for others, and so are programs that Hearth started. may_look: also reads /proc to recognize
 * the latter, on a worker. -EPERM PEER_NOT_ALLOWED. */
int peers_check_own(struct identity *id, struct http_peer *connection, bool may_look, struct err *e) MUST_CHECK;
/* Whether the kernel reports who holds a connection (peer_kernel_check()); 0 with the setting `any`, which does not
 * depend on it. */
int peers_check_kernel(struct identity *id, struct err *e) MUST_CHECK;
/* Would peers_check() read /proc, or wait for a program that is being started? */
bool peers_has_to_wait(struct identity *id, const struct http_peer *connection, const struct launch_what *what);
